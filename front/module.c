/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* obf_module: code loaded in one context: loading, unloading, variables. */
#include <stdlib.h>
#include <string.h>

#include "front/advice.h"
#include "front/private.h"
#include "front/texref.h"

#define MODULE_MAX OB_IDS_MAX

static struct ob_ids module_ids = OB_IDS_INIT(OBF_KIND_MODULE, MODULE_MAX);

/* Frees the object only, not the backend's part. */
static void module_drop(struct obf_module *module)
{
	if (module->pub.handle)
		ob_ids_remove(&module_ids, (uint64_t)(uintptr_t)module->pub.handle);
	free(module->functions);
	free(module->globals);
	free((void *)module->refs);
	obf_code_unref(module->code);
	pthread_mutex_destroy(&module->lock);
	free(module);
}

static struct obf_module *module_make(
	struct obf_context *context, struct obf_code *code, struct obf_library *library)
{
	struct obf_module *module = calloc(1, sizeof *module);
	const struct obi_symbols *symbols = &code->symbols;

	if (!module)
		return NULL;
	pthread_mutex_init(&module->lock, NULL);
	module->code = obf_code_ref(code);
	module->library = library;
	module->pub.ctx = &context->pub;
	module->pub.symbols = symbols;
	/* One more than needed, because calloc(0) may return NULL. */
	module->functions = calloc(symbols->n_kernels + 1, sizeof *module->functions);
	module->globals = calloc(symbols->n_variables + 1, sizeof *module->globals);
	module->refs = calloc(symbols->n_refs + 1, sizeof *module->refs);
	module->pub.handle = (CUmodule)(uintptr_t)ob_ids_add(&module_ids, module);
	if (!module->functions || !module->globals || !module->refs || !module->pub.handle) {
		module_drop(module);
		return NULL;
	}
	return module;
}

CUresult obf_module_load(struct obf_context *context, struct obf_code *code,
	struct obf_library *library, const struct obf_jit *jit, struct obf_module **ret)
{
	struct obf_module *module = module_make(context, code, library);
	struct obf_image_ref image = {
		.entry = &code->entry, .symbols = &code->symbols, .from_text = code->from_text
	};
	CUresult result;

	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (jit) {
		image.n_options = jit->n;
		image.options = jit->options;
		image.option_values = jit->values;
	}
	result = obf_code_payload_take(code);
	if (result == CUDA_SUCCESS) {
		image.payload = code->payload;
		image.payload_size = code->payload_size;
		result = obf_process.backend->mod_load(&module->pub, &image);
		obf_code_payload_drop(code);
	}
	if (result != CUDA_SUCCESS) {
		module_drop(module);
		return result;
	}
	pthread_mutex_lock(&context->lock);
	module->next = context->modules;
	if (module->next)
		module->next->prev = module;
	context->modules = module;
	pthread_mutex_unlock(&context->lock);
	*ret = module;
	return CUDA_SUCCESS;
}

static void module_unlink(struct obf_module *module)
{
	struct obf_context *context = obf_context_of(module->pub.ctx);

	pthread_mutex_lock(&context->lock);
	if (module->prev)
		module->prev->next = module->next;
	else
		context->modules = module->next;
	if (module->next)
		module->next->prev = module->prev;
	pthread_mutex_unlock(&context->lock);
}

/* Before the backend unloads the module: ends the program's access to a managed variable. */
static void global_unshare(struct obf_global *global)
{
	struct obf_mem mem;

	if (!global->shared)
		return;
	global->shared = false;
	obf_advice_forget(global->addr, global->size);
	if (obf_mem_find(global->addr, &mem) && obf_process.backend->shared_global_end)
		obf_process.backend->shared_global_end(&mem);
}

static void global_forget(const struct obf_global *global)
{
	if (global->inserted)
		obf_mem_remove(global->addr, NULL);
}

void obf_module_free(struct obf_module *module)
{
	const struct obi_symbols *symbols = module->pub.symbols;

	module_unlink(module);
	for (size_t i = 0; i < symbols->n_variables; i++)
		global_unshare(&module->globals[i]);
	obf_process.backend->mod_unload(&module->pub);
	obf_module_texrefs_end(module);
	for (size_t i = 0; i < symbols->n_kernels; i++)
		obf_function_free(atomic_load(&module->functions[i]));
	for (size_t i = 0; i < symbols->n_variables; i++)
		global_forget(&module->globals[i]);
	module_drop(module);
}

struct obf_module *obf_module_find(CUmodule handle)
{
	return ob_ids_get(&module_ids, (uint64_t)(uintptr_t)handle);
}

void obf_modules_end(struct obf_context *context)
{
	for (;;) {
		struct obf_module *module;

		pthread_mutex_lock(&context->lock);
		module = context->modules;
		pthread_mutex_unlock(&context->lock);
		if (!module)
			return;
		obf_module_free(module);
	}
}

CUresult obf_kernel_index(const struct obi_symbols *symbols, const char *name, size_t *ret)
{
	const struct obi_kernel *kernel;

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = obi_symbols_kernel(symbols, name);
	if (!kernel)
		return CUDA_ERROR_NOT_FOUND;
	*ret = (size_t)(kernel - symbols->kernels);
	return CUDA_SUCCESS;
}

/* Gives the program access to a managed variable; if that fails, kernels alone have it. */
static void global_share(struct obf_ctx *ctx, struct obf_global *global)
{
	CUresult (*share)(struct obf_ctx *, const struct obf_mem *) =
		obf_process.backend->shared_global;
	struct obf_mem mem;

	/* The address is the backend's word: there may be other memory of the program. */
	if (!obf_process.backend->shared_alloc || !obf_mem_find(global->addr, &mem) ||
		!mem.is_global || mem.base != global->addr || mem.size != global->size ||
		mem.ctx != ctx || !obf_mem_share(global->addr, OBF_SHARING_MANAGED, &mem))
		return;
	global->shared = !share || share(ctx, &mem) == CUDA_SUCCESS;
	if (!global->shared)
		obf_mem_share(global->addr, OBF_SHARING_NONE, &mem);
}

CUresult obf_module_global(
	struct obf_module *module, const char *name, CUdeviceptr *ret_addr, size_t *ret_size)
{
	const struct obi_variable *variable = obi_symbols_variable(module->pub.symbols, name);
	struct obf_global *global;
	CUresult result = CUDA_SUCCESS;

	if (!variable)
		return CUDA_ERROR_NOT_FOUND;
	global = &module->globals[variable - module->pub.symbols->variables];
	pthread_mutex_lock(&module->lock);
	if (!global->known) {
		result = obf_process.backend->global_get(
			&module->pub, name, &global->addr, &global->size);
		if (result == CUDA_SUCCESS) {
			struct obf_mem mem = { .base = global->addr,
				.size = global->size,
				.kind = OBF_MEM_DEVICE,
				.is_global = true,
				.device = module->pub.ctx->device,
				.ctx = module->pub.ctx };

			global->known = true;
			/* Fails if the backend has already entered it. */
			global->inserted = global->size > 0 && obf_mem_insert(&mem);
			if (variable->is_managed)
				global_share(module->pub.ctx, global);
		}
	}
	if (result == CUDA_SUCCESS) {
		*ret_addr = global->addr;
		*ret_size = global->size;
	}
	pthread_mutex_unlock(&module->lock);
	return result;
}
