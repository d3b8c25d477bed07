/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/copy.h"

#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "protocol/obd_locals.h"
#include "softdevice/context.h"
#include "softdevice/memory.h"
#include "softdevice/sched.h"
#include "softdevice/stream.h"

#define HOST_LOWEST 65536u /* no host memory lies below: mmap_min_addr */

struct copy_op {
	struct obd_op op;
	struct obf_copy3d copy;
	_Alignas(16) unsigned char stage[];
};

static void rows_copy(const struct obf_copy3d *c, uint64_t dst, uint64_t src)
{
	if (c->src_pitch == c->width && c->dst_pitch == c->width &&
		(c->depth == 1 ||
			(c->src_slice == c->width * c->height && c->dst_slice == c->src_slice))) {
		memmove((void *)dst, (const void *)src, c->width * c->height * c->depth);
		return;
	}
	for (size_t z = 0; z < c->depth; z++)
		for (size_t y = 0; y < c->height; y++)
			memmove((void *)(dst + z * c->dst_slice + y * c->dst_pitch),
				(const void *)(src + z * c->src_slice + y * c->src_pitch),
				c->width);
}

static void copy_run(struct obd_op *op)
{
	struct copy_op *c = (struct copy_op *)op;

	rows_copy(&c->copy, c->copy.dst, c->copy.src);
}

/* Bytes from the first to the last that the rows touch; false: more than there can be. */
static bool extent(
	size_t width, size_t height, size_t depth, size_t pitch, size_t slice, uint64_t *ret)
{
	uint64_t rows, slices;

	return !ob_mul_overflows((uint64_t)(height - 1), pitch, &rows) &&
		!ob_mul_overflows((uint64_t)(depth - 1), slice, &slices) &&
		!ob_add_overflows(rows, slices, ret) && !ob_add_overflows(*ret, width, ret);
}

static bool pinned(uint64_t addr, uint64_t size)
{
	struct obf_mem mem;

	return obf_mem_find(addr, &mem) && mem.kind == OBF_MEM_HOST &&
		ob_span_inside(addr - mem.base, size, mem.size);
}

CUresult obd_copy_check(uint64_t addr, uint64_t size)
{
	if (size == 0 || (!obd_window_holds(addr) && pinned(addr, size)))
		return CUDA_SUCCESS;
	return obd_memory_check(addr, size);
}

/* A side that the call says is host memory may be anything that is not known to be wrong. */
static CUresult side_check(bool device, uint64_t addr, uint64_t size)
{
	if (device || obd_window_holds(addr))
		return obd_copy_check(addr, size);
	return addr < HOST_LOWEST ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static struct copy_op *copy_op_new(struct obd_ctx *ctx, const struct obf_copy3d *copy, bool staged)
{
	size_t bytes = staged ? copy->width * copy->height * copy->depth : 0;
	struct copy_op *op = obd_op_new(sizeof *op + bytes, OBD_OP_COPY, ctx);

	if (!op)
		return NULL;
	op->op.run = copy_run;
	op->copy = *copy;
	if (staged) {
		op->copy.src = (uint64_t)op->stage;
		op->copy.src_pitch = copy->width;
		op->copy.src_slice = copy->width * copy->height;
		struct obf_copy3d in = *copy;
		in.dst_pitch = op->copy.src_pitch;
		in.dst_slice = op->copy.src_slice;
		rows_copy(&in, op->copy.src, copy->src);
	}
	return op;
}

static CUresult copy_checked(const struct obf_copy3d *copy, enum obd_copy_mode mode,
	struct obd_ctx *ctx, struct obd_stream *stream)
{
	uint64_t src_bytes, dst_bytes, bytes = (uint64_t)copy->width * copy->height * copy->depth;
	bool staged = false, wait = false;
	struct copy_op *op;
	CUresult result;

	if (!extent(copy->width, copy->height, copy->depth, copy->src_pitch, copy->src_slice,
		    &src_bytes) ||
		!extent(copy->width, copy->height, copy->depth, copy->dst_pitch, copy->dst_slice,
			&dst_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	result = side_check(copy->src_device, copy->src, src_bytes);
	if (!result)
		result = side_check(copy->dst_device, copy->dst, dst_bytes);
	if (result)
		return result;
	if (mode == OBD_COPY_BLOCKING) {
		/*
		 * As CUDA: not between device addresses, and not for a small upload, whose bytes
		 * are taken over at once.
		 */
		staged = !obd_window_holds(copy->src) && obd_window_holds(copy->dst) &&
			bytes <= OBF_COPY_SMALL;
		wait = !staged && (!obd_window_holds(copy->src) || !obd_window_holds(copy->dst));
	} else if (!obd_window_holds(copy->dst) && !pinned(copy->dst, dst_bytes)) {
		wait = true;
	} else if (!obd_window_holds(copy->src) && !pinned(copy->src, src_bytes)) {
		staged = bytes <= OBD_STAGE_MAX;
		wait = !staged;
	}
	op = copy_op_new(stream->ctx, copy, staged);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (wait)
		result = obd_sched_perform(&op->op, stream);
	else if (mode == OBD_COPY_BLOCKING || bytes <= OBD_SHORT_MAX)
		result = obd_sched_soon(&op->op, stream);
	else
		result = obd_sched_submit(&op->op, stream, NULL);
	/*
	 * A small upload does not wait for kernels. It does wait for other copies: a kernel on a
	 * non-blocking stream, which comes next in many programs and does not wait for the default
	 * stream, finds its bytes. CUDA does not promise that order.
	 */
	if (!result && staged && mode == OBD_COPY_BLOCKING && !op->op.behind_code)
		obd_op_wait(&op->op);
	obd_op_unref(&op->op);
	if (!result && wait) {
		obd_print_flush(&stream->ctx->print);
		result = obd_ctx_result(ctx);
	}
	return result;
}

CUresult obd_copy_do(const struct obf_copy3d *copy, enum obd_copy_mode mode, CUstream stream)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (result || copy->width == 0 || copy->height == 0 || copy->depth == 0)
		return result;
	return copy_checked(copy, mode, ctx, s);
}

/* ---- public calls, one row ---- */

static CUresult row_do(uint64_t dst, bool dst_device, uint64_t src, bool src_device, size_t bytes,
	enum obd_copy_mode mode, CUstream stream)
{
	struct obf_copy3d copy = {
		.dst = dst,
		.dst_device = dst_device,
		.src = src,
		.src_device = src_device,
		.width = bytes,
		.height = 1,
		.depth = 1,
		.dst_pitch = bytes,
		.src_pitch = bytes,
	};

	return obd_copy_do(&copy, mode, stream);
}

CUresult obd_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return row_do(dst, false, src, false, bytes, OBD_COPY_BLOCKING, stream);
}

CUresult obd_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return row_do(dst, false, src, false, bytes, OBD_COPY_ASYNC, stream);
}

CUresult obd_cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	return row_do(dst, true, (uint64_t)src, false, bytes, OBD_COPY_BLOCKING, stream);
}

CUresult obd_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	return row_do(dst, true, (uint64_t)src, false, bytes, OBD_COPY_ASYNC, stream);
}

CUresult obd_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return row_do((uint64_t)dst, false, src, true, bytes, OBD_COPY_BLOCKING, stream);
}

CUresult obd_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return row_do((uint64_t)dst, false, src, true, bytes, OBD_COPY_ASYNC, stream);
}

CUresult obd_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return row_do(dst, true, src, true, bytes, OBD_COPY_BLOCKING, stream);
}

CUresult obd_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return row_do(dst, true, src, true, bytes, OBD_COPY_ASYNC, stream);
}

/* ---- rows ---- */

static CUresult copy_2d(const CUDA_MEMCPY2D *copy, enum obd_copy_mode mode, CUstream stream)
{
	struct obf_copy3d normal;
	CUresult result = copy ? obf_copy_from_2d(copy, &normal) : CUDA_ERROR_INVALID_VALUE;

	return result ? result : obd_copy_do(&normal, mode, stream);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *copy, enum obd_copy_mode mode, CUstream stream)
{
	struct obf_copy3d normal;
	CUresult result = copy ? obf_copy_from_3d(copy, &normal) : CUDA_ERROR_INVALID_VALUE;

	return result ? result : obd_copy_do(&normal, mode, stream);
}

CUresult obd_cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return copy_2d(copy, OBD_COPY_BLOCKING, stream);
}

CUresult obd_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return copy_2d(copy, OBD_COPY_BLOCKING, stream);
}

CUresult obd_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return copy_2d(copy, OBD_COPY_ASYNC, stream);
}

CUresult obd_cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	return copy_3d(copy, OBD_COPY_BLOCKING, stream);
}

CUresult obd_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	return copy_3d(copy, OBD_COPY_ASYNC, stream);
}

/* ---- between contexts: all devices share the window, so only order is left to see to ---- */

static CUresult peers_check(
	CUcontext dst_ctx, CUcontext src_ctx, struct obd_ctx **ret_dst, struct obd_ctx **ret_src)
{
	struct obf_ctx *dst = obf_ctx_from_handle(dst_ctx), *src = obf_ctx_from_handle(src_ctx);

	if (!dst || !src)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret_dst = dst->backend;
	*ret_src = src->backend;
	return CUDA_SUCCESS;
}

/* A blocking copy between contexts comes after everything in both. */
static CUresult peers_wait(CUcontext dst_ctx, CUcontext src_ctx)
{
	struct obd_ctx *dst, *src;
	CUresult result = peers_check(dst_ctx, src_ctx, &dst, &src);

	if (!result && dst)
		obd_ctx_wait(dst, false);
	if (!result && src && src != dst)
		obd_ctx_wait(src, false);
	return result;
}

CUresult obd_cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
	size_t bytes, CUstream stream)
{
	struct obd_ctx *ctx;
	CUresult result = obd_ctx_enter(&ctx);

	if (!result)
		result = peers_wait(dst_ctx, src_ctx);
	return result ? result : row_do(dst, true, src, true, bytes, OBD_COPY_BLOCKING, stream);
}

CUresult obd_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
	CUcontext src_ctx, size_t bytes, CUstream stream)
{
	struct obd_ctx *ctx, *dst_host, *src_host;
	CUresult result = obd_ctx_enter(&ctx);

	if (!result)
		result = peers_check(dst_ctx, src_ctx, &dst_host, &src_host);
	return result ? result : row_do(dst, true, src, true, bytes, OBD_COPY_ASYNC, stream);
}

static CUDA_MEMCPY3D without_peers(const CUDA_MEMCPY3D_PEER *p)
{
	return (CUDA_MEMCPY3D){
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
}

CUresult obd_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	struct obd_ctx *ctx;
	CUDA_MEMCPY3D plain;
	CUresult result = obd_ctx_enter(&ctx);

	if (!result && !copy)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = peers_wait(copy->dstContext, copy->srcContext);
	if (result)
		return result;
	plain = without_peers(copy);
	return copy_3d(&plain, OBD_COPY_BLOCKING, stream);
}

CUresult obd_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	struct obd_ctx *ctx, *dst, *src;
	CUDA_MEMCPY3D plain;
	CUresult result = obd_ctx_enter(&ctx);

	if (!result && !copy)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = peers_check(copy->dstContext, copy->srcContext, &dst, &src);
	if (result)
		return result;
	plain = without_peers(copy);
	return copy_3d(&plain, OBD_COPY_ASYNC, stream);
}
