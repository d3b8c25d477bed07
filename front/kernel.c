/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* obf_kern: a kernel of a library, which has one function per context; cuKernel*. */
#include <stdlib.h>
#include <string.h>

#include "protocol/obf_calls.h"
#include "front/private.h"

static struct ob_ids kern_ids = OB_IDS_INIT(OBF_KIND_KERNEL, OB_IDS_MAX);

struct obf_kern *obf_kern_find(CUkernel handle)
{
	return ob_ids_get(&kern_ids, (uint64_t)(uintptr_t)handle);
}

CUresult obf_kern_new(struct obf_library *library, const char *name, struct obf_kern **ret)
{
	struct obf_kern *kern = calloc(1, sizeof *kern);

	if (!kern)
		return CUDA_ERROR_OUT_OF_MEMORY;
	kern->library = library;
	kern->name = strdup(name);
	kern->handle = kern->name ? (CUkernel)(uintptr_t)ob_ids_add(&kern_ids, kern) : NULL;
	if (!kern->handle) {
		obf_kern_free(kern);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = kern;
	return CUDA_SUCCESS;
}

void obf_kern_free(struct obf_kern *kern)
{
	if (!kern)
		return;
	ob_ids_remove(&kern_ids, (uint64_t)(uintptr_t)kern->handle);
	for (struct obf_override *o = kern->overrides, *next; o; o = next) {
		next = o->next;
		free(o);
	}
	free(atomic_load(&kern->more));
	free(kern->name);
	free(kern);
}

/* Returns the row of a context; NULL if the outer rows are not allocated yet. */
static struct obf_func *_Atomic *row_at(struct obf_kern *kern, uint32_t slot)
{
	struct obf_func *_Atomic *more;

	if (slot < OBF_KERN_INLINE)
		return &kern->by_slot[slot];
	more = atomic_load_explicit(&kern->more, memory_order_acquire);
	return more ? &more[slot] : NULL;
}

/* The same, but allocates the rows; under the library's lock. */
static struct obf_func *_Atomic *row_make(struct obf_kern *kern, uint32_t slot)
{
	struct obf_func *_Atomic *row = row_at(kern, slot);
	struct obf_func *_Atomic *more;

	if (row)
		return row;
	more = calloc(OBF_CTX_MAX, sizeof *more);
	if (!more)
		return NULL;
	atomic_store_explicit(&kern->more, more, memory_order_release);
	return &more[slot];
}

void obf_kern_forget(struct obf_kern *kern, uint32_t slot)
{
	struct obf_func *_Atomic *row = row_at(kern, slot);

	if (row)
		atomic_store(row, NULL);
}

CUresult obf_kern_function(
	struct obf_kern *kern, struct obf_context *context, struct obf_function **ret)
{
	struct obf_library *library = kern->library;
	struct obf_func *_Atomic *row = row_at(kern, context->slot);
	struct obf_func *func = row ? atomic_load_explicit(row, memory_order_acquire) : NULL;
	const struct obi_kernel *kernel;
	struct obf_module *module;
	CUresult result;

	if (func) {
		*ret = obf_function_of(func);
		return CUDA_SUCCESS;
	}
	result = obf_library_module(library, context, NULL, &module);
	if (result != CUDA_SUCCESS)
		return result;
	/*
	 * Devices may use different entries of the image, which have only the kernel's name in
	 * common.
	 */
	kernel = obi_symbols_kernel(module->pub.symbols, kern->name);
	if (!kernel)
		return CUDA_ERROR_NOT_FOUND;
	result = obf_function_get(module, (size_t)(kernel - module->pub.symbols->kernels), ret);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&library->lock);
	row = row_make(kern, context->slot);
	if (row && !atomic_load(row)) {
		for (const struct obf_override *o = kern->overrides; o; o = o->next)
			if (o->device == context->pub.device)
				obf_function_set_attr(*ret, o->attr, o->value);
		/* Release: a thread that finds the function sees its attributes. */
		atomic_store_explicit(row, &(*ret)->pub, memory_order_release);
	}
	pthread_mutex_unlock(&library->lock);
	return row ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * Returns the function that is used to query a kernel on a device without loading it in other
 * contexts. NULL: the device has no context.
 */
static CUresult device_function(struct obf_kern *kern, CUdevice dev, struct obf_function **ret)
{
	struct obf_ctx *ctx = obf_ctx_peek();
	CUresult result;

	*ret = NULL;
	if (!ctx || ctx->device != dev || !atomic_load(&ctx->active))
		ctx = obf_ctx_primary(dev);
	if (!atomic_load(&ctx->active))
		return CUDA_SUCCESS;
	result = obf_context_check(obf_context_of(ctx));
	return result != CUDA_SUCCESS ? result : obf_kern_function(kern, obf_context_of(ctx), ret);
}

static CUresult find(CUkernel handle, const void *ret, struct obf_kern **ret_kern)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	*ret_kern = obf_kern_find(handle);
	if (!*ret_kern)
		return CUDA_ERROR_INVALID_HANDLE;
	return ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult find_for(CUkernel handle, const void *ret, CUdevice dev, struct obf_kern **ret_kern)
{
	CUresult result = find(handle, ret, ret_kern);

	return result == CUDA_SUCCESS && !obf_device_valid(dev) ? CUDA_ERROR_INVALID_DEVICE
								: result;
}

/*
 * Attributes of a kernel on a device that has no context yet: those of the image, and those that
 * were set for the device.
 */
static CUresult attrs_estimate(struct obf_kern *kern, CUdevice dev, struct obf_function *ret)
{
	const struct obf_code *code = kern->library->code[dev];
	const struct obi_kernel *kernel =
		code ? obi_symbols_kernel(&code->symbols, kern->name) : NULL;

	if (!kernel)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	memset(ret, 0, sizeof *ret);
	ret->kernel = kernel;
	ret->device = &obf_process.devices[dev];
	obf_func_attrs_estimate(kernel, &code->symbols, ret->device, &ret->pub.attrs);
	pthread_mutex_lock(&kern->library->lock);
	for (const struct obf_override *o = kern->overrides; o; o = o->next)
		if (o->device == dev)
			*obf_func_attr_at(&ret->pub.attrs, o->attr) = o->value;
	pthread_mutex_unlock(&kern->library->lock);
	return CUDA_SUCCESS;
}

CUresult obf_cuKernelGetAttribute(
	int *value, CUfunction_attribute attr, CUkernel handle, CUdevice dev)
{
	struct obf_function *function, image;
	struct obf_kern *kern;
	const int *at;
	CUresult result = find_for(handle, value, dev, &kern);

	if (result != CUDA_SUCCESS)
		return result;
	result = device_function(kern, dev, &function);
	if (result != CUDA_SUCCESS)
		return result;
	if (function)
		return obf_function_get_attr(function, attr, value);
	result = attrs_estimate(kern, dev, &image);
	if (result != CUDA_SUCCESS)
		return result;
	at = obf_func_attr_at(&image.pub.attrs, attr);
	if (!at)
		return CUDA_ERROR_INVALID_VALUE;
	*value = *at;
	return CUDA_SUCCESS;
}

/* Stores an attribute for future contexts; under the library's lock. */
static CUresult override_put(
	struct obf_kern *kern, CUdevice dev, CUfunction_attribute attr, int value)
{
	struct obf_override *o;

	for (o = kern->overrides; o; o = o->next)
		if (o->device == dev && o->attr == attr)
			break;
	if (!o) {
		o = calloc(1, sizeof *o);
		if (!o)
			return CUDA_ERROR_OUT_OF_MEMORY;
		*o = (struct obf_override){ dev, attr, value, kern->overrides };
		kern->overrides = o;
	}
	o->value = value;
	return CUDA_SUCCESS;
}

CUresult obf_cuKernelSetAttribute(
	CUfunction_attribute attr, int value, CUkernel handle, CUdevice dev)
{
	struct obf_function image;
	struct obf_kern *kern;
	CUresult result = find_for(handle, handle, dev, &kern);

	if (result != CUDA_SUCCESS)
		return result;
	result = attrs_estimate(kern, dev, &image);
	if (result == CUDA_SUCCESS)
		result = obf_function_settable(&image, attr, value);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&kern->library->lock);
	result = override_put(kern, dev, attr, value);
	for (uint32_t slot = 0; result == CUDA_SUCCESS && slot < OBF_CTX_MAX; slot++) {
		struct obf_func *_Atomic *row = row_at(kern, slot);
		struct obf_func *func = row ? atomic_load(row) : NULL;

		if (!row)
			break;
		if (func && func->mod->ctx->device == dev)
			result = obf_function_set_attr(obf_function_of(func), attr, value);
	}
	pthread_mutex_unlock(&kern->library->lock);
	return result;
}

CUresult obf_cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice dev)
{
	struct obf_kern *kern;
	CUresult result = find_for(handle, handle, dev, &kern);

	if (result != CUDA_SUCCESS)
		return result;
	return (int)config >= CU_FUNC_CACHE_PREFER_NONE && (int)config <= CU_FUNC_CACHE_PREFER_EQUAL
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuKernelGetFunction(CUfunction *ret, CUkernel handle)
{
	struct obf_function *function;
	struct obf_kern *kern;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result == CUDA_SUCCESS)
		result = find(handle, ret, &kern);
	if (result == CUDA_SUCCESS)
		result = obf_kern_function(kern, obf_context_of(ctx), &function);
	if (result == CUDA_SUCCESS)
		*ret = function->pub.handle;
	return result;
}

CUresult obf_cuKernelGetLibrary(CUlibrary *ret, CUkernel handle)
{
	struct obf_kern *kern;
	CUresult result = find(handle, ret, &kern);

	if (result == CUDA_SUCCESS)
		*ret = kern->library->handle;
	return result;
}

CUresult obf_cuKernelGetName(const char **name, CUkernel handle)
{
	struct obf_kern *kern;
	struct obf_function *function;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!handle || !name)
		return CUDA_ERROR_INVALID_VALUE;
	result = find(handle, name, &kern);
	if (result == CUDA_SUCCESS) {
		*name = kern->name;
		return CUDA_SUCCESS;
	}
	/* A CUfunction cast to CUkernel is accepted as well. */
	function = name ? obf_function_find((CUfunction)(void *)handle) : NULL;
	if (!function)
		return result;
	*name = function->pub.name;
	return CUDA_SUCCESS;
}

CUresult obf_cuKernelGetParamInfo(CUkernel handle, size_t index, size_t *offset, size_t *size)
{
	const struct obi_kernel *kernel;
	struct obf_kern *kern;
	CUresult result = find(handle, offset, &kern);

	if (result != CUDA_SUCCESS)
		return result;
	kernel = obi_symbols_kernel(&kern->library->first->symbols, kern->name);
	if (!kernel || index >= kernel->n_params)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = kernel->params[index].offset;
	if (size)
		*size = kernel->params[index].size;
	return CUDA_SUCCESS;
}
