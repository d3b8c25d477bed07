/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_environment: the environment variables of the CUDA driver, for both libraries.
 * docs/COMPATIBILITY.md lists every documented variable. The first cuInit reads them, so a program
 * may set them before that; constant afterwards. CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER are in
 * front/visible.h.
 */
#ifndef OBF_ENVIRONMENT_H
#define OBF_ENVIRONMENT_H

#include <stdbool.h>

struct obf_environment {
	/* CUDA_LAUNCH_BLOCKING: a launch waits for its kernel and returns its error */
	bool launch_blocking;
	bool eager_code; /* CUDA_MODULE_LOADING=EAGER; the result of cuModuleGetLoadingMode */
	/* CUDA_MODULE_DATA_LOADING=EAGER, default: eager_code. Libraries are loaded at once */
	bool eager_data;
	/* CUDA_FORCE_PTX_JIT, CUDA_FORCE_JIT: machine code in fatbins is ignored */
	bool ptx_forced;
	bool ptx_disabled; /* CUDA_DISABLE_PTX_JIT, CUDA_DISABLE_JIT: PTX is refused */
};

extern struct obf_environment obf_environment;

void obf_environment_read(void);

#endif
