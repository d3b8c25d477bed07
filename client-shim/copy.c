/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client-shim/cache.h"
#include "client-shim/hostfunc.h"
#include "client-shim/log.h"
#include "client-shim/stripe.h"
#include "protocol/obc_calls.h"
#include "protocol/obc_locals.h"

/* ---- bytes ---- */

static CUresult to_device(struct obf_ctx *ctx, const struct obc_lane_of *at, uint64_t dst,
	const void *src, size_t size)
{
	CUresult result;

	if (!obc_cache_write(dst, src, size, at->wire, &result))
		result = obc_stripe_write(dst, size, at->wire, src);
	obc_stream_mark(at, obc_log_last());
	return obc_ctx_result(ctx, result);
}

/* A copy is work in its stream: when it has arrived, all before it is complete. */
static CUresult arrived(
	struct obf_ctx *ctx, const struct obc_lane_of *at, uint64_t launches, CUresult result)
{
	if (result == CUDA_SUCCESS)
		obc_stream_arrived(at, obc_log_last(), launches);
	return obc_ctx_result(ctx, result);
}

static CUresult from_device(
	struct obf_ctx *ctx, const struct obc_lane_of *at, void *dst, uint64_t src, size_t size)
{
	uint64_t launches = obc_ctx_launches();

	return arrived(ctx, at, launches, obc_stripe_read(src, size, at->wire, dst));
}

/*
 * A call that is not "Async" has uploaded: above OBF_COPY_SMALL it waits for its stream, and here
 * that matters if kernels may be unfinished.
 * `launches`: from before the upload.
 */
static CUresult uploaded(
	struct obf_ctx *ctx, const struct obc_lane_of *at, uint64_t launches, size_t size)
{
	uint64_t number = obc_log_last();
	CUresult result;

	if (size <= OBF_COPY_SMALL || !obc_ctx_launched(at->home))
		return CUDA_SUCCESS;
	result = obc_stream_wait(ctx, at);
	/* The upload, as record `number`, stood behind all work that its stream waits for. */
	if (result == CUDA_SUCCESS)
		obc_stream_arrived(at, number, launches);
	return result;
}

static CUresult on_device(struct obf_ctx *ctx, const struct obc_lane_of *at,
	const struct obf_copy3d *c, uint64_t dst_ctx, uint64_t src_ctx)
{
	struct obp_copy_d2d_req *req;
	struct obc_slot slot;

	req = obc_log_begin(&slot, OBP_OP_COPY_D2D, sizeof *req);
	if (!req)
		return obc_log_error();
	*req = (struct obp_copy_d2d_req){
		.dst = c->dst,
		.src = c->src,
		.dst_pitch = c->dst_pitch,
		.src_pitch = c->src_pitch,
		.dst_slice = c->dst_slice,
		.src_slice = c->src_slice,
		.width = c->width,
		.height = c->height,
		.depth = c->depth,
		.dst_ctx = dst_ctx,
		.src_ctx = src_ctx,
		.stream = at->wire,
	};
	obc_stream_mark(at, slot.number);
	return obc_ctx_result(ctx, obc_log_commit(&slot));
}

/*
 * Host functions may still write what the program is about to send, and only the stream knows when:
 * wait for it.
 */
static CUresult before_host_read(struct obf_ctx *ctx, const struct obc_lane_of *at)
{
	return ob_unlikely(obc_hostfunc_pending()) ? obc_stream_wait(ctx, at) : CUDA_SUCCESS;
}

/* ---- boxes ---- */

static const uint8_t *host_row(uint64_t base, size_t pitch, size_t slice, size_t height, size_t row)
{
	return (const uint8_t *)(uintptr_t)(base + row / height * slice + row % height * pitch);
}

/* Rows [row, row + n) of one slice, gathered straight into the log. */
static CUresult rows_send(struct obf_ctx *ctx, const struct obc_lane_of *at,
	const struct obf_copy3d *c, size_t row, size_t n)
{
	struct obp_write_rows_req *req;
	struct obc_slot slot;
	void *data;

	req = obc_begin_op_write_rows(&slot, c->width, n, 1, &data);
	if (!req)
		return obc_log_error();
	req->dst = c->dst + row / c->height * c->dst_slice + row % c->height * c->dst_pitch;
	req->dst_pitch = c->dst_pitch;
	req->dst_slice = c->dst_slice;
	req->stream = at->wire;
	for (size_t i = 0; i < n; i++)
		memcpy((uint8_t *)data + i * c->width,
			host_row(c->src, c->src_pitch, c->src_slice, c->height, row + i), c->width);
	obc_stream_mark(at, slot.number);
	return obc_ctx_result(ctx, obc_log_commit(&slot));
}

static CUresult box_to_device(
	struct obf_ctx *ctx, const struct obc_lane_of *at, const struct obf_copy3d *c)
{
	CUresult result = CUDA_SUCCESS;
	size_t rows = c->height * c->depth, n;

	for (size_t row = 0; row < rows && result == CUDA_SUCCESS; row += n) {
		n = 1;
		if (c->width > OBP_ROWS_MAX) {
			uint64_t dst = c->dst + row / c->height * c->dst_slice +
				row % c->height * c->dst_pitch;

			result = to_device(ctx, at, dst,
				host_row(c->src, c->src_pitch, c->src_slice, c->height, row),
				c->width);
		} else {
			n = ob_min(c->height - row % c->height, OBP_ROWS_MAX / c->width);
			result = rows_send(ctx, at, c, row, n);
		}
	}
	return result;
}

/* Host memory with gaps: rows arrive packed and are spread. */
static CUresult box_scatter(
	struct obf_ctx *ctx, const struct obc_lane_of *at, const struct obf_copy3d *c)
{
	size_t most = ob_max(OBC_SCATTER_BYTES / c->width, (size_t)1), rows = c->height * c->depth,
	       n;
	uint64_t launches = obc_ctx_launches();
	OB_CLEANUP(ob_freep) uint8_t *packed = NULL;
	CUresult result = CUDA_SUCCESS;

	if (c->width <= OBC_SCATTER_BYTES && !(packed = malloc(ob_min(most, c->height) * c->width)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t row = 0; row < rows && result == CUDA_SUCCESS; row += n) {
		uint64_t src =
			c->src + row / c->height * c->src_slice + row % c->height * c->src_pitch;
		uint8_t *dst = (uint8_t *)(uintptr_t)host_row(
			c->dst, c->dst_pitch, c->dst_slice, c->height, row);

		n = packed ? ob_min(c->height - row % c->height, most) : 1;
		if (!packed) {
			result = from_device(ctx, at, dst, src, c->width);
			continue;
		}
		result = arrived(ctx, at, launches,
			obc_call_op_read_rows(
				src, c->src_pitch, c->src_slice, c->width, n, 1, at->wire, packed));
		for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
			memcpy(dst + i * c->dst_pitch, packed + i * c->width, c->width);
	}
	return result;
}

static bool is_packed(const struct obf_copy3d *c, size_t pitch, size_t slice)
{
	return (pitch == c->width || c->height == 1) &&
		(slice == c->width * c->height || c->depth == 1) &&
		(c->height == 1 || pitch == c->width);
}

static CUresult box_from_device(
	struct obf_ctx *ctx, const struct obc_lane_of *at, const struct obf_copy3d *c)
{
	uint64_t launches = obc_ctx_launches();

	if (!is_packed(c, c->dst_pitch, c->dst_slice))
		return box_scatter(ctx, at, c);
	return arrived(ctx, at, launches,
		obc_call_op_read_rows(c->src, c->src_pitch, c->src_slice, c->width, c->height,
			c->depth, at->wire, (void *)(uintptr_t)c->dst));
}

static CUresult box_on_host(
	struct obf_ctx *ctx, const struct obc_lane_of *at, const struct obf_copy3d *c)
{
	/* In the stream's order: what stands before may still read or write these bytes. */
	CUresult result = obc_stream_wait(ctx, at);

	for (size_t row = 0; row < c->height * c->depth && result == CUDA_SUCCESS; row++)
		memmove((void *)(uintptr_t)host_row(
				c->dst, c->dst_pitch, c->dst_slice, c->height, row),
			host_row(c->src, c->src_pitch, c->src_slice, c->height, row), c->width);
	return result;
}

CUresult obc_copy_box(struct obf_ctx *ctx, const struct obc_lane_of *at, const struct obf_copy3d *c,
	uint64_t dst_ctx, uint64_t src_ctx)
{
	size_t all = c->width * c->height * c->depth;
	CUresult result;

	if (!all)
		return CUDA_SUCCESS;
	if (c->src_device && c->dst_device)
		return on_device(ctx, at, c, dst_ctx, src_ctx);
	if (!c->src_device && !c->dst_device)
		return box_on_host(ctx, at, c);
	if (is_packed(c, c->src_pitch, c->src_slice) && is_packed(c, c->dst_pitch, c->dst_slice)) {
		if (c->src_device)
			return from_device(ctx, at, (void *)(uintptr_t)c->dst, c->src, all);
		result = before_host_read(ctx, at);
		return result == CUDA_SUCCESS
			? to_device(ctx, at, c->dst, (const void *)(uintptr_t)c->src, all)
			: result;
	}
	if (c->src_device)
		return box_from_device(ctx, at, c);
	result = before_host_read(ctx, at);
	return result == CUDA_SUCCESS ? box_to_device(ctx, at, c) : result;
}

/* By a call that is not "Async". */
static CUresult box_sync(
	struct obf_ctx *ctx, const struct obc_lane_of *at, const struct obf_copy3d *c)
{
	uint64_t launches = obc_ctx_launches();
	CUresult result = obc_copy_box(ctx, at, c, 0, 0);

	if (result != CUDA_SUCCESS || c->src_device || !c->dst_device)
		return result;
	return uploaded(ctx, at, launches, c->width * c->height * c->depth);
}

/* ---- the program's calls: one dimension ---- */

static CUresult enter(CUstream stream, struct obf_ctx **ret_ctx, struct obc_lane_of *ret_at)
{
	CUresult result = obf_ctx_enter(ret_ctx);

	return result == CUDA_SUCCESS ? obc_stream_any(stream, *ret_ctx, ret_at) : result;
}

static CUresult upload(CUdeviceptr dst, const void *src, size_t size, CUstream stream, bool sync)
{
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	uint64_t launches;
	CUresult result = enter(stream, &ctx, &at);

	if (result != CUDA_SUCCESS || size == 0)
		return result;
	if (!src)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_mem_check_device(dst, size);
	if (result == CUDA_SUCCESS)
		result = before_host_read(ctx, &at);
	launches = obc_ctx_launches();
	if (result == CUDA_SUCCESS)
		result = to_device(ctx, &at, dst, src, size);
	return sync && result == CUDA_SUCCESS ? uploaded(ctx, &at, launches, size) : result;
}

CUresult obc_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	return upload(dst, src, size, stream, false);
}

CUresult obc_cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	return upload(dst, src, size, stream, true);
}

CUresult obc_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = enter(stream, &ctx, &at);

	if (result != CUDA_SUCCESS || size == 0)
		return result;
	if (!dst)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_mem_check_device(src, size);
	return result == CUDA_SUCCESS ? from_device(ctx, &at, dst, src, size) : result;
}

CUresult obc_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return obc_cuMemcpyDtoHAsync_v2(dst, src, size, stream);
}

static struct obf_copy3d line(
	uint64_t dst, bool dst_device, uint64_t src, bool src_device, size_t size)
{
	return (struct obf_copy3d){ src_device, dst_device, src, dst, size, size, size, size, size,
		1, 1 };
}

CUresult obc_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	struct obf_copy3d copy = line(dst, true, src, true, size);
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = enter(stream, &ctx, &at);

	if (result != CUDA_SUCCESS || size == 0)
		return result;
	result = obf_mem_check_device(dst, size);
	if (result == CUDA_SUCCESS)
		result = obf_mem_check_device(src, size);
	return result == CUDA_SUCCESS ? on_device(ctx, &at, &copy, 0, 0) : result;
}

CUresult obc_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return obc_cuMemcpyDtoDAsync_v2(dst, src, size, stream);
}

/* Either side may be host or device memory: the map tells. */
static CUresult either(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream, bool sync)
{
	struct obf_copy3d copy =
		line(dst, obf_mem_is_device(dst), src, obf_mem_is_device(src), size);
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = enter(stream, &ctx, &at);

	if (result != CUDA_SUCCESS || size == 0)
		return result;
	if (!dst || !src)
		return CUDA_ERROR_INVALID_VALUE;
	if (copy.dst_device)
		result = obf_mem_check_device(dst, size);
	if (copy.src_device && result == CUDA_SUCCESS)
		result = obf_mem_check_device(src, size);
	if (result == CUDA_SUCCESS)
		result = sync ? box_sync(ctx, &at, &copy) : obc_copy_box(ctx, &at, &copy, 0, 0);
	return result;
}

CUresult obc_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return either(dst, src, size, stream, false);
}

CUresult obc_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return either(dst, src, size, stream, true);
}

CUresult obc_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
	CUcontext src_ctx, size_t size, CUstream stream)
{
	struct obf_copy3d copy = line(dst, true, src, true, size);
	uint64_t to = obc_ctx_wire(dst_ctx), from = obc_ctx_wire(src_ctx);
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = enter(stream, &ctx, &at);

	if (result != CUDA_SUCCESS)
		return result;
	if (!to || !from)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (size == 0)
		return CUDA_SUCCESS;
	result = obf_mem_check_device(dst, size);
	if (result == CUDA_SUCCESS)
		result = obf_mem_check_device(src, size);
	return result == CUDA_SUCCESS ? on_device(ctx, &at, &copy, to, from) : result;
}

/* Comes after everything in both contexts. */
static CUresult peers_settle(CUcontext dst_ctx, CUcontext src_ctx)
{
	struct obf_ctx *dst = obf_ctx_from_handle(dst_ctx), *src = obf_ctx_from_handle(src_ctx);
	CUresult result = dst && dst->backend ? obf_ctx_settle(dst) : CUDA_SUCCESS;

	return result == CUDA_SUCCESS && src && src != dst && src->backend ? obf_ctx_settle(src)
									   : result;
}

CUresult obc_cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
	size_t size, CUstream stream)
{
	CUresult result = peers_settle(dst_ctx, src_ctx);

	return result != CUDA_SUCCESS
		? result
		: obc_cuMemcpyPeerAsync(dst, dst_ctx, src, src_ctx, size, stream);
}

/* ---- two and three dimensions ---- */

static CUresult copy_2d(const CUDA_MEMCPY2D *params, CUstream stream, bool sync)
{
	struct obf_copy3d copy;
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = enter(stream, &ctx, &at);

	if (result == CUDA_SUCCESS)
		result = obf_copy_from_2d(params, &copy);
	if (result != CUDA_SUCCESS)
		return result;
	return sync ? box_sync(ctx, &at, &copy) : obc_copy_box(ctx, &at, &copy, 0, 0);
}

CUresult obc_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *params, CUstream stream)
{
	return copy_2d(params, stream, false);
}

CUresult obc_cuMemcpy2D_v2(const CUDA_MEMCPY2D *params, CUstream stream)
{
	return copy_2d(params, stream, true);
}

CUresult obc_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *params, CUstream stream)
{
	return copy_2d(params, stream, true);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *params, CUstream stream, bool sync)
{
	struct obf_copy3d copy;
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = enter(stream, &ctx, &at);

	if (result == CUDA_SUCCESS)
		result = obf_copy_from_3d(params, &copy);
	if (result != CUDA_SUCCESS)
		return result;
	return sync ? box_sync(ctx, &at, &copy) : obc_copy_box(ctx, &at, &copy, 0, 0);
}

CUresult obc_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *params, CUstream stream)
{
	return copy_3d(params, stream, false);
}

CUresult obc_cuMemcpy3D_v2(const CUDA_MEMCPY3D *params, CUstream stream)
{
	return copy_3d(params, stream, true);
}

CUresult obc_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *p, CUstream stream)
{
	struct obf_copy3d copy;
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = enter(stream, &ctx, &at);

	if (result != CUDA_SUCCESS)
		return result;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D plain = {
		.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcZ = p->srcZ,
		.srcLOD = p->srcLOD,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcArray = p->srcArray,
		.srcPitch = p->srcPitch,
		.srcHeight = p->srcHeight,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstZ = p->dstZ,
		.dstLOD = p->dstLOD,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstArray = p->dstArray,
		.dstPitch = p->dstPitch,
		.dstHeight = p->dstHeight,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = p->Depth,
	};
	uint64_t to = obc_ctx_wire(p->dstContext), from = obc_ctx_wire(p->srcContext);
	if (!to || !from)
		return CUDA_ERROR_INVALID_CONTEXT;
	result = obf_copy_from_3d(&plain, &copy);
	return result == CUDA_SUCCESS ? obc_copy_box(ctx, &at, &copy, to, from) : result;
}

CUresult obc_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *params, CUstream stream)
{
	CUresult result =
		params ? peers_settle(params->dstContext, params->srcContext) : CUDA_SUCCESS;

	return result != CUDA_SUCCESS ? result : obc_cuMemcpy3DPeerAsync(params, stream);
}
