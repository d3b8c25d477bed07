/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_dry: modules and kernels of a dry run (OUTBOARD_DRYRUN). A module is its symbols and its
 * variables in device memory, with their initial values if the code is a cubin; variables of PTX
 * begin as zeros. A kernel is not executed and changes nothing. It takes
 *
 *   2 us + 16 bytes for each thread / bandwidth of the device's memory        (a model)
 *
 * which is a kernel that is limited by memory, and at most OBD_DRY_KERNEL_MAX. This time passes on
 * the device's clock: a kernel ends that much after the work that it depends on, or after its
 * launch. No thread sleeps or polls for it, so the simulated device takes no core from the program
 * or the server. What the program sees waits for the clock: synchronisation,
 * queries, elapsed times, host functions and values that it may poll. Copies are made in the
 * stream's order, but before the clock has reached them: kernels change nothing.
 */
#ifndef OBD_DRY_H
#define OBD_DRY_H

#include "base/clock.h"
#include "front/front.h"
#include "softdevice/core/program.h"

#define OBD_DRY_KERNEL_MIN   2000ull /* ns */
#define OBD_DRY_KERNEL_MAX   (10 * OB_SECOND)
#define OBD_DRY_THREAD_BYTES 16

struct obd_alloc;
struct obd_ctx;

/* A loaded module. Owned by its obd_module. */
struct obd_dry_module {
	const struct obi_symbols *symbols; /* of the code; valid until the module is unloaded */
	struct obd_alloc *block;           /* the memory of all variables; NULL: there are none */
	uint64_t *variables;               /* where each of them lies; owned */
};

/* Allocates the module's variables. CUDA_ERROR_OUT_OF_MEMORY: *ret is unchanged. */
CUresult obd_dry_module_load(
	struct obd_ctx *ctx, const struct obf_image_ref *image, struct obd_dry_module *ret);
void obd_dry_module_free(struct obd_dry_module *module);
/* CUDA_ERROR_NOT_FOUND: no such variable, or its size is not known. */
CUresult obd_dry_global_get(const struct obd_dry_module *module, const char *name,
	CUdeviceptr *ret_addr, size_t *ret_size);
/* Estimates what a driver reports for the function. */
void obd_dry_func_attrs(struct obf_func *func);
/* How long the model says that the grid runs. */
uint64_t obd_dry_grid_ns(const unsigned grid[3], const unsigned block[3]);

#endif
