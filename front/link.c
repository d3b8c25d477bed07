/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuLink*: inputs are collected, and cuLinkComplete combines them into one image for
 * cuModuleLoadData. PTX inputs are merged as text. A single input of another kind is returned
 * unchanged, and the driver compiles it later. Linking machine code of several inputs needs the
 * driver's linker and is refused.
 *
 * A link belongs to the process. As in CUDA, the caller serialises the calls for one link.
 * Destroying the link frees the image.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/ids.h"
#include "base/log.h"
#include "front/backend.h"
#include "front/jit.h"
#include "front/private.h"
#include "image/image.h"
#include "image/ptx_merge.h"
#include "protocol/obf_calls.h"

#define LINK_MAX 4096u /* limit of live links of a process */
#define LOG_MAX  4096u

struct input {
	char *data; /* owned; NUL-terminated */
	size_t size;
	bool ptx;
	char name[256];
};

struct link {
	const struct obf_device *device; /* the device for which code is selected */
	struct input *inputs;
	size_t n;
	struct ob_buf image;
	bool complete;
	/* the caller's arrays, which must stay valid as long as the link, as in CUDA */
	unsigned n_options;
	CUjit_option *options;
	void **values;
};

static struct ob_ids ids = OB_IDS_INIT(OBF_KIND_LINK, LINK_MAX);

static void link_free(struct link *link)
{
	for (size_t i = 0; i < link->n; i++)
		free(link->inputs[i].data);
	free(link->inputs);
	ob_buf_fini(&link->image);
	free(link);
}

static CUresult link_get(CUlinkState state, struct link **ret)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	*ret = ob_ids_get(&ids, (uint64_t)(uintptr_t)state);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Writes to the program's error log, or else to the library's log. */
static void link_log(struct link *link, const char *text)
{
	struct obf_jit_logs logs;

	if (obf_jit_read(&logs, link->n_options, link->options, link->values))
		return;
	/*
	 * The option values for sizes are inputs and outputs. A later message still needs the
	 * buffer size, so only the text is written here.
	 */
	if (logs.error && logs.error_size)
		snprintf(logs.error, logs.error_size, "%s", text);
	else
		ob_error("cuLink: %s", text);
}

CUresult obf_cuLinkCreate_v2(
	unsigned n_options, CUjit_option *options, void **option_values, CUlinkState *ret)
{
	struct obf_jit_logs logs;
	struct obf_ctx *ctx;
	struct link *link;
	CUresult result = obf_ctx_enter(&ctx);

	if (result == CUDA_SUCCESS)
		result = ret ? obf_jit_read(&logs, n_options, options, option_values)
			     : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	link = calloc(1, sizeof *link);
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	link->device = obf_ctx_device(ctx);
	ob_buf_init(&link->image, OBI_PAYLOAD_MAX);
	link->n_options = n_options;
	link->options = options;
	link->values = option_values;
	*ret = (CUlinkState)(uintptr_t)ob_ids_add(&ids, link);
	if (!*ret) {
		link_free(link);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* ---- inputs ---- */

static CUresult input_add(
	struct link *link, const uint8_t *data, size_t size, bool ptx, const char *name)
{
	struct input *inputs, *input;
	char *copy;

	if (link->n == OBI_MERGE_MAX_INPUTS || size > OBI_PAYLOAD_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	inputs = realloc(link->inputs, (link->n + 1) * sizeof *inputs);
	if (!inputs)
		return CUDA_ERROR_OUT_OF_MEMORY;
	link->inputs = inputs;
	copy = malloc(size + 1);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, data, size);
	copy[size] = '\0';
	input = &inputs[link->n++];
	*input = (struct input){ .data = copy, .size = ptx ? strlen(copy) : size, .ptx = ptx };
	if (name)
		snprintf(input->name, sizeof input->name, "%s", name);
	else
		snprintf(input->name, sizeof input->name, "input %zu", link->n);
	return CUDA_SUCCESS;
}

/* For a device that cannot run machine code: returns the PTX inside. */
static CUresult ptx_extract(struct link *link, const void *data, size_t size, const char *name)
{
	const struct obi_entry *entry;
	struct obi_image image;
	const uint8_t *text;
	size_t text_size;
	bool owned;
	enum ob_err err = obi_image_open_bounded(data, size, &image);
	CUresult result;

	if (err)
		return ob_err_to_cuda(err);
	entry = obi_image_select(&image, obf_device_cc(link->device), true);
	if (!entry) {
		result = CUDA_ERROR_NO_BINARY_FOR_GPU;
		link_log(link,
			"an input holds no PTX for this device: build it with PTX, for example "
			"with nvcc -gencode arch=compute_75,code=compute_75");
	} else {
		err = obi_entry_payload(entry, &text, &text_size, &owned);
		result = err ? ob_err_to_cuda(err) : input_add(link, text, text_size, true, name);
		if (!err && owned)
			free((void *)(uintptr_t)text);
	}
	obi_image_fini(&image);
	return result;
}

CUresult obf_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
	const char *name, unsigned n_options, CUjit_option *options, void **option_values)
{
	struct obf_jit_logs logs;
	struct link *link;
	CUresult result = link_get(state, &link);

	if (result == CUDA_SUCCESS)
		result = obf_jit_read(&logs, n_options, options, option_values);
	if (result != CUDA_SUCCESS)
		return result;
	if (!data || size == 0 || link->complete)
		return CUDA_ERROR_INVALID_VALUE;
	switch (type) {
	case CU_JIT_INPUT_PTX:
		return input_add(link, data, size, true, name);
	case CU_JIT_INPUT_CUBIN: /* the image that cuLinkComplete returned may be PTX */
	case CU_JIT_INPUT_FATBINARY:
		return link->device->ptx_only ? ptx_extract(link, data, size, name)
					      : input_add(link, data, size, false, name);
	case CU_JIT_INPUT_OBJECT:
	case CU_JIT_INPUT_LIBRARY:
		link_log(link,
			"cannot link host objects and libraries: the linker of NVIDIA's driver is "
			"not forwarded. Pass PTX, or link at build time (nvcc -dlink)");
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult obf_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
	unsigned n_options, CUjit_option *options, void **option_values)
{
	struct link *link;
	void *data;
	size_t size;
	CUresult result = link_get(state, &link);

	if (result == CUDA_SUCCESS && !path)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = obf_file_read(path, &data, &size);
	if (result != CUDA_SUCCESS)
		return result;
	result = size ? obf_cuLinkAddData_v2(
				state, type, data, size, path, n_options, options, option_values)
		      : CUDA_ERROR_INVALID_IMAGE;
	free(data);
	return result;
}

/* ---- completing ---- */

static bool all_ptx(const struct link *link)
{
	for (size_t i = 0; i < link->n; i++)
		if (!link->inputs[i].ptx)
			return false;
	return true;
}

static CUresult inputs_merge(struct link *link)
{
	char log[LOG_MAX] = "";
	struct obi_ptx *inputs = calloc(link->n, sizeof *inputs);
	enum ob_err err;
	CUresult result;

	if (!inputs)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < link->n; i++)
		inputs[i] = (struct obi_ptx){ link->inputs[i].data, link->inputs[i].size,
			link->inputs[i].name };
	err = obi_ptx_merge(inputs, link->n, &link->image, log, sizeof log);
	result = err == OB_ERR_IMAGE_DAMAGED ? CUDA_ERROR_INVALID_PTX : ob_err_to_cuda(err);
	free(inputs);
	if (result != CUDA_SUCCESS && log[0])
		link_log(link, log);
	return result;
}

static CUresult image_make(struct link *link)
{
	if (link->n == 1)
		return ob_buf_append(&link->image, link->inputs[0].data, link->inputs[0].size)
			? CUDA_SUCCESS
			: CUDA_ERROR_OUT_OF_MEMORY;
	if (all_ptx(link))
		return inputs_merge(link);
	link_log(link,
		"cannot link several inputs unless all are PTX: the linker of NVIDIA's driver is "
		"not forwarded. Pass PTX, or link at build time (nvcc -dlink)");
	return CUDA_ERROR_NOT_SUPPORTED;
}

/*
 * If the backend supports it, checks that the result can be compiled, so that this call returns the
 * errors.
 */
static CUresult image_try(struct link *link, struct obf_ctx *ctx)
{
	char log[LOG_MAX] = "";
	CUresult result = CUDA_SUCCESS;

	if (obf_process.backend->code_check)
		result = obf_process.backend->code_check(
			ctx, link->image.data, link->image.size, log, sizeof log);
	if (result != CUDA_SUCCESS && log[0])
		link_log(link, log);
	return result;
}

CUresult obf_cuLinkComplete(CUlinkState state, void **ret_image, size_t *ret_size)
{
	struct obf_jit_logs logs;
	struct obf_ctx *ctx;
	struct link *link;
	CUresult result = link_get(state, &link);

	if (result == CUDA_SUCCESS)
		result = obf_ctx_enter(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_image || link->n == 0 || link->complete)
		return CUDA_ERROR_INVALID_VALUE;
	result = image_make(link);
	if (result == CUDA_SUCCESS)
		result = image_try(link, ctx);
	/* The size of text includes the terminating NUL. */
	if (result == CUDA_SUCCESS && all_ptx(link) && !ob_buf_append(&link->image, "", 1))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS)
		return result;
	link->complete = true;
	*ret_image = link->image.data;
	if (ret_size)
		*ret_size = link->image.size;
	if (!obf_jit_read(&logs, link->n_options, link->options, link->values))
		obf_jit_finish(&logs, "");
	return CUDA_SUCCESS;
}

CUresult obf_cuLinkDestroy(CUlinkState state)
{
	struct link *link;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	link = ob_ids_remove(&ids, (uint64_t)(uintptr_t)state);
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	link_free(link);
	return CUDA_SUCCESS;
}
