/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cuModule*. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "protocol/obf_calls.h"
#include "front/jit.h"
#include "front/private.h"

/* Takes ownership of the opened image and closes it in every case. */
static CUresult load(CUmodule *ret, struct obi_image *image, const struct obf_jit *jit)
{
	struct obf_code *code = NULL;
	struct obf_module *module;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result == CUDA_SUCCESS)
		/*
		 * The code's bytes belong to the caller and may be freed after the load. Nothing
		 * reads them again, because a module is loaded once.
		 */
		result = obf_code_new(image, obf_ctx_device(ctx), true, &code);
	if (result == CUDA_SUCCESS)
		result = obf_module_load(obf_context_of(ctx), code, NULL, jit, &module);
	if (result == CUDA_SUCCESS)
		*ret = module->pub.handle;
	obf_code_unref(code);
	obi_image_fini(image);
	return result;
}

CUresult obf_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n_options,
	CUjit_option *options, void **values)
{
	struct obf_jit jit = { n_options, options, values };
	struct obi_image opened;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);
	enum ob_err err;

	if (result != CUDA_SUCCESS)
		return result;
	if (!module || !image || !obf_jit_valid(n_options, options, values))
		return CUDA_ERROR_INVALID_VALUE;
	err = obi_image_open(image, &opened);
	return err ? obf_explain_refused(err) : load(module, &opened, &jit);
}

CUresult obf_cuModuleLoadData(CUmodule *module, const void *image)
{
	return obf_cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult obf_cuModuleLoadFatBinary(CUmodule *module, const void *fatbin)
{
	return obf_cuModuleLoadDataEx(module, fatbin, 0, NULL, NULL);
}

CUresult obf_cuModuleLoad(CUmodule *module, const char *path)
{
	OB_CLEANUP(ob_freep) void *data = NULL;
	struct obi_image opened;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);
	enum ob_err err;
	size_t size;

	if (result != CUDA_SUCCESS)
		return result;
	if (!module || !path)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_file_read(path, &data, &size);
	if (result != CUDA_SUCCESS)
		return result;
	err = obi_image_open_bounded(data, size, &opened);
	return err ? obf_explain_refused(err) : load(module, &opened, NULL);
}

CUresult obf_cuModuleUnload(CUmodule handle)
{
	struct obf_module *module;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	module = obf_module_find(handle);
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	if (module->library)
		return CUDA_ERROR_NOT_PERMITTED; /* it is unloaded by cuLibraryUnload */
	if (atomic_load(&obf_process.exiting))
		return CUDA_SUCCESS; /* it ends with the process, which waits for no kernel */
	result = obf_ctx_settle(module->pub.ctx);
	obf_module_free(module);
	return result;
}

CUresult obf_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = obf_environment.eager_code ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

/* The common checks of every query of a module. */
static CUresult find(CUmodule handle, const void *ret, struct obf_module **ret_module)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	*ret_module = obf_module_find(handle);
	if (!*ret_module)
		return CUDA_ERROR_INVALID_HANDLE;
	return ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name)
{
	struct obf_module *module;
	struct obf_function *found;
	CUresult result = find(handle, function, &module);
	size_t index;

	if (result == CUDA_SUCCESS)
		result = obf_kernel_index(module->pub.symbols, name, &index);
	if (result == CUDA_SUCCESS)
		result = obf_function_get(module, index, &found);
	if (result == CUDA_SUCCESS)
		*function = found->pub.handle;
	return result;
}

CUresult obf_cuModuleGetFunctionCount(unsigned *count, CUmodule handle)
{
	struct obf_module *module;
	CUresult result = find(handle, count, &module);

	if (result == CUDA_SUCCESS)
		*count = (unsigned)module->pub.symbols->n_kernels;
	return result;
}

CUresult obf_cuModuleEnumerateFunctions(CUfunction *functions, unsigned max, CUmodule handle)
{
	struct obf_module *module;
	CUresult result = find(handle, functions, &module);

	for (size_t i = 0; result == CUDA_SUCCESS && i < max && i < module->pub.symbols->n_kernels;
		i++) {
		struct obf_function *function;

		result = obf_function_get(module, i, &function);
		if (result == CUDA_SUCCESS)
			functions[i] = function->pub.handle;
	}
	return result;
}

CUresult obf_cuModuleGetGlobal_v2(
	CUdeviceptr *addr, size_t *size, CUmodule handle, const char *name)
{
	struct obf_module *module;
	CUdeviceptr got_addr;
	size_t got_size;
	CUresult result = find(handle, addr ? (void *)addr : (void *)size, &module);

	if (result != CUDA_SUCCESS)
		return result;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_module_global(module, name, &got_addr, &got_size);
	if (result != CUDA_SUCCESS)
		return result;
	if (addr)
		*addr = got_addr;
	if (size)
		*size = got_size;
	return CUDA_SUCCESS;
}
