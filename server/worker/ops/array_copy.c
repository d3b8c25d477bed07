/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Copies with arrays, to and within the device. Reads are in read.c. */
#include <string.h>

#include "base/check.h"
#include "server/worker/ops/array.h"
#include "server/worker/ops/box.h"
#include "server/worker/ops/ops.h"

void obs_op_array_write(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_array_write_req *req, const void *data)
{
	struct obs_array_box box = { .pos = { req->pos[0], req->pos[1], req->pos[2] },
		.width = req->width,
		.height = req->height,
		.depth = req->depth };
	/* the specification bounds it */
	uint64_t bytes = req->width * req->height * req->depth;
	struct obs_slot *slot;
	CUstream stream;
	CUresult result;

	if (!obs_stream_get(x, rec, req->stream, &stream) ||
		!obs_array_get(x, rec, req->array, &box.array))
		return;
	if (!obs_array_inside(x, &box)) {
		obs_async_result(x, rec, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	if (bytes == 0)
		return;
	slot = obs_staging_write_slot(&x->session->staging, x->context);
	memcpy(slot->data, data, bytes);
	const CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = slot->data,
		.srcPitch = req->width,
		.srcHeight = req->height,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstArray = box.array->driver,
		.dstXInBytes = req->pos[0],
		.dstY = req->pos[1],
		.dstZ = req->pos[2],
		.WidthInBytes = req->width,
		.Height = req->height,
		.Depth = req->depth };

	result = x->drv->cuMemcpy3DAsync_v2(&copy, stream);
	obs_staging_write_started(&x->session->staging, slot, x->context, stream);
	obs_async_result(x, rec, result);
}

/* ---- within the device ---- */

/* One side: an array, or memory. */
struct side {
	struct obs_array *array; /* NULL: memory */
	uint64_t pos[3];
};

/* Whether a side lies where it may. Other contexts' arrays are allowed in a copy between peers. */
static bool side_inside(struct obs_exec *x, const struct side *side, const struct box *memory,
	const struct obs_context *context)
{
	const struct obs_array_box box = { .array = side->array,
		.pos = { side->pos[0], side->pos[1], side->pos[2] },
		.width = memory->width,
		.height = memory->height,
		.depth = memory->depth };
	struct obs_exec there = *x;

	if (!side->array)
		return box_inside(x, memory) &&
			(memory->depth <= 1 ||
				(memory->pitch && memory->pitch >= memory->width &&
					memory->slice % memory->pitch == 0));
	there.context = (struct obs_context *)(uintptr_t)context;
	return obs_array_inside(&there, &box);
}

static CUDA_MEMCPY3D_PEER copy_of(
	const struct side *dst, const struct side *src, const struct box *memory)
{
	bool slices = memory->depth > 1 && (!dst->array || !src->array);
	size_t height = slices ? memory->slice / memory->pitch : memory->height;
	size_t pitch = ob_max(memory->pitch, memory->width);

	return (CUDA_MEMCPY3D_PEER){
		.srcMemoryType = src->array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE,
		.srcArray = src->array ? src->array->driver : NULL,
		.srcDevice = src->array ? 0 : memory->addr,
		.srcXInBytes = src->pos[0],
		.srcY = src->pos[1],
		.srcZ = src->pos[2],
		.srcPitch = src->array ? 0 : pitch,
		.srcHeight = src->array ? 0 : height,
		.dstMemoryType = dst->array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE,
		.dstArray = dst->array ? dst->array->driver : NULL,
		.dstDevice = dst->array ? 0 : memory->addr,
		.dstXInBytes = dst->pos[0],
		.dstY = dst->pos[1],
		.dstZ = dst->pos[2],
		.dstPitch = dst->array ? 0 : pitch,
		.dstHeight = dst->array ? 0 : height,
		.WidthInBytes = memory->width,
		.Height = memory->height,
		.Depth = memory->depth,
	};
}

static CUresult copy_run(struct obs_exec *x, CUDA_MEMCPY3D_PEER *peer, CUcontext dst_ctx,
	CUcontext src_ctx, CUstream stream)
{
	CUDA_MEMCPY3D copy;

	_Static_assert(sizeof copy == sizeof *peer, "they differ in the contexts only");
	if (dst_ctx != src_ctx) {
		peer->dstContext = dst_ctx;
		peer->srcContext = src_ctx;
		return x->drv->cuMemcpy3DPeerAsync(peer, stream);
	}
	memcpy(&copy, peer, sizeof copy);
	return x->drv->cuMemcpy3DAsync_v2(&copy, stream);
}

static bool side_get(struct obs_exec *x, const struct obp_record *rec, uint64_t id,
	const uint64_t pos[3], struct side *ret)
{
	*ret = (struct side){ 0 };
	if (!id)
		return true;
	memcpy(ret->pos, pos, sizeof ret->pos);
	return obs_array_get(x, rec, id, &ret->array);
}

void obs_op_array_copy(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_array_copy_req *req)
{
	const struct box memory = { req->addr, req->pitch, req->slice, req->width, req->height,
		req->depth };
	const struct obs_context *dst_context = x->context, *src_context = x->context;
	CUcontext dst_ctx = NULL, src_ctx = NULL;
	struct side dst, src;
	CUDA_MEMCPY3D_PEER copy;
	CUstream stream;

	if (!obs_stream_get(x, rec, req->stream, &stream) ||
		!side_get(x, rec, req->dst, req->dst_at, &dst) ||
		!side_get(x, rec, req->src, req->src_at, &src))
		return;
	if (req->dst_ctx != req->src_ctx) {
		if (!obs_peer_context(x, rec, req->dst_ctx, &dst_ctx) ||
			!obs_peer_context(x, rec, req->src_ctx, &src_ctx))
			return;
		dst_context = dst.array ? dst.array->context : NULL;
		src_context = src.array ? src.array->context : NULL;
		if ((dst_context && dst_context->driver != dst_ctx) ||
			(src_context && src_context->driver != src_ctx))
			dst.array = src.array = NULL;
	}
	if ((!dst.array && !src.array) || !side_inside(x, &dst, &memory, dst_context) ||
		!side_inside(x, &src, &memory, src_context)) {
		obs_async_result(x, rec, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	if (!req->width || !req->height || !req->depth)
		return;
	copy = copy_of(&dst, &src, &memory);
	obs_async_result(x, rec, copy_run(x, &copy, dst_ctx, src_ctx, stream));
}
