/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_code: the entry of an image that is selected for a device, with its symbols. Modules and
 * libraries of the image share it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "front/private.h"
#include "image/ptx_merge.h"
#include "image/ptx_scan.h"

#define DESCRIBE_MAX 512

static void explain_disabled(const struct obi_image *image, const struct obf_device *device)
{
	char held[DESCRIBE_MAX];

	obi_image_describe(image, held, sizeof held);
	ob_error("CUDA_DISABLE_PTX_JIT is set, and the image has no machine code for the device "
		 "\"%s\": it holds %s. %s",
		device->name, held,
		device->ptx_only ? "The software device runs PTX only: unset the variable"
				 : "Unset the variable, or rebuild the image for this device");
}

/* Copies the entry's bytes into memory owned by the code. */
static CUresult entry_copy(struct obf_code *code)
{
	struct obi_entry *entry = &code->entry;
	const uint8_t *from = entry->whole ? entry->whole : entry->data;
	size_t size = entry->whole ? entry->whole_size : entry->size;
	uint8_t *copy = malloc(size + 1);

	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, from, size);
	copy[size] = 0;
	entry->data = copy + (entry->data - from);
	if (entry->whole)
		entry->whole = copy;
	code->copy = copy;
	return CUDA_SUCCESS;
}

/*
 * No linked cubin fits the device: uses the PTX of the objects that it was linked from, linked for
 * this device.
 */
static CUresult entry_relink(
	const struct obi_image *image, const struct obf_device *device, struct obf_code *code)
{
	char log[DESCRIBE_MAX] = "";
	struct ob_buf text;
	enum ob_err err;

	ob_buf_init(&text, OBI_PAYLOAD_MAX);
	err = obi_image_relink(image, obf_device_cc(device), &text, log, sizeof log);
	if (err) {
		ob_buf_fini(&text);
		if (err == OB_ERR_IMAGE_NO_ENTRY)
			obf_explain_no_binary(image, device);
		else
			ob_error("cannot link the PTX of separately compiled objects: %s",
				log[0] ? log : ob_err_text(err));
		return ob_err_to_cuda(err);
	}
	code->copy = text.data;
	code->entry = (struct obi_entry){
		.kind = OBI_PTX, .data = text.data, .size = text.size - 1, .raw_size = text.size - 1
	};
	return CUDA_SUCCESS;
}

CUresult obf_code_new(const struct obi_image *image, const struct obf_device *device, bool keep,
	struct obf_code **ret)
{
	bool forced = obf_environment.ptx_forced && (image->is_fatbin || image->is_wrapper);
	const struct obi_entry *entry =
		obi_image_select(image, obf_device_cc(device), device->ptx_only || forced);
	struct obf_code *code;
	CUresult result = CUDA_SUCCESS;

	/* The selection prefers machine code to PTX, so PTX means that no machine code fits. */
	if (obf_environment.ptx_disabled &&
		(entry ? entry->kind == OBI_PTX : image->prelinked != NULL)) {
		explain_disabled(image, device);
		return CUDA_ERROR_JIT_COMPILATION_DISABLED;
	}
	if (!entry && !image->prelinked) {
		obf_explain_no_binary(image, device);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	code = calloc(1, sizeof *code);
	if (!code)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&code->lock, NULL);
	atomic_store(&code->refs, 1);
	code->from_text = !image->is_fatbin && !image->is_wrapper;
	if (entry)
		code->entry = *entry;
	else
		result = entry_relink(image, device, code);
	if (entry && !keep)
		result = entry_copy(code);
	if (result == CUDA_SUCCESS)
		result = obf_code_payload_take(code);
	if (result == CUDA_SUCCESS) {
		enum ob_err err =
			obi_symbols_read(code->payload, code->payload_size, &code->symbols);

		result = err ? ob_err_to_cuda(err) : CUDA_SUCCESS;
		/* Invalid PTX has an error code of its own. */
		if (err == OB_ERR_IMAGE_DAMAGED && obi_ptx_is(code->payload, code->payload_size))
			result = CUDA_ERROR_INVALID_PTX;
		/* In most programs the first load follows soon; it frees the uncompressed bytes. */
		pthread_mutex_unlock(&code->lock);
	}
	if (result != CUDA_SUCCESS) {
		obf_code_unref(code);
		return result;
	}
	*ret = code;
	return CUDA_SUCCESS;
}

struct obf_code *obf_code_ref(struct obf_code *code)
{
	atomic_fetch_add(&code->refs, 1);
	return code;
}

void obf_code_unref(struct obf_code *code)
{
	if (!code || atomic_fetch_sub(&code->refs, 1) != 1)
		return;
	obi_symbols_fini(&code->symbols);
	free(code->payload_owned);
	free(code->copy);
	pthread_mutex_destroy(&code->lock);
	free(code);
}

CUresult obf_code_payload_take(struct obf_code *code)
{
	bool owned = false;
	enum ob_err err = OB_ERR_NONE;

	pthread_mutex_lock(&code->lock);
	if (!code->payload) {
		err = obi_entry_payload(&code->entry, &code->payload, &code->payload_size, &owned);
		if (!err && owned)
			code->payload_owned = (void *)(uintptr_t)code->payload;
	}
	if (err) {
		code->payload = NULL;
		pthread_mutex_unlock(&code->lock);
		return ob_err_to_cuda(err);
	}
	return CUDA_SUCCESS;
}

void obf_code_payload_drop(struct obf_code *code)
{
	free(code->payload_owned);
	code->payload_owned = NULL;
	code->payload = NULL;
	pthread_mutex_unlock(&code->lock);
}

CUresult obf_file_read(const char *path, void **ret_data, size_t *ret_size)
{
	OB_CLEANUP(ob_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	OB_CLEANUP(ob_freep) uint8_t *data = NULL;
	size_t size, have = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return CUDA_ERROR_FILE_NOT_FOUND;
	if (st.st_size <= 0 || (uint64_t)st.st_size > OBF_FILE_MAX)
		return CUDA_ERROR_INVALID_IMAGE;
	size = (size_t)st.st_size;
	data = malloc(size + 1);
	if (!data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (have < size) {
		ssize_t n = read(fd, data + have, size - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return CUDA_ERROR_FILE_NOT_FOUND;
		have += (size_t)n;
	}
	data[size] = 0;
	*ret_data = ob_steal(data);
	*ret_size = size;
	return CUDA_SUCCESS;
}
