/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuLink*: a linker that joins nothing. One input, PTX or a cubin or a fatbin, comes out as it went
 * in, which is what programs that compile PTX at run time need: cuModuleLoadData then lets the
 * server's driver compile it. Several inputs need the driver's own linker and are refused, with a
 * line that says so.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/ids.h"
#include "base/log.h"
#include "front/front.h"
#include "image/image.h"
#include "protocol/obc_locals.h"

#define LINK_MAX         1024u /* live linkers */
#define LINK_OPTIONS_MAX 64u

struct linker {
	pthread_mutex_t lock;
	unsigned n_inputs;
	void *image; /* owned; a NUL follows */
	size_t size;
};

static struct ob_ids link_ids = OB_IDS_INIT(OBF_KIND_LINK, LINK_MAX);

static struct linker *link_get(CUlinkState state)
{
	return ob_ids_get(&link_ids, (uint64_t)(uintptr_t)state);
}

/* Log buffers are answered empty: nothing is compiled here. */
static CUresult options_read(unsigned n, CUjit_option *options, void **values)
{
	if (n > LINK_OPTIONS_MAX || (n && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++)
		if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
			options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			values[i] = NULL;
	return CUDA_SUCCESS;
}

CUresult obc_cuLinkCreate_v2(unsigned n, CUjit_option *options, void **values, CUlinkState *ret)
{
	struct linker *linker;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);
	uint64_t id;

	if (result == CUDA_SUCCESS)
		result = ret ? options_read(n, options, values) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	linker = calloc(1, sizeof *linker);
	if (!linker)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&linker->lock, NULL);
	id = ob_ids_add(&link_ids, linker);
	if (!id) {
		free(linker);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUlinkState)(uintptr_t)id;
	return CUDA_SUCCESS;
}

CUresult obc_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
	const char *name, unsigned n, CUjit_option *options, void **values)
{
	struct linker *linker = link_get(state);
	char *copy;

	(void)name;
	(void)options;
	if (!linker)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || !size || size > OBI_PAYLOAD_MAX || (n && !values))
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_CUBIN &&
		type != CU_JIT_INPUT_FATBINARY) {
		ob_error("cuLinkAddData: inputs of type %d need the driver's linker, which is not "
			 "forwarded; link at build time",
			(int)type);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	copy = malloc(size + 1);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, data, size);
	copy[size] = 0;
	pthread_mutex_lock(&linker->lock);
	linker->n_inputs++;
	free(linker->image);
	linker->image = copy;
	linker->size = type == CU_JIT_INPUT_PTX ? strlen(copy) + 1 : size;
	pthread_mutex_unlock(&linker->lock);
	return CUDA_SUCCESS;
}

CUresult obc_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned n,
	CUjit_option *options, void **values)
{
	OB_CLEANUP(ob_freep) char *data = NULL;
	FILE *file;
	long size;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	file = fopen(path, "rbe");
	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	if (fseek(file, 0, SEEK_END) || (size = ftell(file)) <= 0 || size > (long)OBI_PAYLOAD_MAX ||
		fseek(file, 0, SEEK_SET) || !(data = malloc((size_t)size)) ||
		fread(data, 1, (size_t)size, file) != (size_t)size) {
		fclose(file);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	fclose(file);
	return obc_cuLinkAddData_v2(state, type, data, (size_t)size, path, n, options, values);
}

CUresult obc_cuLinkComplete(CUlinkState state, void **ret_image, size_t *ret_size)
{
	struct linker *linker = link_get(state);
	CUresult result = CUDA_SUCCESS;

	if (!linker)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret_image)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&linker->lock);
	if (linker->n_inputs == 1) {
		*ret_image = linker->image;
		if (ret_size)
			*ret_size = linker->size;
	} else if (linker->n_inputs) {
		ob_error("cuLinkComplete: %u inputs need the driver's linker, which is not "
			 "forwarded; link at build time (nvcc -dlink)",
			linker->n_inputs);
		result = CUDA_ERROR_NOT_SUPPORTED;
	} else {
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&linker->lock);
	return result;
}

CUresult obc_cuLinkDestroy(CUlinkState state)
{
	struct linker *linker = ob_ids_remove(&link_ids, (uint64_t)(uintptr_t)state);

	if (!linker)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_destroy(&linker->lock);
	free(linker->image);
	free(linker);
	return CUDA_SUCCESS;
}
