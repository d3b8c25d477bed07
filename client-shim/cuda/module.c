/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/module.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "base/ids.h"
#include "base/log.h"
#include "client-shim/cuda/context.h"
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/facts.h"
#include "client-shim/cuda/progress.h"
#include "client-shim/session/log.h"
#include "client-shim/session/trust.h"
#include "protocol/obc_calls.h"
#include "transport/digest.h"

#define KIND_MODULE   33 /* kind of ids on the wire that the program never sees */
#define KIND_FUNCTION 34
#define WORDS_MAX     1024u /* bytes of the compiler's log if the program did not request one */

struct obc_module {
	struct ob_buf functions; /* uint64_t ids */
	bool certain;            /* its functions can certainly run: no request is needed */
	bool named;              /* sha256 and device tell the code: no options of the compiler */
	uint8_t sha256[OBT_SHA256_BYTES];
	uint32_t device; /* the server's number */
};

static struct ob_ids module_ids = OB_IDS_INIT(KIND_MODULE, OB_IDS_MAX);
static struct ob_ids function_ids = OB_IDS_INIT(KIND_FUNCTION, OB_IDS_MAX);

/* ---- the compiler's options ---- */

struct jit {
	uint64_t numbers[OBP_JIT_OPTIONS_MAX]; /* pairs of option and value */
	uint32_t n_numbers;                    /* pairs */
	char *log[2];                          /* info, error: the program's buffers */
	uint32_t capacity[2];
	unsigned size_option[2]; /* index + 1 of the option that receives the length */
	unsigned time_option;
};

static bool is_number(CUjit_option option)
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
	case CU_JIT_POSITION_INDEPENDENT_CODE:
	case CU_JIT_MIN_CTA_PER_SM:
	case CU_JIT_MAX_THREADS_PER_BLOCK:
	case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
	case CU_JIT_SPLIT_COMPILE:
		return true;
	default:
		return false;
	}
}

static CUresult jit_read(const struct obf_image_ref *image, struct jit *jit)
{
	memset(jit, 0, sizeof *jit);
	for (unsigned i = 0; i < image->n_options; i++) {
		CUjit_option option = image->options[i];
		uintptr_t value = (uintptr_t)image->option_values[i];

		switch (option) {
		case CU_JIT_INFO_LOG_BUFFER:
		case CU_JIT_ERROR_LOG_BUFFER:
			jit->log[option == CU_JIT_ERROR_LOG_BUFFER] = (char *)value;
			break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			jit->capacity[option == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES] =
				(uint32_t)ob_min(value & UINT32_MAX, (uintptr_t)OBP_LOG_MAX);
			jit->size_option[option == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES] = i + 1;
			break;
		case CU_JIT_WALL_TIME:
			jit->time_option = i + 1;
			break;
		default:
			if (!is_number(option))
				/*
				 * for example symbols of the host program, which the server cannot
				 * use
				 */
				break;
			if (2 * (jit->n_numbers + 1) > OBP_JIT_OPTIONS_MAX)
				return CUDA_ERROR_INVALID_VALUE;
			jit->numbers[2 * jit->n_numbers] = option;
			jit->numbers[2 * jit->n_numbers + 1] = value & UINT32_MAX;
			jit->n_numbers++;
		}
	}
	for (int k = 0; k < 2; k++)
		if (!jit->log[k])
			jit->capacity[k] = 0;
	return CUDA_SUCCESS;
}

/*
 * Copies the compiler's logs into the program's buffers. As in CUDA, the length replaces the
 * option's value.
 */
static void jit_answer(
	const struct obf_image_ref *image, const struct jit *jit, const uint32_t got[2])
{
	for (int k = 0; k < 2; k++) {
		uint32_t size = ob_min(got[k], jit->capacity[k]);

		if (jit->capacity[k])
			jit->log[k][ob_min(size, jit->capacity[k] - 1)] = 0;
		if (jit->size_option[k])
			image->option_values[jit->size_option[k] - 1] = (void *)(uintptr_t)size;
	}
	if (jit->time_option)
		image->option_values[jit->time_option - 1] = NULL; /* 0.0f: not measured */
}

/* ---- images ---- */

static CUresult image_upload(
	const uint8_t sha256[OBT_SHA256_BYTES], const struct obf_image_ref *image)
{
	uint32_t have = 0;
	CUresult result = CUDA_SUCCESS;

	if (image->payload_size > OBP_IMAGE_INLINE_MAX)
		result = obc_call_op_image_query(sha256, &have);
	if (result != CUDA_SUCCESS || have)
		return result;
	return obc_call_op_image_put(
		0, image->payload_size, image->payload_size, sha256, image->payload);
}

/* The length without the terminating characters. */
static int text_length(const char *text, uint32_t size)
{
	while (size && (!text[size - 1] || text[size - 1] == '\n'))
		size--;
	return (int)size;
}

static CUresult load_checked(
	uint64_t id, const uint8_t sha256[OBT_SHA256_BYTES], const struct obf_image_ref *image)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	uint32_t got[2] = { 0 };
	struct jit jit;
	char words[WORDS_MAX];
	CUresult result = jit_read(image, &jit);
	/* The software device does not take all of PTX, so the user hears why. */
	bool own = result == CUDA_SUCCESS && !jit.capacity[1] && obc_device_soft;

	if (result == CUDA_SUCCESS)
		result = image_upload(sha256, image);
	if (result != CUDA_SUCCESS)
		return result;
	result = obc_call_op_module_load_checked(id, sha256, (uint32_t)image->entry->kind,
		jit.n_numbers, jit.capacity[0], own ? sizeof words : jit.capacity[1], jit.numbers,
		jit.log[0], &got[0], own ? words : jit.log[1], &got[1]);
	if (own && result != CUDA_SUCCESS && text_length(words, got[1]) &&
		!atomic_flag_test_and_set(&said))
		ob_error(
			"the software device cannot load a module's PTX: %.*s. No kernel of that "
			"module can run. The driver of a GPU may accept the PTX. Errors of other "
			"modules are not reported here; to log them, set OUTBOARD_LOG=info for the "
			"server",
			text_length(words, got[1]), words);
	if (own)
		got[1] = 0;
	jit_answer(image, &jit, got);
	return result;
}

/*
 * The load will certainly succeed. If the record fails nevertheless, a later reply reports the
 * error.
 */
static CUresult load_later(
	uint64_t id, const uint8_t sha256[OBT_SHA256_BYTES], const struct obf_image_ref *image)
{
	CUresult result;

	if (image->payload_size <= OBP_IMAGE_INLINE_MAX)
		return obc_call_op_module_load(id, sha256, (uint32_t)image->entry->kind,
			(uint32_t)image->payload_size, image->payload);
	result = image_upload(sha256, image);
	return result == CUDA_SUCCESS
		? obc_call_op_module_use(id, sha256, (uint32_t)image->entry->kind)
		: result;
}

/* The server loads it before this returns. */
static CUresult load_now(
	uint64_t id, const uint8_t sha256[OBT_SHA256_BYTES], const struct obf_image_ref *image)
{
	const uint32_t kind = (uint32_t)image->entry->kind;
	char words[WORDS_MAX];
	uint32_t got = 0, none = 0;
	CUresult result;

	if (image->payload_size <= OBP_IMAGE_INLINE_MAX) {
		result = obc_call_op_module_load_now(id, sha256, kind,
			(uint32_t)image->payload_size, sizeof words, image->payload, words, &got);
	} else {
		result = image_upload(sha256, image);
		if (result == CUDA_SUCCESS)
			result = obc_call_op_module_load_checked(id, sha256, kind, 0, 0,
				sizeof words, NULL, NULL, &none, words, &got);
	}
	if (result != CUDA_SUCCESS && text_length(words, got))
		ob_error("the server's driver rejects the code: %.*s", text_length(words, got),
			words);
	return result;
}

static CUresult load(
	struct obc_module *module, struct obf_mod *mod, const struct obf_image_ref *image)
{
	const uint32_t device = module->device = obc_device_number(mod->ctx->device);
	uint8_t *sha256 = module->sha256;
	CUresult result;

	if (!image->payload_size || image->payload_size > OBP_IMAGE_MAX)
		return CUDA_ERROR_INVALID_IMAGE;
	obt_digest_sha256(image->payload, image->payload_size, sha256);
	module->named = !image->from_text || image->n_options == 0;
	module->certain = obc_trust_code(image, device);
	if (module->certain || (module->named && obc_trust_confirmed(sha256, device))) {
		result = load_later(mod->backend_id, sha256, image);
		/*
		 * Code that was accepted before can still fail, for want of memory: a wait for the
		 * context asks the server.
		 */
		if (!module->certain)
			obc_raise(&obc_ctx_of(mod->ctx)->last_other, obc_log_last());
		return result;
	}
	result = image->from_text ? load_checked(mod->backend_id, sha256, image)
				  : load_now(mod->backend_id, sha256, image);
	if (result == CUDA_SUCCESS && module->named)
		obc_trust_confirm(sha256, device);
	return result;
}

CUresult obc_mod_load(struct obf_mod *mod, const struct obf_image_ref *image)
{
	struct obc_module *module = calloc(1, sizeof *module);
	CUresult result;

	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ob_buf_init(&module->functions, OB_IDS_MAX * sizeof(uint64_t));
	mod->backend_id = ob_ids_add(&module_ids, module);
	if (!mod->backend_id) {
		free(module);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	mod->backend = module;
	result = load(module, mod, image);
	if (result != CUDA_SUCCESS) {
		/*
		 * The error may belong to an earlier call, or the server may keep the id of a
		 * failed load: both sides release the id.
		 */
		obc_call_op_module_unload(mod->backend_id);
		ob_ids_remove(&module_ids, mod->backend_id);
		free(module);
		mod->backend = NULL;
	}
	return obf_ctx_result(mod->ctx, result);
}

void obc_mod_unload(struct obf_mod *mod)
{
	struct obc_module *module = mod->backend;
	const uint64_t *ids;

	if (!module)
		return;
	/* The driver waits for kernels when it unloads; a reply may report their error. */
	obf_ctx_note(mod->ctx, obc_call_op_module_unload(mod->backend_id));
	ids = (const uint64_t *)(const void *)module->functions.data;
	for (size_t i = 0; i < module->functions.size / sizeof *ids; i++)
		ob_ids_remove(&function_ids, ids[i]);
	ob_ids_remove(&module_ids, mod->backend_id);
	ob_buf_fini(&module->functions);
	free(module);
	mod->backend = NULL;
}

/* ---- functions and variables ---- */

CUresult obc_func_get(struct obf_func *func)
{
	struct obc_module *module = func->mod->backend;
	uint64_t id = ob_ids_add(&function_ids, func);

	if (!id)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!ob_buf_append(&module->functions, &id, sizeof id)) {
		ob_ids_remove(&function_ids, id);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	func->backend = module;
	func->backend_id = id;
	return obf_ctx_result(
		func->mod->ctx, obc_call_op_func_get(id, func->mod->backend_id, func->name));
}

/* False: the compiler may have made other code of the same image. */
static bool facts_name(const struct obf_func *func, struct obc_facts_name *ret)
{
	const struct obc_module *module = func->backend;

	if (!module->named)
		return false;
	memcpy(ret->sha256, module->sha256, sizeof ret->sha256);
	ret->device = module->device;
	ret->index = func->index;
	return true;
}

CUresult obc_func_load(struct obf_func *func)
{
	const struct obc_module *module = func->backend;
	struct obc_facts_name name;
	bool named = facts_name(func, &name);
	char why[WORDS_MAX];
	uint32_t got = 0;
	CUresult result;

	if (module->certain || (named && obc_facts_runs(&name)))
		return CUDA_SUCCESS;
	result = obc_call_op_func_load(func->backend_id, sizeof why, why, &got);
	if (result != CUDA_SUCCESS && text_length(why, got))
		/* Only the software device gives a reason. */
		ob_error("the server's driver cannot load kernel %s: %.*s. " OBF_REFUSED_ADVICE,
			func->name, text_length(why, got), why);
	if (result == CUDA_SUCCESS && named)
		obc_facts_put_runs(&name);
	return obf_ctx_result(func->mod->ctx, result);
}

/* Attributes that the program has set have any value: the front end knows them. */
static CUresult attrs_ask(const struct obf_func *func, int32_t v[OBC_FACTS_ATTRS])
{
	/* The server's answer has the values of the program where it has set some. */
	const uint32_t of_code = ~func->set_mask & ((1u << OBC_FACTS_ATTRS) - 1);
	struct obc_facts_name name;
	bool named = facts_name(func, &name);
	CUresult result;

	if (named && obc_facts_attrs(&name, of_code, v))
		return CUDA_SUCCESS;
	result = obc_call_op_func_attrs(func->backend_id, v);
	if (result == CUDA_SUCCESS && named)
		obc_facts_put_attrs(&name, of_code, v);
	return result;
}

CUresult obc_func_attrs(struct obf_func *func)
{
	struct obf_func_attrs *attrs = &func->attrs;
	int32_t v[OBC_FACTS_ATTRS] = { 0 };
	CUresult result = attrs_ask(func, v);

	if (result != CUDA_SUCCESS)
		return obf_ctx_result(func->mod->ctx, result);
	*attrs = (struct obf_func_attrs){
		.max_threads = v[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
		.shared_bytes = v[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
		.const_bytes = v[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES],
		.local_bytes = v[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES],
		.registers = v[CU_FUNC_ATTRIBUTE_NUM_REGS],
		.ptx_version = v[CU_FUNC_ATTRIBUTE_PTX_VERSION],
		.binary_version = v[CU_FUNC_ATTRIBUTE_BINARY_VERSION],
		.cache_ca = v[CU_FUNC_ATTRIBUTE_CACHE_MODE_CA],
		.max_dynamic_shared = v[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES],
		.carveout = v[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT],
		.cluster_must = v[CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET],
		.cluster = { v[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH],
			v[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT],
			v[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] },
		.non_portable_cluster = v[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED],
		.cluster_policy = v[CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE],
		.exact = true,
	};
	return CUDA_SUCCESS;
}

CUresult obc_func_set_attr(struct obf_func *func, CUfunction_attribute attr, int value)
{
	return obf_ctx_result(
		func->mod->ctx, obc_call_op_func_set_attr(func->backend_id, (uint32_t)attr, value));
}

CUresult obc_global_get(
	struct obf_mod *mod, const char *name, CUdeviceptr *ret_addr, size_t *ret_size)
{
	uint64_t addr, size;
	CUresult result = obc_call_op_global_get(mod->backend_id, name, &addr, &size);

	if (result != CUDA_SUCCESS)
		return obf_ctx_result(mod->ctx, result);
	*ret_addr = addr;
	*ret_size = size;
	return CUDA_SUCCESS;
}
