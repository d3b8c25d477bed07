/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuLink*: inputs are collected as PTX text; completing merges them into one module's text, which
 * the loader takes like any other image. A link belongs to the process; its calls are the caller's
 * to serialise, as CUDA has it; ending it frees the image.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/ids.h"
#include "base/log.h"
#include "image/image.h"
#include "protocol/obd_locals.h"
#include "softdevice/config.h"
#include "softdevice/context.h"
#include "softdevice/jit.h"
#include "softdevice/program.h"
#include "image/ptx_merge.h"

#define LINK_MAX  4096u /* live links in the process */
#define IMAGE_MAX ((size_t)OBD_PTX_MAX_TEXT)
#define LOG_MAX   4096u

struct input {
	char *text; /* owned */
	size_t size;
	char name[256];
};

struct link {
	struct input *inputs;
	size_t n;
	struct ob_buf image;
	bool complete;
	/* the caller's arrays, which CUDA requires to live as long as the link */
	unsigned n_options;
	CUjit_option *options;
	void **values;
};

static struct ob_ids ids = OB_IDS_INIT(OBF_KIND_LINK, LINK_MAX);

static void link_free(struct link *link)
{
	for (size_t i = 0; i < link->n; i++)
		free(link->inputs[i].text);
	free(link->inputs);
	ob_buf_fini(&link->image);
	free(link);
}

static CUresult link_get(CUlinkState state, struct link **ret)
{
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	*ret = ob_ids_get(&ids, (uint64_t)(uintptr_t)state);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static void link_log(struct link *link, const char *text)
{
	struct obd_jit jit;

	if (obd_jit_read(&jit, link->n_options, link->options, link->values))
		return;
	/*
	 * The sizes are in and out: the next message must find the size of the buffer, so only text
	 * is written here.
	 */
	if (jit.error && jit.error_size)
		snprintf(jit.error, jit.error_size, "%s", text);
	else
		ob_error("link: %s", text);
}

CUresult obd_cuLinkCreate_v2(
	unsigned int n_options, CUjit_option *options, void **option_values, CUlinkState *state)
{
	struct obd_ctx *ctx;
	struct obd_jit jit;
	struct link *link;
	CUresult result = obd_ctx_enter(&ctx);

	if (!result)
		result = state ? obd_jit_read(&jit, n_options, options, option_values)
			       : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	link = calloc(1, sizeof *link);
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ob_buf_init(&link->image, IMAGE_MAX);
	link->n_options = n_options;
	link->options = options;
	link->values = option_values;
	*state = (CUlinkState)(uintptr_t)ob_ids_add(&ids, link);
	if (!*state) {
		link_free(link);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

static CUresult input_add(struct link *link, const uint8_t *text, size_t size, const char *name)
{
	struct input *inputs;
	char *copy;

	if (link->n == OBI_MERGE_MAX_INPUTS || size > IMAGE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	inputs = realloc(link->inputs, (link->n + 1) * sizeof *inputs);
	if (!inputs)
		return CUDA_ERROR_OUT_OF_MEMORY;
	link->inputs = inputs;
	copy = malloc(size + 1);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, text, size);
	copy[size] = '\0';
	inputs[link->n] = (struct input){ .text = copy, .size = strlen(copy) };
	if (name)
		snprintf(inputs[link->n].name, sizeof inputs[link->n].name, "%s", name);
	else
		snprintf(inputs[link->n].name, sizeof inputs[link->n].name, "input %zu",
			link->n + 1);
	link->n++;
	return CUDA_SUCCESS;
}

/* PTX, or whatever holds PTX that this device takes. */
static CUresult image_add(struct link *link, const void *data, size_t size, const char *name)
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
	entry = obi_image_select(&image, obd_config.cc, true);
	if (!entry) {
		result = CUDA_ERROR_NO_BINARY_FOR_GPU;
		link_log(link,
			"an input holds no PTX for this device: build it with PTX, e.g. nvcc "
			"-gencode arch=compute_75,code=compute_75");
	} else {
		err = obi_entry_payload(entry, &text, &text_size, &owned);
		result = err ? ob_err_to_cuda(err) : input_add(link, text, text_size, name);
		if (!err && owned)
			free((void *)(uintptr_t)text);
	}
	obi_image_fini(&image);
	return result;
}

CUresult obd_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
	const char *name, unsigned int n_options, CUjit_option *options, void **option_values)
{
	struct obd_jit jit;
	struct link *link;
	CUresult result = link_get(state, &link);

	if (!result)
		result = obd_jit_read(&jit, n_options, options, option_values);
	if (result)
		return result;
	if (!data || size == 0 || link->complete)
		return CUDA_ERROR_INVALID_VALUE;
	switch (type) {
	case CU_JIT_INPUT_PTX:
		return input_add(link, data, size, name);
	case CU_JIT_INPUT_CUBIN: /* what cuLinkComplete gave is PTX */
	case CU_JIT_INPUT_FATBINARY:
		return image_add(link, data, size, name);
	case CU_JIT_INPUT_OBJECT:
	case CU_JIT_INPUT_LIBRARY:
		link_log(link,
			"host objects and libraries cannot be linked on the software device: pass "
			"their PTX");
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static void *file_read(const char *path, size_t *ret_size, CUresult *ret_result)
{
	FILE *file = fopen(path, "rbe");
	struct ob_buf buf;
	void *room;
	size_t n;

	*ret_result = CUDA_ERROR_FILE_NOT_FOUND;
	if (!file)
		return NULL;
	ob_buf_init(&buf, IMAGE_MAX);
	do {
		room = ob_buf_extend(&buf, 65536);
		n = room ? fread(room, 1, 65536, file) : 0;
		if (room)
			buf.size -= 65536 - n;
	} while (n == 65536);
	fclose(file);
	if (buf.failed || buf.size == 0) {
		*ret_result = buf.failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
		ob_buf_fini(&buf);
		return NULL;
	}
	*ret_result = CUDA_SUCCESS;
	*ret_size = buf.size;
	return buf.data;
}

CUresult obd_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
	unsigned int n_options, CUjit_option *options, void **option_values)
{
	struct link *link;
	void *data;
	size_t size;
	CUresult result = link_get(state, &link);

	if (!result && !path)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	data = file_read(path, &size, &result);
	if (data)
		result = obd_cuLinkAddData_v2(
			state, type, data, size, path, n_options, options, option_values);
	free(data);
	return result;
}

/* Loads the result once, so that what is wrong shows at this call. */
static CUresult image_try(struct link *link, struct obd_ctx *ctx)
{
	struct obd_program *program;
	char log[LOG_MAX] = "";
	CUresult result = obd_program_load((const char *)link->image.data, link->image.size,
		&ctx->env, &program, log, sizeof log);

	if (!result)
		obd_program_free(program);
	else if (log[0])
		link_log(link, log);
	return result;
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
		inputs[i] = (struct obi_ptx){ link->inputs[i].text, link->inputs[i].size,
			link->inputs[i].name };
	err = obi_ptx_merge(inputs, link->n, &link->image, log, sizeof log);
	result = err == OB_ERR_IMAGE_DAMAGED ? CUDA_ERROR_INVALID_PTX : ob_err_to_cuda(err);
	free(inputs);
	if (result && log[0])
		link_log(link, log);
	return result;
}

CUresult obd_cuLinkComplete(CUlinkState state, void **cubin, size_t *size)
{
	struct obd_ctx *ctx;
	struct obd_jit jit;
	struct link *link;
	CUresult result = link_get(state, &link);

	if (!result)
		result = obd_ctx_enter(&ctx);
	if (result)
		return result;
	if (!cubin || link->n == 0 || link->complete)
		return CUDA_ERROR_INVALID_VALUE;
	result = inputs_merge(link);
	if (!result)
		result = image_try(link, ctx);
	if (!result && !ob_buf_append(&link->image, "", 1))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!result) {
		link->complete = true;
		*cubin = link->image.data;
		if (size)
			*size = link->image.size;
		if (!obd_jit_read(&jit, link->n_options, link->options, link->values))
			obd_jit_finish(&jit, "");
	}
	return result;
}

CUresult obd_cuLinkDestroy(CUlinkState state)
{
	struct link *link;
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	link = ob_ids_remove(&ids, (uint64_t)(uintptr_t)state);
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	link_free(link);
	return CUDA_SUCCESS;
}
