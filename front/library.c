/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_library: an image that belongs to no context. Its kernels are created at once from the
 * symbols. A context loads a module of it when a kernel or variable is first used there, so loading
 * a library costs no message and no device time. There are two exceptions. PTX text and bare cubins
 * are loaded at once in the current context, because the load call must return their errors.
 * CUDA_MODULE_LOADING=EAGER loads the library in every context, including those created later.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "protocol/obf_calls.h"
#include "front/jit.h"
#include "front/private.h"

static struct ob_ids library_ids = OB_IDS_INIT(OBF_KIND_LIBRARY, OB_IDS_MAX);
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct obf_library *libraries; /* under list_lock */

struct obf_library *obf_library_find(CUlibrary handle)
{
	return ob_ids_get(&library_ids, (uint64_t)(uintptr_t)handle);
}

static void library_link(struct obf_library *library)
{
	pthread_mutex_lock(&list_lock);
	library->next = libraries;
	library->link = &libraries;
	if (libraries)
		libraries->link = &library->next;
	libraries = library;
	pthread_mutex_unlock(&list_lock);
}

static void library_unlink(struct obf_library *library)
{
	pthread_mutex_lock(&list_lock);
	if (library->link) {
		*library->link = library->next;
		if (library->next)
			library->next->link = library->link;
		library->link = NULL;
	}
	pthread_mutex_unlock(&list_lock);
}

static void library_free(struct obf_library *library)
{
	if (!library)
		return;
	library_unlink(library);
	ob_ids_remove(&library_ids, (uint64_t)(uintptr_t)library->handle);
	for (size_t i = 0; i < library->n_modules; i++)
		if (library->modules[i])
			obf_module_free(library->modules[i]);
	for (size_t i = 0; library->kerns && i < library->first->symbols.n_kernels; i++)
		obf_kern_free(atomic_load(&library->kerns[i]));
	for (int i = 0; i < OBF_DEVICE_MAX; i++)
		obf_code_unref(library->code[i]);
	free(library->modules);
	free(library->kerns);
	pthread_mutex_destroy(&library->lock);
	free(library);
}

/*
 * Selects code for every device that the image supports. Fails if there is none, or if the code
 * selected for a device is damaged.
 */
static CUresult library_select(
	struct obf_library *library, const struct obi_image *image, bool keep)
{
	CUresult none = CUDA_ERROR_NO_BINARY_FOR_GPU;

	for (int i = 0; i < obf_process.n_devices; i++) {
		const struct obf_device *device = &obf_process.devices[i];
		CUresult result;
		int j;

		for (j = 0; j < i; j++)
			if (obf_device_cc(&obf_process.devices[j]) == obf_device_cc(device) &&
				obf_process.devices[j].ptx_only == device->ptx_only)
				break;
		if (j < i) {
			library->code[i] = library->code[j] ? obf_code_ref(library->code[j]) : NULL;
			continue;
		}
		result = obf_code_new(image, device, keep, &library->code[i]);
		if (result != CUDA_SUCCESS && result != CUDA_ERROR_NO_BINARY_FOR_GPU)
			return result;
		if (result == CUDA_SUCCESS && !library->first)
			library->first = library->code[i];
	}
	return library->first ? CUDA_SUCCESS : none;
}

/* Without an array of values every value is 0: cuBLASLt passes the option without values. */
static bool option_preserved(unsigned n, const CUlibraryOption *options, void **values)
{
	for (unsigned i = 0; i < n; i++)
		if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
			return values && values[i] != NULL;
	return false;
}

/*
 * Loads the library in one context, which is made current meanwhile, as for any other load.
 * Succeeds if the library has no code for the device.
 */
static CUresult library_load(
	struct obf_library *library, struct obf_context *context, const struct obf_jit *jit)
{
	struct obf_module *module;
	CUresult result;

	if (!library->code[context->pub.device])
		return CUDA_SUCCESS;
	result = obf_stack_push(context);
	if (result != CUDA_SUCCESS)
		return result;
	result = obf_library_module(library, context, jit, &module);
	obf_stack_pop(NULL);
	return result;
}

/* Loads that must not be deferred to the first use of a kernel. */
static CUresult library_load_now(struct obf_library *library, const struct obf_jit *jit)
{
	struct obf_ctx *ctx = obf_ctx_peek();
	CUresult result = CUDA_SUCCESS;
	struct obf_module *module;

	if (!obf_environment.eager_data) {
		if (ctx && atomic_load(&ctx->active) && library->first->from_text)
			result = obf_library_module(library, obf_context_of(ctx), jit, &module);
		return result;
	}
	for (uint32_t slot = 0; slot < OBF_CTX_MAX && result == CUDA_SUCCESS; slot++) {
		struct obf_context *context = obf_context_at(slot);

		if (context)
			result = library_load(library, context, jit);
	}
	return result;
}

CUresult obf_libraries_load(struct obf_context *context)
{
	CUresult result = CUDA_SUCCESS;

	if (!obf_environment.eager_data)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&list_lock);
	for (struct obf_library *library = libraries; library && result == CUDA_SUCCESS;
		library = library->next)
		result = library_load(library, context, NULL);
	pthread_mutex_unlock(&list_lock);
	return result;
}

static CUresult library_new(
	CUlibrary *ret, const struct obi_image *image, bool keep, const struct obf_jit *jit)
{
	struct obf_library *library = calloc(1, sizeof *library);
	CUresult result;

	if (!library)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&library->lock, NULL);
	result = library_select(library, image, keep);
	if (result == CUDA_SUCCESS) {
		library->kerns =
			calloc(library->first->symbols.n_kernels + 1, sizeof *library->kerns);
		library->handle = (CUlibrary)(uintptr_t)ob_ids_add(&library_ids, library);
		if (!library->kerns || !library->handle)
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result == CUDA_SUCCESS) {
		library_link(library);
		result = library_load_now(library, jit);
	}
	if (result != CUDA_SUCCESS) {
		library_free(library);
		return result;
	}
	*ret = library->handle;
	return CUDA_SUCCESS;
}

static CUresult arguments_check(const void *ret, const void *from, const struct obf_jit *jit,
	unsigned n_options, const void *options)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || !from || !obf_jit_valid(jit->n, jit->options, jit->values) ||
		n_options > CU_LIBRARY_NUM_OPTIONS || (n_options > 0 && !options))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult obf_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options,
	void **jit_values, unsigned n_jit, CUlibraryOption *options, void **values,
	unsigned n_options)
{
	struct obf_jit jit = { n_jit, jit_options, jit_values };
	struct obi_image image;
	CUresult result = arguments_check(library, code, &jit, n_options, options);
	enum ob_err err;

	if (result != CUDA_SUCCESS)
		return result;
	err = obi_image_open(code, &image);
	if (err)
		return obf_explain_refused(err);
	result = library_new(library, &image, option_preserved(n_options, options, values), &jit);
	obi_image_fini(&image);
	return result;
}

CUresult obf_cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit_options,
	void **jit_values, unsigned n_jit, CUlibraryOption *options, void **values,
	unsigned n_options)
{
	OB_CLEANUP(ob_freep) void *data = NULL;
	struct obf_jit jit = { n_jit, jit_options, jit_values };
	struct obi_image image;
	CUresult result = arguments_check(library, path, &jit, n_options, options);
	enum ob_err err;
	size_t size;

	/*
	 * the only option states whether the program keeps its image; a file is read into memory of
	 * the library
	 */
	(void)values;
	if (result != CUDA_SUCCESS)
		return result;
	result = obf_file_read(path, &data, &size);
	if (result != CUDA_SUCCESS)
		return result;
	err = obi_image_open_bounded(data, size, &image);
	if (err)
		return obf_explain_refused(err);
	result = library_new(library, &image, false, &jit);
	obi_image_fini(&image);
	return result;
}

static CUresult find(CUlibrary handle, const void *ret, struct obf_library **ret_library)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	*ret_library = obf_library_find(handle);
	if (!*ret_library)
		return CUDA_ERROR_INVALID_HANDLE;
	return ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/*
 * Kernels of the library may run in each context that has a module of it. Returns the first error.
 */
static CUresult library_settle(const struct obf_library *library)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < library->n_modules; i++)
		if (library->modules[i]) {
			CUresult one = obf_ctx_settle(library->modules[i]->pub.ctx);

			result = result ? result : one;
		}
	return result;
}

CUresult obf_cuLibraryUnload(CUlibrary handle)
{
	struct obf_library *library;
	CUresult result = find(handle, handle, &library);

	if (result != CUDA_SUCCESS)
		return result;
	if (atomic_load(&obf_process.exiting))
		return CUDA_SUCCESS; /* it ends with the process, which waits for no kernel */
	result = library_settle(library);
	library_free(library);
	return result;
}

CUresult obf_library_module(struct obf_library *library, struct obf_context *context,
	const struct obf_jit *jit, struct obf_module **ret)
{
	struct obf_code *code = library->code[context->pub.device];
	struct obf_module **grown;
	CUresult result = CUDA_SUCCESS;

	if (!code)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	pthread_mutex_lock(&library->lock);
	if (context->slot >= library->n_modules) {
		grown = realloc(library->modules, (context->slot + 1) * sizeof *grown);
		if (grown) {
			memset(grown + library->n_modules, 0,
				(context->slot + 1 - library->n_modules) * sizeof *grown);
			library->modules = grown;
			library->n_modules = context->slot + 1;
		} else {
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (result == CUDA_SUCCESS && !library->modules[context->slot])
		result = obf_module_load(
			context, code, library, jit, &library->modules[context->slot]);
	if (result == CUDA_SUCCESS)
		*ret = library->modules[context->slot];
	pthread_mutex_unlock(&library->lock);
	return result;
}

void obf_libraries_forget(struct obf_context *context)
{
	pthread_mutex_lock(&list_lock);
	for (struct obf_library *library = libraries; library; library = library->next) {
		pthread_mutex_lock(&library->lock);
		/* The module is in the context's list and is freed from there. */
		if (context->slot < library->n_modules)
			library->modules[context->slot] = NULL;
		for (size_t i = 0; i < library->first->symbols.n_kernels; i++) {
			struct obf_kern *kern = atomic_load(&library->kerns[i]);

			if (kern)
				obf_kern_forget(kern, context->slot);
		}
		pthread_mutex_unlock(&library->lock);
	}
	pthread_mutex_unlock(&list_lock);
}

CUresult obf_library_kern(struct obf_library *library, size_t index, struct obf_kern **ret)
{
	struct obf_kern *kern = atomic_load_explicit(&library->kerns[index], memory_order_acquire);
	CUresult result = CUDA_SUCCESS;

	if (!kern) {
		pthread_mutex_lock(&library->lock);
		kern = atomic_load(&library->kerns[index]);
		if (!kern) {
			result = obf_kern_new(
				library, library->first->symbols.kernels[index].name, &kern);
			if (result == CUDA_SUCCESS)
				/* Release: a thread that finds the kernel sees it complete. */
				atomic_store_explicit(
					&library->kerns[index], kern, memory_order_release);
		}
		pthread_mutex_unlock(&library->lock);
	}
	if (result == CUDA_SUCCESS)
		*ret = kern;
	return result;
}

CUresult obf_cuLibraryGetKernel(CUkernel *ret, CUlibrary handle, const char *name)
{
	struct obf_library *library;
	struct obf_kern *kern;
	CUresult result = find(handle, ret, &library);
	size_t index;

	if (result == CUDA_SUCCESS)
		result = obf_kernel_index(&library->first->symbols, name, &index);
	if (result == CUDA_SUCCESS)
		result = obf_library_kern(library, index, &kern);
	if (result == CUDA_SUCCESS)
		*ret = kern->handle;
	return result;
}

CUresult obf_cuLibraryGetKernelCount(unsigned *count, CUlibrary handle)
{
	struct obf_library *library;
	CUresult result = find(handle, count, &library);

	if (result == CUDA_SUCCESS)
		*count = (unsigned)library->first->symbols.n_kernels;
	return result;
}

CUresult obf_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned max, CUlibrary handle)
{
	struct obf_library *library;
	CUresult result = find(handle, kernels, &library);

	for (size_t i = 0;
		result == CUDA_SUCCESS && i < max && i < library->first->symbols.n_kernels; i++) {
		struct obf_kern *kern;

		result = obf_library_kern(library, i, &kern);
		if (result == CUDA_SUCCESS)
			kernels[i] = kern->handle;
	}
	return result;
}

/* Returns the library's module in the current context. */
static CUresult enter(CUlibrary handle, const void *ret, struct obf_module **ret_module)
{
	struct obf_library *library;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	result = find(handle, ret, &library);
	return result != CUDA_SUCCESS
		? result
		: obf_library_module(library, obf_context_of(ctx), NULL, ret_module);
}

CUresult obf_cuLibraryGetModule(CUmodule *ret, CUlibrary handle)
{
	struct obf_module *module;
	CUresult result = enter(handle, ret, &module);

	if (result == CUDA_SUCCESS)
		*ret = module->pub.handle;
	return result;
}

CUresult obf_cuLibraryGetGlobal(CUdeviceptr *addr, size_t *size, CUlibrary handle, const char *name)
{
	struct obf_module *module;
	CUdeviceptr got_addr;
	size_t got_size;
	CUresult result = enter(handle, addr ? (void *)addr : (void *)size, &module);

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

/* A managed variable belongs to no context; here it is the one of the module in this context. */
static CUresult managed_context(struct obf_context **ret)
{
	struct obf_ctx *ctx = obf_ctx_peek();

	if (ctx) {
		*ret = obf_context_of(ctx);
		return CUDA_SUCCESS;
	}
	/* Never released: the variable exists as long as the library. */
	return obf_primary_retain(0, ret);
}

struct managed_get {
	struct obf_library *library;
	const char *name;
	CUdeviceptr addr;
	size_t size;
};

static CUresult managed_get(struct obf_ctx *ctx, void *user)
{
	struct managed_get *get = user;
	struct obf_module *module;
	struct obf_mem mem;
	CUresult result = obf_library_module(get->library, obf_context_of(ctx), NULL, &module);

	if (result == CUDA_SUCCESS)
		result = obf_module_global(module, get->name, &get->addr, &get->size);
	if (result != CUDA_SUCCESS)
		return result;
	return obf_mem_find(get->addr, &mem) && mem.sharing == OBF_SHARING_MANAGED
		? CUDA_SUCCESS
		: obf_absent("cuLibraryGetManaged",
			  "this process uses the addresses of the variable for something else");
}

CUresult obf_cuLibraryGetManaged(
	CUdeviceptr *addr, size_t *size, CUlibrary handle, const char *name)
{
	struct managed_get get = { .name = name };
	const struct obi_variable *variable;
	struct obf_context *context;
	CUresult result = find(handle, addr ? (void *)addr : (void *)size, &get.library);

	if (result != CUDA_SUCCESS)
		return result;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	variable = obi_symbols_variable(&get.library->first->symbols, name);
	if (!variable || !variable->is_managed)
		return CUDA_ERROR_NOT_FOUND;
	result = managed_context(&context);
	if (result == CUDA_SUCCESS)
		result = obf_ctx_run(&context->pub, managed_get, &get);
	if (result != CUDA_SUCCESS)
		return result;
	if (addr)
		*addr = get.addr;
	if (size)
		*size = get.size;
	return CUDA_SUCCESS;
}

CUresult obf_cuLibraryGetUnifiedFunction(void **function, CUlibrary handle, const char *name)
{
	struct obf_library *library;
	CUresult result = find(handle, function, &library);

	if (result != CUDA_SUCCESS)
		return result;
	return name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}
