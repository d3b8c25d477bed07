/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cuMemcpy and similar calls: each form becomes a write, a read or an obf_copy. */
#include "front/array.h"
#include "front/captured.h"
#include "front/copy.h"
#include "front/mirror.h"
#include "front/private.h"
#include "front/stream.h"
#include "front/waited.h"
#include "protocol/obf_calls.h"

/* ---- one row ---- */

/* Source and destination are both device memory or both host memory. */
static __attribute__((noinline)) CUresult row_copy(struct obf_stream *stream, uint64_t dst,
	bool dst_device, uint64_t src, bool src_device, size_t size, bool blocking)
{
	struct obf_copy copy = obf_copy_row(dst, src, size);

	copy.dst_device = dst_device;
	copy.src_device = src_device;
	return obf_process.backend->copy(stream, &copy, blocking);
}

static __attribute__((noinline)) CUresult row_capture(struct obf_stream *stream, uint64_t dst,
	bool dst_device, uint64_t src, bool src_device, size_t size, bool blocking)
{
	struct obf_copy copy = obf_copy_row(dst, src, size);

	copy.dst_device = dst_device;
	copy.src_device = src_device;
	return obf_capture_copy(stream, &copy, blocking);
}

/* dst_said, src_said: the parameter is a CUdeviceptr, which means device memory. */
static inline __attribute__((always_inline)) CUresult row(uint64_t dst, bool dst_said, uint64_t src,
	bool src_said, size_t size, CUstream handle, bool blocking)
{
	bool dst_device, src_device;
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(handle, &stream);

	if (ob_unlikely(result != CUDA_SUCCESS) || size == 0)
		return result;
	result = obf_mem_side(dst, size, dst_said, &dst_device);
	if (ob_likely(result == CUDA_SUCCESS))
		result = obf_mem_side(src, size, src_said, &src_device);
	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	if (ob_unlikely(stream->capture != NULL))
		return row_capture(stream, dst, dst_device, src, src_device, size, blocking);
	result = obf_mirrors_copy(stream, src_device, src);
	if (ob_unlikely(result != CUDA_SUCCESS))
		return obf_ctx_result(stream->ctx, result);
	if (dst_device && !src_device)
		result = obf_process.backend->write(
			stream, dst, (const void *)(uintptr_t)src, size, blocking);
	else if (src_device && !dst_device)
		result = obf_process.backend->read(
			stream, (void *)(uintptr_t)dst, src, size, blocking);
	else
		result = row_copy(stream, dst, dst_device, src, src_device, size, blocking);
	if (result == CUDA_SUCCESS)
		result = obf_mirrors_copied(stream, dst_device, dst);
	if (blocking && obf_waited_heard())
		result = obf_waited(result, NULL, false);
	return obf_ctx_result(stream->ctx, result);
}

CUresult obf_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	return row(dst, true, (uintptr_t)src, false, size, stream, false);
}

CUresult obf_cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	return row(dst, true, (uintptr_t)src, false, size, stream, true);
}

CUresult obf_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return row((uintptr_t)dst, false, src, true, size, stream, false);
}

CUresult obf_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return row((uintptr_t)dst, false, src, true, size, stream, true);
}

CUresult obf_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return row(dst, true, src, true, size, stream, false);
}

CUresult obf_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return row(dst, true, src, true, size, stream, true);
}

CUresult obf_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return row(dst, false, src, false, size, stream, false);
}

CUresult obf_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return row(dst, false, src, false, size, stream, true);
}

/* ---- rows and slices ---- */

/* Makes a copy that may be empty. */
static CUresult box_copy(struct obf_stream *stream, const struct obf_copy *copy, bool blocking)
{
	CUresult result;

	if (!copy->width || !copy->height || !copy->depth)
		return CUDA_SUCCESS;
	if (ob_unlikely(stream->capture != NULL))
		return obf_capture_copy(stream, copy, blocking);
	result = obf_mirrors_copy(stream, copy->src_device, copy->src);
	if (result == CUDA_SUCCESS)
		result = obf_process.backend->copy(stream, copy, blocking);
	if (result == CUDA_SUCCESS)
		result = obf_mirrors_copied(stream, copy->dst_device, copy->dst);
	if (blocking && obf_waited_heard())
		result = obf_waited(result, NULL, false);
	return obf_ctx_result(stream->ctx, result);
}

#define BOX_CALL(call, type, dimensions, blocking)                                               \
	CUresult obf_cuMemcpy##call(const type *params, CUstream handle)                         \
	{                                                                                        \
		struct obf_stream *stream;                                                       \
		struct obf_copy copy;                                                            \
		CUresult result = obf_stream_enter(handle, &stream);                             \
                                                                                                 \
		if (result == CUDA_SUCCESS && ob_unlikely(params && OBF_COPY_HAS_ARRAY(params))) \
			return obf_array_copy_##dimensions(stream, params, blocking);            \
		if (result == CUDA_SUCCESS)                                                      \
			result = obf_copy_from_##dimensions(params, &copy);                      \
		return result == CUDA_SUCCESS ? box_copy(stream, &copy, blocking) : result;      \
	}

BOX_CALL(2DAsync_v2, CUDA_MEMCPY2D, 2d, false)
BOX_CALL(2D_v2, CUDA_MEMCPY2D, 2d, true)
BOX_CALL(2DUnaligned_v2, CUDA_MEMCPY2D, 2d, true)
BOX_CALL(3DAsync_v2, CUDA_MEMCPY3D, 3d, false)
BOX_CALL(3D_v2, CUDA_MEMCPY3D, 3d, true)

/* ---- between contexts ---- */

/* A blocking copy is ordered after all work of both contexts. */
static CUresult peers_enter(CUcontext dst_handle, CUcontext src_handle, bool blocking,
	struct obf_ctx **ret_dst, struct obf_ctx **ret_src)
{
	struct obf_ctx *dst = obf_ctx_from_handle(dst_handle);
	struct obf_ctx *src = obf_ctx_from_handle(src_handle);
	CUresult result = CUDA_SUCCESS;

	if (!dst || !src || !atomic_load(&dst->active) || !atomic_load(&src->active))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (blocking)
		result = obf_ctx_settle(dst);
	if (blocking && result == CUDA_SUCCESS && src != dst)
		result = obf_ctx_settle(src);
	*ret_dst = dst;
	*ret_src = src;
	return result;
}

static CUresult peer_row(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
	size_t size, CUstream handle, bool blocking)
{
	struct obf_copy copy = obf_copy_row(dst, src, size);
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result == CUDA_SUCCESS)
		result = peers_enter(dst_ctx, src_ctx, blocking, &copy.dst_ctx, &copy.src_ctx);
	if (result != CUDA_SUCCESS || size == 0)
		return result;
	result = obf_mem_side(dst, size, true, &copy.dst_device);
	if (result == CUDA_SUCCESS)
		result = obf_mem_side(src, size, true, &copy.src_device);
	return result == CUDA_SUCCESS ? box_copy(stream, &copy, blocking) : result;
}

CUresult obf_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
	CUcontext src_ctx, size_t size, CUstream stream)
{
	return peer_row(dst, dst_ctx, src, src_ctx, size, stream, false);
}

CUresult obf_cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
	size_t size, CUstream stream)
{
	return peer_row(dst, dst_ctx, src, src_ctx, size, stream, true);
}

static CUresult peer_3d(const CUDA_MEMCPY3D_PEER *params, CUstream handle, bool blocking)
{
	struct obf_ctx *dst_ctx, *src_ctx;
	struct obf_stream *stream;
	struct obf_copy copy;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	result = peers_enter(params->dstContext, params->srcContext, blocking, &dst_ctx, &src_ctx);
	if (result == CUDA_SUCCESS && OBF_COPY_HAS_ARRAY(params))
		return obf_array_copy_peer(stream, params, dst_ctx, src_ctx, blocking);
	if (result == CUDA_SUCCESS)
		result = obf_copy_from_peer(params, &copy);
	if (result != CUDA_SUCCESS)
		return result;
	copy.dst_ctx = dst_ctx;
	copy.src_ctx = src_ctx;
	return box_copy(stream, &copy, blocking);
}

CUresult obf_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *params, CUstream stream)
{
	return peer_3d(params, stream, false);
}

CUresult obf_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *params, CUstream stream)
{
	return peer_3d(params, stream, true);
}
