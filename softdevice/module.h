/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_module: a program loaded in a context, on behalf of the front end. Kernels that are queued or
 * running hold it, so that unloading it does not pull the code from under them. Any thread.
 */
#ifndef OBD_MODULE_H
#define OBD_MODULE_H

#include <stdatomic.h>

#include "front/front.h"
#include "softdevice/program.h"

struct obd_ctx;

struct obd_module {
	_Atomic int refs;
	struct obd_ctx *ctx;
	struct obd_program *program;
	struct obd_module *next, *prev; /* in ctx->modules; the context's lock */
};

void obd_module_ref(struct obd_module *module);
void obd_module_unref(struct obd_module *module);
/* What is left when the context goes. */
void obd_module_forget(struct obd_ctx *ctx);

/*
 * The threads that run blocks: one pool for the process, started at first use. NULL: none could be
 * started.
 */
struct obd_pool *obd_module_pool(void);

/* For struct obf_backend. */
CUresult obd_module_load(struct obf_mod *mod, const struct obf_image_ref *image);
void obd_module_unload(struct obf_mod *mod);
CUresult obd_module_func_get(struct obf_func *func);
/*
 * CUDA_ERROR_INVALID_PTX, and a line that names the kernel and the cause: valid code that this
 * device does not implement.
 */
CUresult obd_module_func_load(struct obf_func *func);
/* Why obd_module_func_load refuses it; NULL: it does not. Lives as long as the module. */
const char *obd_module_refusal(const struct obf_func *func);
CUresult obd_module_func_attrs(struct obf_func *func);
CUresult obd_module_global_get(
	struct obf_mod *mod, const char *name, CUdeviceptr *ret_addr, size_t *ret_size);
/* The front end's backend table (front/backend.h). */
CUresult obd_module_check(
	struct obf_ctx *front, const void *ptx, size_t size, char *ret_log, size_t log_size);

#endif
