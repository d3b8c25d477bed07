/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_module: a program loaded in a context, created by the front end. Kernels that are queued or
 * running hold a reference, so that the code is not freed under them when the module is unloaded.
 * Any thread.
 */
#ifndef OBD_MODULE_H
#define OBD_MODULE_H

#include <stdatomic.h>

#include "front/front.h"
#include "softdevice/core/program.h"
#include "softdevice/dry.h"

struct obd_ctx;

struct obd_module {
	_Atomic int refs;
	struct obd_ctx *ctx;
	struct obd_program *program; /* NULL in a dry run */
	struct obd_dry_module dry;
	struct obd_module *next, *prev; /* in ctx->modules; the context's lock */
};

void obd_module_ref(struct obd_module *module);
void obd_module_unref(struct obd_module *module);
/* Unloads the modules that are left when the context is destroyed. */
void obd_module_forget(struct obd_ctx *ctx);

/*
 * The threads that run blocks. There is one pool for the process, started at first use. NULL: no
 * thread could be started.
 */
struct obd_pool *obd_module_pool(void);

/* The front end's backend table (front/backend.h). */
CUresult obd_module_load(struct obf_mod *mod, const struct obf_image_ref *image);
void obd_module_unload(struct obf_mod *mod);
CUresult obd_module_func_get(struct obf_func *func);
/*
 * CUDA_ERROR_INVALID_PTX: the kernel is valid PTX that this device does not implement. A line in
 * the log names the kernel and the cause.
 */
CUresult obd_module_func_load(struct obf_func *func);
/*
 * The reason why obd_module_func_load refuses the function; NULL: it does not. The text lives as
 * long as the module.
 */
const char *obd_module_refusal(const struct obf_func *func);
CUresult obd_module_func_attrs(struct obf_func *func);
CUresult obd_module_global_get(
	struct obf_mod *mod, const char *name, CUdeviceptr *ret_addr, size_t *ret_size);
/* The front end's backend table (front/backend.h). */
CUresult obd_module_check(
	struct obf_ctx *front, const void *ptx, size_t size, char *ret_log, size_t log_size);

#endif
