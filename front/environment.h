/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_environment: what the environment asks of a CUDA driver, for both libraries.
 * docs/COMPATIBILITY.md lists every documented variable. Read by the first cuInit, so a program may
 * still set them before it; constant afterwards. CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER are in
 * front/visible.h.
 */
#ifndef OBF_ENVIRONMENT_H
#define OBF_ENVIRONMENT_H

#include <stdbool.h>

struct obf_environment {
	/* CUDA_LAUNCH_BLOCKING: a launch waits for its kernel and returns its error */
	bool launch_blocking;
	bool eager_code; /* CUDA_MODULE_LOADING=EAGER: what cuModuleGetLoadingMode tells */
	/* CUDA_MODULE_DATA_LOADING=EAGER, by default as eager_code: libraries are loaded at once */
	bool eager_data;
	/* CUDA_FORCE_PTX_JIT, CUDA_FORCE_JIT: machine code in fatbins is passed over */
	bool ptx_forced;
	bool ptx_disabled; /* CUDA_DISABLE_PTX_JIT, CUDA_DISABLE_JIT: PTX is refused */
};

extern struct obf_environment obf_environment;

void obf_environment_read(void);

#endif
