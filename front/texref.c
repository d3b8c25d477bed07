/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Texture and surface references: objects, and the calls that find, create and end them. */
#include "front/texref.h"

#include "front/private.h"
#include "protocol/obf_calls.h"

static struct ob_ids texref_ids = OB_IDS_INIT(OBF_KIND_TEXREF, OBF_TEXREF_MAX);
static struct obf_objects texrefs = { .lock = PTHREAD_MUTEX_INITIALIZER, .chunk = 16 };
/* guards the state of all references, and the order in which the backend is told of changes */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * CUDA does not document what a reference holds before the program sets it. These values are those
 * that the runtime's class `texture` has by default.
 */
static const struct obf_texref_state unset = {
	.format = CU_AD_FORMAT_FLOAT,
	.channels = 1,
	.address = { CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP },
};

/* ---- objects ---- */

static struct obf_texref *texref_find(uint64_t handle, bool is_surface)
{
	struct obf_texref *ref = ob_ids_get(&texref_ids, handle);

	return ref && ref->is_surface == is_surface ? ref : NULL;
}

/* mod NULL: it belongs to no module. */
static CUresult texref_new(struct obf_ctx *ctx, const struct obf_mod *mod, const char *name,
	bool is_surface, struct obf_texref **ret)
{
	struct obf_texref *ref = obf_object_take(&texrefs, sizeof *ref, ctx);
	CUresult result = CUDA_SUCCESS;

	if (!ref)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ref->mod = mod;
	ref->name = name;
	ref->is_surface = is_surface;
	ref->state = unset;
	ref->handle = ob_ids_add(&texref_ids, ref);
	if (!ref->handle)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else if (obf_process.backend->texref_open)
		result = obf_process.backend->texref_open(ref);
	if (result == CUDA_SUCCESS) {
		*ret = ref;
		return CUDA_SUCCESS;
	}
	if (ref->handle)
		ob_ids_remove(&texref_ids, ref->handle);
	obf_object_give(&texrefs, &ref->object);
	return result;
}

/* The handle is not live any more. ended: the backend has ended it with its module or context. */
static CUresult texref_close(struct obf_texref *ref, bool ended)
{
	CUresult result = CUDA_SUCCESS;

	if (!ended && obf_process.backend->texref_close)
		result = obf_process.backend->texref_close(ref);
	ob_ids_recycle(&texref_ids, ref->handle);
	obf_object_give(&texrefs, &ref->object);
	return result;
}

void obf_module_texrefs_end(struct obf_module *module)
{
	for (size_t i = 0; i < module->pub.symbols->n_refs; i++)
		if (module->refs[i] && ob_ids_end(&texref_ids, module->refs[i]->handle))
			texref_close(module->refs[i], true);
}

struct end {
	const struct obf_ctx *ctx;
	struct obf_object *list;
};

static void end_collect(void *user, uint64_t id, void *value)
{
	struct obf_texref *ref = value;
	struct end *end = user;

	(void)id;
	if (ref->ctx != end->ctx)
		return;
	ref->object.next = end->list;
	end->list = &ref->object;
}

void obf_texrefs_end(const struct obf_ctx *ctx)
{
	struct end end = { .ctx = ctx };

	ob_ids_each(&texref_ids, end_collect, &end);
	while (end.list) {
		struct obf_texref *ref = (struct obf_texref *)(void *)end.list;

		end.list = ref->object.next;
		if (ob_ids_end(&texref_ids, ref->handle))
			texref_close(ref, true);
	}
}

/* ---- the state ---- */

CUresult obf_texref_enter(
	uint64_t handle, bool is_surface, struct obf_ctx **ret_ctx, struct obf_texref **ret)
{
	CUresult result = obf_ctx_enter(ret_ctx);

	if (result != CUDA_SUCCESS)
		return result;
	*ret = texref_find(handle, is_surface);
	return *ret && (*ret)->ctx == *ret_ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void obf_texref_read(struct obf_texref *ref, struct obf_texref_state *ret)
{
	pthread_mutex_lock(&lock);
	*ret = ref->state;
	pthread_mutex_unlock(&lock);
}

void obf_texref_change_begin(struct obf_texref *ref, struct obf_texref_state *ret)
{
	pthread_mutex_lock(&lock);
	*ret = ref->state;
}

CUresult obf_texref_change_end(struct obf_texref *ref, const struct obf_texref_state *next,
	enum obf_texref_setting setting, unsigned dimension, CUresult result)
{
	struct obf_ctx *ctx = ref->ctx;

	if (result == CUDA_SUCCESS && obf_process.backend->texref_set)
		result = obf_process.backend->texref_set(ref, next, setting, dimension);
	if (result == CUDA_SUCCESS)
		ref->state = *next;
	pthread_mutex_unlock(&lock);
	return obf_ctx_result(ctx, result);
}

/* ---- calls ---- */

static CUresult module_ref(
	CUmodule handle, const char *name, bool is_surface, const void *program_ret, uint64_t *ret)
{
	const struct obi_ref *found;
	struct obf_module *module;
	struct obf_texref **place;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	module = obf_module_find(handle);
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!program_ret || !name)
		return CUDA_ERROR_INVALID_VALUE;
	found = obi_symbols_ref(module->pub.symbols, name, is_surface);
	if (!found)
		return CUDA_ERROR_NOT_FOUND;
	place = &module->refs[found - module->pub.symbols->refs];
	pthread_mutex_lock(&module->lock);
	if (!*place)
		result = texref_new(module->pub.ctx, &module->pub, found->name, is_surface, place);
	if (result == CUDA_SUCCESS)
		*ret = (*place)->handle;
	pthread_mutex_unlock(&module->lock);
	return obf_ctx_result(module->pub.ctx, result);
}

CUresult obf_cuModuleGetTexRef(CUtexref *ret, CUmodule module, const char *name)
{
	uint64_t handle = 0;
	CUresult result = module_ref(module, name, false, ret, &handle);

	if (result == CUDA_SUCCESS)
		*ret = (CUtexref)(uintptr_t)handle;
	return result;
}

CUresult obf_cuModuleGetSurfRef(CUsurfref *ret, CUmodule module, const char *name)
{
	uint64_t handle = 0;
	CUresult result = module_ref(module, name, true, ret, &handle);

	if (result == CUDA_SUCCESS)
		*ret = (CUsurfref)(uintptr_t)handle;
	return result;
}

CUresult obf_cuTexRefCreate(CUtexref *ret)
{
	struct obf_texref *ref;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	result = texref_new(ctx, NULL, NULL, false, &ref);
	if (result == CUDA_SUCCESS)
		*ret = (CUtexref)(uintptr_t)ref->handle;
	return obf_ctx_result(ctx, result);
}

CUresult obf_cuTexRefDestroy(CUtexref handle)
{
	struct obf_texref *ref;
	struct obf_ctx *ctx;
	CUresult result = obf_texref_enter((uintptr_t)handle, false, &ctx, &ref);

	if (result != CUDA_SUCCESS)
		return result;
	/* one of a module ends with the module */
	if (ref->mod || !ob_ids_end(&texref_ids, ref->handle))
		return CUDA_ERROR_INVALID_VALUE;
	return obf_ctx_result(ctx, texref_close(ref, false));
}

CUresult obf_cuParamSetTexRef(CUfunction func, int unit, CUtexref handle)
{
	struct obf_function *function;
	const struct obf_texref *ref;
	CUresult result = obf_function_enter(func, &function);

	if (result != CUDA_SUCCESS)
		return result;
	ref = texref_find((uintptr_t)handle, false);
	if (unit != CU_PARAM_TR_DEFAULT || !ref || !ref->mod || ref->ctx != function->pub.mod->ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (obf_process.backend->texref_param)
		result = obf_process.backend->texref_param(ref, &function->pub);
	return obf_ctx_result(ref->ctx, result);
}
