/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Fills: six calls and their asynchronous twins are one record. None of them waits for the device,
 * as in CUDA.
 */
#include "client-shim/log.h"
#include "client-shim/stream.h"
#include "protocol/obc_calls.h"
#include "protocol/obc_locals.h"

/* width in elements of `element` bytes. */
static CUresult fill(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element, size_t width,
	size_t height, CUstream stream)
{
	struct obp_memset_req *req;
	struct obc_lane_of at;
	struct obc_slot slot;
	struct obf_ctx *ctx;
	size_t row, size;
	CUresult result = obf_ctx_enter(&ctx);

	if (result == CUDA_SUCCESS)
		result = obc_stream_any(stream, ctx, &at);
	if (result != CUDA_SUCCESS)
		return result;
	if (dst % element || ob_mul_overflows(width, element, &row))
		return CUDA_ERROR_INVALID_VALUE;
	if (!width || !height)
		return CUDA_SUCCESS;
	if (height > 1 && (pitch < row || pitch % element))
		return CUDA_ERROR_INVALID_VALUE;
	if (ob_mul_overflows(height - 1, pitch, &size) || ob_add_overflows(size, row, &size))
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_mem_check_device(dst, size);
	if (result != CUDA_SUCCESS)
		return result;
	req = obc_log_begin(&slot, OBP_OP_MEMSET, sizeof *req);
	if (!req)
		return obc_log_error();
	*req = (struct obp_memset_req){ .dst = dst,
		.value = value,
		.element = element,
		.pitch = pitch,
		.width = width,
		.height = height,
		.stream = at.wire };
	obc_stream_mark(&at, slot.number);
	return obc_ctx_result(ctx, obc_log_commit(&slot));
}

CUresult obc_cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
	return fill(dst, 0, value, 1, count, 1, stream);
}

CUresult obc_cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)
{
	return fill(dst, 0, value, 2, count, 1, stream);
}

CUresult obc_cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream)
{
	return fill(dst, 0, value, 4, count, 1, stream);
}

CUresult obc_cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
	size_t height, CUstream stream)
{
	return fill(dst, pitch, value, 1, width, height, stream);
}

CUresult obc_cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
	size_t height, CUstream stream)
{
	return fill(dst, pitch, value, 2, width, height, stream);
}

CUresult obc_cuMemsetD2D32Async(
	CUdeviceptr dst, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream)
{
	return fill(dst, pitch, value, 4, width, height, stream);
}

CUresult obc_cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
	return fill(dst, 0, value, 1, count, 1, stream);
}

CUresult obc_cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)
{
	return fill(dst, 0, value, 2, count, 1, stream);
}

CUresult obc_cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t count, CUstream stream)
{
	return fill(dst, 0, value, 4, count, 1, stream);
}

CUresult obc_cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
	size_t height, CUstream stream)
{
	return fill(dst, pitch, value, 1, width, height, stream);
}

CUresult obc_cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
	size_t height, CUstream stream)
{
	return fill(dst, pitch, value, 2, width, height, stream);
}

CUresult obc_cuMemsetD2D32_v2(
	CUdeviceptr dst, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream)
{
	return fill(dst, pitch, value, 4, width, height, stream);
}
