/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/module.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "softdevice/config.h"
#include "softdevice/context.h"
#include "front/jit.h"
#include "softdevice/notice.h"
#include "softdevice/sched.h"

#define LOG_MAX 4096u /* bytes of the messages of one load */

static struct obd_pool *pool;
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;

static void pool_start(void)
{
	pool = obd_pool_new(obd_config.threads);
	if (!pool)
		ob_error("cannot start threads that run kernels: raise the limit on processes "
			 "(ulimit -u), or set OUTBOARD_SOFT_THREADS to a smaller number");
}

struct obd_pool *obd_module_pool(void)
{
	pthread_once(&pool_once, pool_start);
	return pool;
}

void obd_module_ref(struct obd_module *module)
{
	atomic_fetch_add_explicit(&module->refs, 1, memory_order_relaxed);
}

void obd_module_unref(struct obd_module *module)
{
	struct obd_ctx *ctx = module->ctx;

	if (atomic_fetch_sub_explicit(&module->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_lock(&ctx->lock);
	if (module->prev)
		module->prev->next = module->next;
	else
		ctx->modules = module->next;
	if (module->next)
		module->next->prev = module->prev;
	pthread_mutex_unlock(&ctx->lock);
	if (module->program)
		obd_program_free(module->program);
	obd_dry_module_free(&module->dry);
	free(module);
}

void obd_module_forget(struct obd_ctx *ctx)
{
	while (ctx->modules)
		obd_module_unref(ctx->modules);
}

static bool is_ptx(const struct obf_image_ref *image)
{
	return image->payload_size < 4 || memcmp(image->payload, "\177ELF", 4) != 0;
}

/* Reads the PTX of a module. Errors are written to the program's log, or to ours. */
static CUresult module_read(struct obd_module *module, const struct obf_image_ref *image)
{
	struct obf_jit_logs jit;
	char log[LOG_MAX] = "";
	CUresult result =
		obf_jit_read(&jit, image->n_options, image->options, image->option_values);

	if (result)
		return result;
	if (obd_config.model)
		return obd_dry_module_load(module->ctx, image, &module->dry);
	if (!is_ptx(image))
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	result = obd_program_load((const char *)image->payload, image->payload_size,
		&module->ctx->env, &module->program, log, sizeof log);
	obf_jit_finish(&jit, log);
	/* If the program requested an error log, it already has the text. */
	if (result && log[0] && !jit.error)
		obd_notice_ptx(log, (const char *)image->payload, image->payload_size);
	return result;
}

CUresult obd_module_load(struct obf_mod *mod, const struct obf_image_ref *image)
{
	struct obd_ctx *ctx = mod->ctx->backend;
	struct obd_module *module;
	CUresult result;

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	module = calloc(1, sizeof *module);
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->ctx = ctx;
	result = module_read(module, image);
	if (result) {
		free(module);
		return result;
	}
	atomic_init(&module->refs, 1);
	pthread_mutex_lock(&ctx->lock);
	module->next = ctx->modules;
	if (ctx->modules)
		ctx->modules->prev = module;
	ctx->modules = module;
	pthread_mutex_unlock(&ctx->lock);
	mod->backend = module;
	obd_print_flush(&ctx->print);
	return CUDA_SUCCESS;
}

void obd_module_unload(struct obf_mod *mod)
{
	struct obd_module *module = mod->backend;

	if (!module)
		return;
	obd_print_flush(&module->ctx->print);
	mod->backend = NULL;
	obd_module_unref(module);
}

CUresult obd_module_func_get(struct obf_func *func)
{
	const struct obd_module *module = func->mod->backend;
	const struct obd_kernel *kernel;

	if (!module)
		return CUDA_ERROR_NOT_FOUND;
	if (obd_config.model) /* the front end has found the name */
		return CUDA_SUCCESS;
	kernel = obd_program_kernel(module->program, func->name);
	if (!kernel)
		return CUDA_ERROR_NOT_FOUND;
	if (kernel->param_bytes != func->param_bytes) {
		ob_error("kernel %s cannot be loaded: its PTX declares %u bytes of parameters, "
			 "the image's description of it %u",
			func->name, kernel->param_bytes, func->param_bytes);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	func->backend = (void *)(uintptr_t)kernel;
	return CUDA_SUCCESS;
}

const char *obd_module_refusal(const struct obf_func *func)
{
	const struct obd_kernel *kernel = func->backend;

	return kernel ? kernel->refused : NULL;
}

CUresult obd_module_func_load(struct obf_func *func)
{
	const char *why = obd_module_refusal(func);

	if (!why)
		return CUDA_SUCCESS;
	ob_log(atomic_load_explicit(&obf_served, memory_order_relaxed) ? OB_LOG_INFO : OB_LOG_ERROR,
		"kernel %s cannot run: %s. " OBF_REFUSED_ADVICE, func->name, why);
	return CUDA_ERROR_INVALID_PTX;
}

CUresult obd_module_func_attrs(struct obf_func *func)
{
	const struct obd_kernel *kernel = func->backend;
	struct obf_func_attrs *attrs = &func->attrs;

	if (!kernel) {
		obd_dry_func_attrs(func);
		return CUDA_SUCCESS;
	}
	attrs->max_threads = (int)kernel->max_threads;
	attrs->shared_bytes = (int)kernel->static_shared;
	attrs->const_bytes = (int)kernel->const_bytes;
	attrs->local_bytes = (int)kernel->local_bytes;
	attrs->registers = (int)kernel->registers;
	attrs->cluster_must = kernel->explicit_cluster;
	for (int i = 0; i < 3; i++)
		attrs->cluster[i] = (int)kernel->cluster[i];
	attrs->ptx_version = (int)kernel->target_arch;
	attrs->binary_version = (int)obd_config.cc;
	attrs->exact = true;
	return CUDA_SUCCESS;
}

CUresult obd_module_global_get(
	struct obf_mod *mod, const char *name, CUdeviceptr *ret_addr, size_t *ret_size)
{
	const struct obd_module *module = mod->backend;
	const struct obd_global *global;

	if (!module)
		return CUDA_ERROR_NOT_FOUND;
	if (obd_config.model)
		return obd_dry_global_get(&module->dry, name, ret_addr, ret_size);
	global = obd_program_global(module->program, name);
	if (!global)
		return CUDA_ERROR_NOT_FOUND;
	*ret_addr = (CUdeviceptr)global->addr;
	*ret_size = global->size;
	return CUDA_SUCCESS;
}

CUresult obd_module_check(
	struct obf_ctx *front, const void *ptx, size_t size, char *ret_log, size_t log_size)
{
	struct obd_ctx *ctx = front->backend;
	struct obd_program *program;
	CUresult result;

	if (obd_config.model)
		return CUDA_SUCCESS;
	result = obd_program_load(ptx, size, &ctx->env, &program, ret_log, log_size);

	if (!result)
		obd_program_free(program);
	return result;
}
