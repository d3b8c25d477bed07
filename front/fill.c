/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuMemset*: six calls and their asynchronous forms. As in CUDA, only a fill of pinned host memory
 * waits for the device.
 */
#include <string.h>

#include "front/captured.h"
#include "front/fill.h"
#include "front/private.h"
#include "front/stream.h"
#include "protocol/obf_calls.h"

static void row_fill(uint64_t dst, uint32_t value, unsigned element, size_t n)
{
	void *p = (void *)(uintptr_t)dst;

	if (element == 1) {
		memset(p, (int)value, n);
	} else if (element == 2) {
		for (size_t i = 0; i < n; i++)
			((uint16_t *)p)[i] = (uint16_t)value;
	} else {
		for (size_t i = 0; i < n; i++)
			((uint32_t *)p)[i] = value;
	}
}

void obf_fill_rows(const struct obf_fill *fill)
{
	for (size_t y = 0; y < fill->height; y++)
		row_fill(fill->dst + y * fill->pitch, fill->value, fill->element, fill->width);
}

/* Fills pinned memory in the order of the stream. */
static CUresult host_fill(struct obf_stream *stream, const struct obf_fill *fill)
{
	CUresult result = obf_process.backend->stream_wait(stream);

	if (result == CUDA_SUCCESS)
		obf_fill_rows(fill);
	return result;
}

CUresult obf_fill_check(const struct obf_fill *fill, bool *ret_device)
{
	size_t row, size;

	if (fill->dst % fill->element || ob_mul_overflows(fill->width, fill->element, &row))
		return CUDA_ERROR_INVALID_VALUE;
	if (!fill->width || !fill->height)
		return CUDA_SUCCESS;
	if (fill->height > 1 && (fill->pitch < row || fill->pitch % fill->element))
		return CUDA_ERROR_INVALID_VALUE;
	if (ob_mul_overflows(fill->height - 1, fill->pitch, &size) ||
		ob_add_overflows(size, row, &size))
		return CUDA_ERROR_INVALID_VALUE;
	return obf_mem_side(fill->dst, size, true, ret_device);
}

CUresult obf_fill_put(struct obf_stream *stream, const struct obf_fill *fill, bool device)
{
	return device ? obf_process.backend->fill(stream, fill) : host_fill(stream, fill);
}

static CUresult fill(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element, size_t width,
	size_t height, CUstream handle, bool blocking)
{
	const struct obf_fill rows = { dst, value, element, pitch, width, height, blocking };
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(handle, &stream);
	bool device;

	if (ob_likely(result == CUDA_SUCCESS))
		result = obf_fill_check(&rows, &device);
	if (ob_unlikely(result != CUDA_SUCCESS) || !width || !height)
		return result;
	if (ob_unlikely(stream->capture != NULL))
		return obf_capture_fill(stream, &rows);
	return obf_ctx_result(stream->ctx, obf_fill_put(stream, &rows, device));
}

#define FILL(name, type, element)                                             \
	CUresult obf_cuMemset##name##_v2(                                     \
		CUdeviceptr dst, type value, size_t count, CUstream stream)   \
	{                                                                     \
		return fill(dst, 0, value, element, count, 1, stream, true);  \
	}                                                                     \
	CUresult obf_cuMemset##name##Async(                                   \
		CUdeviceptr dst, type value, size_t count, CUstream stream)   \
	{                                                                     \
		return fill(dst, 0, value, element, count, 1, stream, false); \
	}

#define FILL_2D(name, type, element)                                                              \
	CUresult obf_cuMemset##name##_v2(CUdeviceptr dst, size_t pitch, type value, size_t width, \
		size_t height, CUstream stream)                                                   \
	{                                                                                         \
		return fill(dst, pitch, value, element, width, height, stream, true);             \
	}                                                                                         \
	CUresult obf_cuMemset##name##Async(CUdeviceptr dst, size_t pitch, type value,             \
		size_t width, size_t height, CUstream stream)                                     \
	{                                                                                         \
		return fill(dst, pitch, value, element, width, height, stream, false);            \
	}

FILL(D8, unsigned char, 1)
FILL(D16, unsigned short, 2)
FILL(D32, unsigned int, 4)
FILL_2D(D2D8, unsigned char, 1)
FILL_2D(D2D16, unsigned short, 2)
FILL_2D(D2D32, unsigned int, 4)
