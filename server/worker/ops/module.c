/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Code: images, modules, functions, variables. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "server/layers/hold.h"
#include "server/layers/quota.h"
#include "server/worker/ops/ops.h"
#include "transport/digest.h"

#define FUNC_WHY_MAX 512u /* bytes of text about a function that cannot run */

/*
 * Options whose value is a number. Options with pointers cannot travel, and log buffers are the
 * server's own.
 */
static bool option_is_number(uint64_t option)
{
	switch (option) {
	case CU_JIT_MAX_REGISTERS:
	case CU_JIT_THREADS_PER_BLOCK:
	case CU_JIT_OPTIMIZATION_LEVEL:
	case CU_JIT_TARGET_FROM_CUCONTEXT:
	case CU_JIT_TARGET:
	case CU_JIT_FALLBACK_STRATEGY:
	case CU_JIT_GENERATE_DEBUG_INFO:
	case CU_JIT_LOG_VERBOSE:
	case CU_JIT_GENERATE_LINE_INFO:
	case CU_JIT_CACHE_MODE:
	case CU_JIT_FAST_COMPILE:
	case CU_JIT_MIN_CTA_PER_SM:
	case CU_JIT_MAX_THREADS_PER_BLOCK:
	case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
	case CU_JIT_SPLIT_COMPILE:
	case CU_JIT_POSITION_INDEPENDENT_CODE:
		return true;
	default:
		return false;
	}
}

/*
 * Sets session->prints if kernels of this image may print: output is then fetched after
 * synchronising calls.
 */
static void look_for_printing(struct obs_session *session, const void *image, size_t size)
{
	if (!atomic_load_explicit(&session->prints, memory_order_relaxed) &&
		(memmem(image, size, "vprintf", 7) || memmem(image, size, "__assertfail", 12)))
		atomic_store_explicit(&session->prints, true, memory_order_relaxed);
}

/*
 * A failed load still enters its id, so that records that the client has already sent for the
 * module are answered and not treated as a protocol violation.
 */
static void module_put(
	struct obs_exec *x, const struct obp_record *rec, uint64_t id, CUmodule module, size_t size)
{
	const struct obs_handle handle = {
		.driver = module, .context = x->context, .extra = module ? size : 0
	};

	if (!obs_handles_put(&x->session->modules, id, &handle))
		obs_violation(x, rec, "the module's id is in use or out of range");
}

static void discharge(const struct obs_context *context, uint64_t size)
{
	if (!size)
		return; /* its load failed, and the charge was given back then */
	obs_quota_discharge(context ? context->device : 0, size);
	obs_hold_give(OBS_HOLD_MODULES, size + OBS_MODULE_BYTES);
}

/*
 * A module takes device memory for its code and variables, and drivers keep a copy of the image in
 * host memory. Only the driver knows how much exactly: the image's size is charged for both, a
 * lower bound. The memory of the software device's compiler is counted separately
 * (server/layers/driver.c).
 */
static CUresult load_allowed(struct obs_exec *x, size_t size)
{
	CUresult result = obs_module_room(x);

	obs_images_spare(&x->session->images, size + OBS_MODULE_BYTES);
	if (result == CUDA_SUCCESS)
		result = obs_quota_host(OBS_HOLD_MODULES, size + OBS_MODULE_BYTES);
	if (result != CUDA_SUCCESS)
		return result;
	result = obs_quota_charge(x->context ? x->context->device : 0, size);
	if (result != CUDA_SUCCESS)
		obs_hold_give(OBS_HOLD_MODULES, size + OBS_MODULE_BYTES);
	return result;
}

static void load_failed(struct obs_exec *x, size_t size)
{
	discharge(x->context, size);
}

/* data ends in a NUL when it is text. */
static CUresult load(struct obs_exec *x, const void *data, size_t size, CUmodule *ret)
{
	CUresult result = load_allowed(x, size);

	if (result != CUDA_SUCCESS)
		return result;
	result = x->drv->cuModuleLoadData(ret, data);
	if (result != CUDA_SUCCESS) {
		*ret = NULL;
		load_failed(x, size);
	} else {
		look_for_printing(x->session, data, size);
	}
	return result;
}

void obs_op_module_load(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_module_load_req *req, const void *image)
{
	OB_CLEANUP(ob_freep) char *text = malloc((size_t)req->size + 1);
	uint8_t digest[OBT_SHA256_BYTES];
	CUmodule module = NULL;
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	obt_digest_sha256(image, req->size, digest);
	if (memcmp(digest, req->sha256, sizeof digest) != 0)
		obs_violation(x, rec, "the image does not match its hash");
	if (text) {
		memcpy(text, image, req->size);
		text[req->size] = '\0';
		result = load(x, text, req->size, &module);
	}
	module_put(x, rec, req->mod, module, req->size);
	obs_async_result(x, rec, result);
}

void obs_op_module_use(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_module_use_req *req)
{
	struct obs_image *image = obs_images_find(&x->session->images, req->sha256);
	CUmodule module = NULL;
	CUresult result = CUDA_ERROR_INVALID_IMAGE;

	if (image)
		result = load(x, image->data, image->size, &module);
	module_put(x, rec, req->mod, module, image ? image->size : 0);
	if (image)
		obs_images_loaded(&x->session->images, image);
	obs_async_result(x, rec, result);
}

/* Bytes of the text that go into the reply: at most `cap`. */
static uint32_t text_size(const char *text, uint32_t cap)
{
	uint32_t size = (uint32_t)strnlen(text, cap);

	/* with the final NUL if it fits, as a driver would return it */
	return size + (size < cap);
}

void obs_op_module_load_now(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_module_load_now_req *req, const void *image)
{
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	struct {
		struct obp_module_load_now_rep rep;
		char words[OBP_LOG_MAX];
	} *answer = calloc(1, sizeof *answer);
	OB_CLEANUP(ob_freep) char *text = malloc((size_t)req->size + 1);
	uint8_t digest[OBT_SHA256_BYTES];
	CUmodule module = NULL;
	CUresult result;

	obt_digest_sha256(image, req->size, digest);
	if (memcmp(digest, req->sha256, sizeof digest) != 0)
		obs_violation(x, rec, "the image does not match its hash");
	if (!answer || !text) {
		const struct obp_module_load_now_rep nothing = { 0 };

		free(answer);
		obs_reply(x, rec, CUDA_ERROR_OUT_OF_MEMORY, &nothing, sizeof nothing);
		return;
	}
	memcpy(text, image, req->size);
	text[req->size] = '\0';
	result = load_allowed(x, req->size);
	if (result == CUDA_SUCCESS) {
		void *values[] = { answer->words, (void *)(uintptr_t)req->error_cap };

		result = x->drv->cuModuleLoadDataEx(
			&module, text, req->error_cap ? 2 : 0, options, values);
		if (result == CUDA_SUCCESS) {
			look_for_printing(x->session, text, req->size);
			module_put(x, rec, req->mod, module, req->size);
		} else {
			load_failed(x, req->size); /* the client forgets the id */
		}
	}
	answer->rep.error_log_size = text_size(answer->words, req->error_cap);
	obs_reply(x, rec, result, answer,
		(uint32_t)(sizeof answer->rep + obp_pad(answer->rep.error_log_size)));
	free(answer);
}

/* The driver's log buffers; the reply is made from them. */
struct logs {
	struct obp_module_load_checked_rep rep;
	char text[2][OBP_LOG_MAX];
};
_Static_assert(sizeof(struct obp_module_load_checked_rep) % 8 == 0 && OBP_LOG_MAX % 8 == 0,
	"where the reply wants the texts, and room to pad them");

static uint32_t options_fill(const struct obp_module_load_checked_req *req, const uint64_t *options,
	struct logs *logs, CUjit_option *ret_options, void **ret_values)
{
	const uint32_t caps[2] = { req->info_cap, req->error_cap };
	const CUjit_option buffer[2] = { CU_JIT_INFO_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER };
	const CUjit_option size[2] = { CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	uint32_t n = 0;

	for (uint32_t i = 0; i < req->n_options; i++) {
		if (!option_is_number(options[2 * i]))
			continue;
		ret_options[n] = (CUjit_option)options[2 * i];
		ret_values[n++] = (void *)(uintptr_t)options[2 * i + 1];
	}
	for (int i = 0; i < 2; i++) {
		if (!caps[i])
			continue;
		ret_options[n] = buffer[i];
		ret_values[n++] = logs->text[i];
		ret_options[n] = size[i];
		ret_values[n++] = (void *)(uintptr_t)caps[i];
	}
	return n;
}

static void logs_reply(struct obs_exec *x, const struct obp_record *rec, CUresult result,
	const struct obp_module_load_checked_req *req, struct logs *logs)
{
	uint32_t sizes[2] = { text_size(logs->text[0], req->info_cap),
		text_size(logs->text[1], req->error_cap) };
	uint32_t padded[2] = { (uint32_t)obp_pad(sizes[0]), (uint32_t)obp_pad(sizes[1]) };

	logs->rep = (struct obp_module_load_checked_rep){ .info_log_size = sizes[0],
		.error_log_size = sizes[1] };
	for (int i = 0; i < 2; i++)
		memset(logs->text[i] + sizes[i], 0, padded[i] - sizes[i]);
	memmove((char *)logs->text + padded[0], logs->text[1], padded[1]);
	obs_reply(x, rec, result, logs, (uint32_t)sizeof logs->rep + padded[0] + padded[1]);
}

void obs_op_module_load_checked(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_module_load_checked_req *req, const uint64_t *options)
{
	struct obs_image *image = obs_images_find(&x->session->images, req->sha256);
	OB_CLEANUP(ob_freep) struct logs *logs = calloc(1, sizeof *logs);
	CUjit_option names[OBP_JIT_OPTIONS_MAX + 4];
	void *values[OBP_JIT_OPTIONS_MAX + 4];
	CUmodule module = NULL;
	CUresult result = CUDA_ERROR_INVALID_IMAGE;

	if (!logs) {
		const struct obp_module_load_checked_rep nothing = { 0 };

		if (image)
			obs_images_loaded(&x->session->images, image);
		obs_reply(x, rec, CUDA_ERROR_OUT_OF_MEMORY, &nothing, sizeof nothing);
		return;
	}
	if (image)
		result = load_allowed(x, image->size);
	if (image && result == CUDA_SUCCESS) {
		uint32_t n = options_fill(req, options, logs, names, values);

		result = x->drv->cuModuleLoadDataEx(&module, image->data, n, names, values);
		if (result != CUDA_SUCCESS) {
			module = NULL;
			load_failed(x, image->size);
		} else {
			look_for_printing(x->session, image->data, image->size);
		}
	}
	if (module)
		/* the client forgets a failed module: it is told of the failure */
		module_put(x, rec, req->mod, module, image->size);
	if (image)
		obs_images_loaded(&x->session->images, image);
	logs_reply(x, rec, result, req, logs);
}

void obs_op_image_query(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_image_query_req *req)
{
	struct obp_image_query_rep rep = { .have = obs_images_query(
						   &x->session->images, req->sha256) };

	obs_reply(x, rec, CUDA_SUCCESS, &rep, sizeof rep);
}

void obs_op_image_put(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_image_put_req *req, const void *data)
{
	enum ob_err err = obs_images_put(
		&x->session->images, req->sha256, req->total, req->offset, data, req->size);

	if (err == OB_ERR_PROTOCOL)
		obs_violation(x, rec, "the pieces of an image do not match each other or its hash");
	obs_async_result(
		x, rec, err == OB_ERR_LIMIT ? CUDA_ERROR_OUT_OF_MEMORY : ob_err_to_cuda(err));
}

static void functions_forget(struct obs_handles *functions, uint32_t next)
{
	struct obs_handle function = { 0 };

	/* An entry is removed here only, so the list is whole; it ends at an entry that is gone. */
	for (; next; next = (uint32_t)function.extra)
		if (!obs_handles_remove(functions, obs_handles_at(functions, next - 1), &function))
			break;
}

void obs_module_forget(struct obs_session *session, uint64_t id, const struct obs_handle *module)
{
	functions_forget(&session->functions, (uint32_t)(module->extra >> 32));
	obs_texrefs_forget(session, id);
	if (module->extra & OBS_MODULE_VARIABLES)
		obs_memory_extra_remove_owner(&session->memory, id);
	discharge(module->context, obs_module_bytes(module));
}

void obs_op_module_unload(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_module_unload_req *req)
{
	struct obs_handle handle;

	/*
	 * Unknown: it was destroyed with its context, and the client's record was already on its
	 * way.
	 */
	if (!obs_handles_remove(&x->session->modules, req->mod, &handle))
		return;
	obs_module_forget(x->session, req->mod, &handle);
	if (handle.driver)
		obs_async_result(x, rec, x->drv->cuModuleUnload(handle.driver));
}

void obs_op_func_get(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_func_get_req *req, const char *name)
{
	struct obs_handle *module = obs_handles_find(&x->session->modules, req->mod),
			  function = { 0 };
	CUfunction entry = NULL;
	CUresult result = CUDA_ERROR_INVALID_HANDLE;

	if (!module)
		obs_violation(x, rec, "unknown module");
	if (module->driver)
		result = obs_handle_room(x);
	if (module->driver && result == CUDA_SUCCESS)
		result = x->drv->cuModuleGetFunction(&entry, module->driver, name);
	function.driver = result == CUDA_SUCCESS ? entry : NULL;
	function.context = module->context;
	function.extra = module->extra >> 32;
	if (!obs_handles_put(&x->session->functions, req->func, &function))
		obs_violation(x, rec, "the function's id is in use or out of range");
	module->extra = (module->extra & UINT32_MAX) | ((uint64_t)(uint32_t)req->func + 1) << 32;
	if (module->driver) /* else the failed load was reported already */
		obs_async_result(x, rec, result);
}

void obs_op_func_load(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_func_load_req *req)
{
	struct {
		struct obp_func_load_rep rep;
		char why[FUNC_WHY_MAX];
	} answer = { .why = "" };
	struct obs_handle *function;
	CUresult result;

	if (!obs_handle_use(x, rec, &x->session->functions, req->func, &function))
		return;
	result = x->drv->cuFuncLoad(function->driver);
	/* drivers before 12.4 cannot, and load at the launch */
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		result = CUDA_SUCCESS;
	if (result != CUDA_SUCCESS)
		obs_driver_why(&x->session->lib, function->driver, answer.why, sizeof answer.why);
	answer.rep.why_size = text_size(answer.why, ob_min(req->why_cap, FUNC_WHY_MAX));
	obs_reply(x, rec, result, &answer,
		(uint32_t)(sizeof answer.rep + obp_pad(answer.rep.why_size)));
}

void obs_op_func_attrs(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_func_attrs_req *req)
{
	struct obp_func_attrs_rep rep = { 0 };
	struct obs_handle *function;
	CUresult result = CUDA_SUCCESS;

	if (!obs_handle_use(x, rec, &x->session->functions, req->func, &function))
		return;
	for (int i = 0; i < (int)ob_count(rep.attrs); i++) {
		CUresult one = x->drv->cuFuncGetAttribute(
			&rep.attrs[i], (CUfunction_attribute)i, function->driver);

		/* Older drivers do not know the newer attributes. */
		if (one != CUDA_SUCCESS)
			rep.attrs[i] = 0;
		if (i == 0)
			result = one;
	}
	obs_reply(x, rec, result, &rep, sizeof rep);
}

void obs_op_func_set_attr(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_func_set_attr_req *req)
{
	struct obs_handle *function;

	if (obs_handle_use(x, rec, &x->session->functions, req->func, &function))
		obs_async_result(x, rec,
			x->drv->cuFuncSetAttribute(
				function->driver, (CUfunction_attribute)req->attr, req->value));
}

void obs_op_global_get(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_global_get_req *req, const char *name)
{
	struct obp_global_get_rep rep = { 0 };
	struct obs_handle *module;
	CUdeviceptr addr = 0;
	size_t size = 0;
	CUresult result;

	if (!obs_handle_use(x, rec, &x->session->modules, req->mod, &module))
		return;
	result = x->drv->cuModuleGetGlobal_v2(&addr, &size, module->driver, name);
	if (result == CUDA_SUCCESS &&
		!obs_memory_extra_add(&x->session->memory, addr, size, req->mod))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		module->extra |= OBS_MODULE_VARIABLES;
	rep.addr = addr;
	rep.size = size;
	obs_reply(x, rec, result, &rep, sizeof rep);
}
