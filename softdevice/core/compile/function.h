/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Kernels and functions: declaration, launch limits, layout of parameters, definition. */
#ifndef OBD_CORE_FUNCTION_H
#define OBD_CORE_FUNCTION_H

#include "softdevice/core/ptx/loader.h"

/* What precedes a function's name, and the limits behind its parameters. */
struct obd_function_head {
	bool is_entry, is_extern, is_weak, noreturn;
	uint32_t maxntid[3], reqntid[3], reqnctapercluster[3];
	bool explicit_cluster;
	uint32_t maxnreg[3], minnctapersm[3]; /* only [0] is used */
};

/* Reads a function from the token after .entry or .func on. */
void obd_function_parse(struct obd_loader *ld, struct obd_function_head *h);

#endif
