/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* obf_function: a kernel in one context, its attributes; cuFunc*; obf_func_resolve. */
#include <stdlib.h>
#include <string.h>

#include "protocol/obf_calls.h"
#include "front/private.h"

#define BLOCK_MAX        1024
#define CLUSTER_SIDE_MAX 0xffff
#define CARVEOUT_MAX     100

static struct ob_ids function_ids = OB_IDS_INIT(OBF_KIND_FUNC, OB_IDS_MAX);

void obf_func_attrs_estimate(const struct obi_kernel *kernel, const struct obi_symbols *symbols,
	const struct obf_device *device, struct obf_func_attrs *ret)
{
	int block_max =
		obf_device_attr(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, BLOCK_MAX);
	int shared_max =
		obf_device_attr(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10);
	uint64_t required = (uint64_t)kernel->reqntid[0] * ob_max(kernel->reqntid[1], 1u) *
		ob_max(kernel->reqntid[2], 1u);

	*ret = (struct obf_func_attrs){ .max_threads = block_max };
	if (kernel->max_threads > 0 && kernel->max_threads < (uint32_t)block_max)
		ret->max_threads = (int)kernel->max_threads;
	if (required > 0 && required < (uint64_t)ret->max_threads)
		ret->max_threads = (int)required;
	ret->shared_bytes = (int)ob_min(kernel->static_shared, (uint32_t)INT32_MAX);
	ret->registers = (int)ob_min(kernel->registers, 255u);
	ret->ptx_version = (int)symbols->arch;
	ret->binary_version =
		symbols->ptx_version ? (int)obf_device_cc(device) : (int)symbols->arch;
	ret->max_dynamic_shared = ob_max(shared_max - ret->shared_bytes, 0);
	ret->carveout = CU_SHAREDMEM_CARVEOUT_DEFAULT;
}

static bool params_dense(const struct obi_kernel *kernel)
{
	uint32_t end = 0;

	for (uint32_t i = 0; i < kernel->n_params; i++) {
		if (kernel->params[i].offset != end)
			return false;
		end += kernel->params[i].size;
	}
	return end == kernel->param_bytes;
}

static struct obf_function *function_make(struct obf_module *module, size_t index)
{
	struct obf_function *function = calloc(1, sizeof *function);
	const struct obi_kernel *kernel = &module->pub.symbols->kernels[index];

	if (!function)
		return NULL;
	function->kernel = kernel;
	function->device = obf_ctx_device(module->pub.ctx);
	function->dense = params_dense(kernel);
	function->pub.mod = &module->pub;
	function->pub.index = (uint32_t)index;
	function->pub.name = kernel->name;
	function->pub.params = kernel->params;
	function->pub.n_params = kernel->n_params;
	function->pub.param_bytes = kernel->param_bytes;
	obf_func_attrs_estimate(
		kernel, module->pub.symbols, function->device, &function->pub.attrs);
	function->pub.handle = (CUfunction)(uintptr_t)ob_ids_add(&function_ids, function);
	if (!function->pub.handle) {
		free(function);
		return NULL;
	}
	return function;
}

/* The error is in the code: no later attempt can succeed. */
static bool is_final(CUresult result)
{
	return result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_INVALID_IMAGE ||
		result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

CUresult obf_function_load(struct obf_function *function)
{
	struct obf_module *module = obf_module_of(function->pub.mod);
	CUresult result;

	pthread_mutex_lock(&module->lock);
	result = function->refused;
	if (result == CUDA_SUCCESS &&
		!atomic_load_explicit(&function->pub.block_max, memory_order_relaxed)) {
		if (obf_process.backend->func_load)
			result = obf_process.backend->func_load(&function->pub);
		if (result == CUDA_SUCCESS)
			atomic_store_explicit(&function->pub.block_max,
				(uint32_t)function->pub.attrs.max_threads, memory_order_relaxed);
		else if (is_final(result))
			function->refused = result;
	}
	pthread_mutex_unlock(&module->lock);
	return result;
}

CUresult obf_function_get(struct obf_module *module, size_t index, struct obf_function **ret)
{
	struct obf_function *function =
		atomic_load_explicit(&module->functions[index], memory_order_acquire);
	CUresult result = CUDA_SUCCESS;

	if (!function) {
		pthread_mutex_lock(&module->lock);
		function = atomic_load(&module->functions[index]);
		if (!function) {
			function = function_make(module, index);
			result = function ? obf_process.backend->func_get(&function->pub)
					  : CUDA_ERROR_OUT_OF_MEMORY;
			if (result == CUDA_SUCCESS) {
				/* Release: a thread that finds the function sees it complete. */
				atomic_store_explicit(
					&module->functions[index], function, memory_order_release);
			} else {
				obf_function_free(function);
			}
		}
		pthread_mutex_unlock(&module->lock);
	}
	if (result == CUDA_SUCCESS)
		*ret = function;
	return result;
}

void obf_function_free(struct obf_function *function)
{
	if (!function)
		return;
	ob_ids_remove(&function_ids, (uint64_t)(uintptr_t)function->pub.handle);
	free(atomic_load(&function->old));
	free(function);
}

struct obf_function *obf_function_find(CUfunction handle)
{
	return ob_ids_get(&function_ids, (uint64_t)(uintptr_t)handle);
}

CUresult obf_func_resolve(CUfunction handle, struct obf_ctx *ctx, struct obf_func **ret)
{
	uint8_t kind = ob_id_kind((uint64_t)(uintptr_t)handle);
	struct obf_function *function;
	CUresult result;

	if (kind == OBF_KIND_KERNEL) {
		struct obf_kern *kern = obf_kern_find((CUkernel)(void *)handle);
		struct obf_context *context = obf_context_of(ctx);

		if (!kern)
			return CUDA_ERROR_INVALID_HANDLE;
		if (ob_likely(context->slot < OBF_KERN_INLINE)) {
			/* Acquire: pairs with the release in obf_kern_function. */
			*ret = atomic_load_explicit(
				&kern->by_slot[context->slot], memory_order_acquire);
			if (ob_likely(*ret != NULL))
				return CUDA_SUCCESS;
		}
		result = obf_kern_function(kern, context, &function);
		if (result == CUDA_SUCCESS)
			*ret = &function->pub;
		return result;
	}
	function = kind == OBF_KIND_FUNC ? obf_function_find(handle) : NULL;
	if (!function || function->pub.mod->ctx != ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = &function->pub;
	return CUDA_SUCCESS;
}

CUresult obf_function_enter(CUfunction handle, struct obf_function **ret)
{
	struct obf_ctx *ctx;
	struct obf_func *func;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	/*
	 * A function may be queried while another context is current; launches require its own
	 * context.
	 */
	if (ob_id_kind((uint64_t)(uintptr_t)handle) == OBF_KIND_FUNC) {
		*ret = obf_function_find(handle);
		return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	}
	result = obf_func_resolve(handle, ctx, &func);
	if (result == CUDA_SUCCESS)
		*ret = obf_function_of(func);
	return result;
}

/* ---- attributes ---- */

int *obf_func_attr_at(struct obf_func_attrs *attrs, CUfunction_attribute attr)
{
	switch ((int)attr) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		return &attrs->max_threads;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		return &attrs->shared_bytes;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
		return &attrs->const_bytes;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		return &attrs->local_bytes;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		return &attrs->registers;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		return &attrs->ptx_version;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		return &attrs->binary_version;
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
		return &attrs->cache_ca;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		return &attrs->max_dynamic_shared;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return &attrs->carveout;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
		return &attrs->cluster_must;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		return &attrs->cluster[attr - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		return &attrs->non_portable_cluster;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		return &attrs->cluster_policy;
	default:
		return NULL;
	}
}

CUresult obf_function_exact(struct obf_function *function)
{
	struct obf_module *module = obf_module_of(function->pub.mod);
	CUresult result = CUDA_SUCCESS;

	if (atomic_load_explicit(&function->exact, memory_order_acquire))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&module->lock);
	if (!function->pub.attrs.exact) {
		if (obf_process.backend->func_attrs)
			result = obf_process.backend->func_attrs(&function->pub);
		/* A value that the program has set overrides the device's value. */
		for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; i++)
			if (function->pub.set_mask & 1u << i)
				*obf_func_attr_at(&function->pub.attrs, (CUfunction_attribute)i) =
					function->set_value[i];
		if (atomic_load_explicit(&function->pub.block_max, memory_order_relaxed))
			atomic_store_explicit(&function->pub.block_max,
				(uint32_t)function->pub.attrs.max_threads, memory_order_relaxed);
	}
	if (result == CUDA_SUCCESS) {
		function->pub.attrs.exact = true;
		atomic_store_explicit(&function->exact, true, memory_order_release);
	}
	pthread_mutex_unlock(&module->lock);
	return result;
}

CUresult obf_function_get_attr(struct obf_function *function, CUfunction_attribute attr, int *ret)
{
	const int *at = obf_func_attr_at(&function->pub.attrs, attr);
	CUresult result;

	if (!at)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(function->pub.set_mask & 1u << attr)) {
		result = obf_function_exact(function);
		if (result != CUDA_SUCCESS)
			return result;
	}
	*ret = *at;
	return CUDA_SUCCESS;
}

/* CUDA_SUCCESS, or the error with which the program may not set this. */
CUresult obf_function_settable(
	const struct obf_function *function, CUfunction_attribute attr, int value)
{
	int optin;

	switch ((int)attr) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		optin = obf_device_attr(function->device,
			CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
			obf_device_attr(function->device,
				CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10));
		return value >= 0 && value <= optin - function->pub.attrs.shared_bytes
			? CUDA_SUCCESS
			: CUDA_ERROR_INVALID_VALUE;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return value >= CU_SHAREDMEM_CARVEOUT_DEFAULT && value <= CARVEOUT_MAX
			? CUDA_SUCCESS
			: CUDA_ERROR_INVALID_VALUE;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		if (function->pub.attrs.cluster_must && !(function->pub.set_mask & 1u << attr))
			return CUDA_ERROR_NOT_PERMITTED;
		return value >= 0 && value <= CLUSTER_SIDE_MAX ? CUDA_SUCCESS
							       : CUDA_ERROR_INVALID_VALUE;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		return value == 0 || value == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		return value >= 0 && value <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING
			? CUDA_SUCCESS
			: CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult obf_function_set_attr(struct obf_function *function, CUfunction_attribute attr, int value)
{
	struct obf_module *module = obf_module_of(function->pub.mod);
	CUresult result = obf_function_settable(function, attr, value);

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&module->lock);
	*obf_func_attr_at(&function->pub.attrs, attr) = value;
	function->set_value[attr] = value;
	function->pub.set_mask |= 1u << attr;
	pthread_mutex_unlock(&module->lock);
	return obf_process.backend->func_set_attr
		? obf_process.backend->func_set_attr(&function->pub, attr, value)
		: CUDA_SUCCESS;
}

CUresult obf_cuFuncGetAttribute(int *value, CUfunction_attribute attr, CUfunction handle)
{
	struct obf_function *function;
	CUresult result = obf_function_enter(handle, &function);

	if (result != CUDA_SUCCESS)
		return result;
	return value ? obf_function_get_attr(function, attr, value) : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attr, int value)
{
	struct obf_function *function;
	CUresult result = obf_function_enter(handle, &function);

	return result != CUDA_SUCCESS ? result : obf_function_set_attr(function, attr, value);
}

/*
 * Cache and bank preferences are hints that current devices ignore; only their values are checked.
 */
CUresult obf_cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
	struct obf_function *function;
	CUresult result = obf_function_enter(handle, &function);

	if (result != CUDA_SUCCESS)
		return result;
	return (int)config >= CU_FUNC_CACHE_PREFER_NONE && (int)config <= CU_FUNC_CACHE_PREFER_EQUAL
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config)
{
	struct obf_function *function;
	CUresult result = obf_function_enter(handle, &function);

	if (result != CUDA_SUCCESS)
		return result;
	return (int)config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
			(int)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuFuncGetModule(CUmodule *module, CUfunction handle)
{
	struct obf_function *function;
	CUresult result = obf_function_enter(handle, &function);

	if (result != CUDA_SUCCESS)
		return result;
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	*module = function->pub.mod->handle;
	return CUDA_SUCCESS;
}

CUresult obf_cuFuncGetName(const char **name, CUfunction handle)
{
	struct obf_function *function;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!handle || !name)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_function_enter(handle, &function);
	if (result != CUDA_SUCCESS)
		return result;
	*name = function->pub.name;
	return CUDA_SUCCESS;
}

CUresult obf_cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size)
{
	struct obf_function *function;
	CUresult result = obf_function_enter(handle, &function);

	if (result != CUDA_SUCCESS)
		return result;
	if (!offset || index >= function->pub.n_params)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = function->pub.params[index].offset;
	if (size)
		*size = function->pub.params[index].size;
	return CUDA_SUCCESS;
}

CUresult obf_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle)
{
	struct obf_function *function;
	CUresult result = obf_function_enter(handle, &function);

	if (result != CUDA_SUCCESS)
		return result;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	/* a function exists as soon as its module is loaded */
	*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return CUDA_SUCCESS;
}

CUresult obf_cuFuncLoad(CUfunction handle)
{
	struct obf_function *function;
	CUresult result = obf_function_enter(handle, &function);

	return result != CUDA_SUCCESS ? result : obf_function_load(function);
}
