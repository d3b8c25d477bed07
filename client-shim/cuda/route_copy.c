/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Copies and fills of memory that belongs to another server than the stream, and copies between
 * two servers, whose bytes pass through this process:
 *
 *   server of src  --- read, part k + 1 -->  this process  --- write, part k -->  server of dst
 *
 * A part is written into the log of the second server, whose sender thread sends it while this
 * thread reads the next one. The call first waits for the stream, and returns when the other
 * server has the bytes: it is in order with the stream, and with the legacy stream of the memory's
 * context.
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "client-shim/cuda/array.h"
#include "client-shim/cuda/copy.h"
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/route_inside.h"
#include "client-shim/cuda/stream.h"
#include "client-shim/session/log.h"
#include "front/array.h"
#include "front/stream.h"

/*
 * Bytes of a part. Small, so that the first one arrives soon; large enough that its round trip is a
 * small part of the time that its bytes take at PART_RATE (bytes/ns). At most half of the default
 * ring of the second server's log, so that a part seldom waits for room there.
 */
#define PART_LEAST (256u << 10)
#define PART_MOST  (4u << 20)
#define PART_RATE  1u

static uint32_t server_of(const struct obf_ctx *ctx)
{
	return obc_device_server(ctx->device);
}

/* Waits for the stream, and finds the legacy stream of the context of the memory at addr. */
static CUresult leave(struct obf_stream *stream, uint64_t addr, struct obf_stream **ret)
{
	struct obf_ctx *ctx;
	struct obf_mem mem;

	if (!obf_mem_find(addr, &mem))
		return CUDA_ERROR_INVALID_VALUE;
	ctx = mem.ctx && atomic_load(&mem.ctx->active) ? mem.ctx : obf_ctx_primary(mem.device);
	if (!ctx || !atomic_load(&ctx->active))
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = ctx->legacy;
	OBC_VISIT(stream->ctx);
	return obc_stream_wait(stream);
}

static CUresult route_write(
	struct obf_stream *stream, uint64_t dst, const void *src, size_t size, bool blocking)
{
	uint32_t here = server_of(stream->ctx);
	struct obf_stream *at;
	CUresult result;

	if (ob_likely(obc_route_at(dst, here) == here)) {
		OBC_VISIT(stream->ctx);
		return obc_copy_write(stream, dst, src, size, blocking);
	}
	result = leave(stream, dst, &at);
	if (result != CUDA_SUCCESS)
		return result;
	OBC_VISIT(at->ctx);
	result = obc_copy_write(at, dst, src, size, true);
	return result == CUDA_SUCCESS ? obc_stream_wait(at) : result;
}

static CUresult route_read(
	struct obf_stream *stream, void *dst, uint64_t src, size_t size, bool blocking)
{
	uint32_t here = server_of(stream->ctx);
	struct obf_stream *at;
	CUresult result;

	if (ob_likely(obc_route_at(src, here) == here)) {
		OBC_VISIT(stream->ctx);
		return obc_copy_read(stream, dst, src, size, blocking);
	}
	result = leave(stream, src, &at);
	if (result != CUDA_SUCCESS)
		return result;
	OBC_VISIT(at->ctx);
	return obc_copy_read(at, dst, src, size, true);
}

/* ---- between two servers ---- */

struct passage {
	struct obf_stream *from, *to; /* legacy streams of the two contexts */
	uint8_t *bytes;
	size_t part; /* its size */
};

/* `rows` rows of `width` bytes, which are at most a part. */
static CUresult part_pass(const struct passage *p, const struct obf_copy *c, uint64_t src,
	uint64_t dst, size_t width, size_t rows)
{
	struct obf_copy in = obf_copy_row((uintptr_t)p->bytes, src, width), out;
	CUresult result;

	in.src_device = true;
	in.height = rows;
	in.src_pitch = c->src_pitch;
	in.src_slice = c->src_pitch * rows;
	in.dst_slice = width * rows;
	out = in;
	out.src_device = false;
	out.dst_device = true;
	out.src = in.dst;
	out.src_pitch = in.dst_pitch;
	out.src_slice = in.dst_slice;
	out.dst = dst;
	out.dst_pitch = c->dst_pitch;
	out.dst_slice = c->dst_pitch * rows;
	{
		OBC_VISIT(p->from->ctx);
		result = obc_copy_box(p->from, &in, true);
	}
	if (result != CUDA_SUCCESS)
		return result;
	OBC_VISIT(p->to->ctx);
	/* The bytes are pageable memory: they have been read when this returns. */
	return obc_copy_box(p->to, &out, false);
}

/* One slice. */
static CUresult slice_pass(
	const struct passage *p, const struct obf_copy *c, uint64_t src, uint64_t dst)
{
	size_t rows = ob_max(p->part / c->width, (size_t)1), n;
	CUresult result = CUDA_SUCCESS;

	for (size_t row = 0; row < c->height && result == CUDA_SUCCESS; row += n) {
		n = ob_min(rows, c->height - row);
		for (size_t at = 0; at < c->width && result == CUDA_SUCCESS; at += p->part)
			result = part_pass(p, c, src + row * c->src_pitch + at,
				dst + row * c->dst_pitch + at, ob_min(c->width - at, p->part), n);
	}
	return result;
}

static bool is_one_row(const struct obf_copy *c)
{
	return (c->height == 1 || (c->src_pitch == c->width && c->dst_pitch == c->width)) &&
		(c->depth == 1 ||
			(c->src_slice == c->width * c->height &&
				c->dst_slice == c->width * c->height));
}

static size_t part_size(const struct passage *p)
{
	uint64_t wanted;

	OBC_VISIT(p->from->ctx);
	wanted = obc_log_trip_least() * PART_RATE;
	return ob_min(ob_max(wanted, (uint64_t)PART_LEAST), (uint64_t)PART_MOST);
}

static CUresult pass(struct passage *p, const struct obf_copy *copy)
{
	struct obf_copy c = *copy;
	OB_CLEANUP(ob_freep) uint8_t *bytes = NULL;
	CUresult result = CUDA_SUCCESS;

	if (is_one_row(&c))
		c = obf_copy_row(c.dst, c.src, c.width * c.height * c.depth);
	p->part = part_size(p);
	bytes = malloc(c.width < p->part ? ob_min(c.width * c.height, p->part) : p->part);
	if (!bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->bytes = bytes;
	for (size_t z = 0; z < c.depth && result == CUDA_SUCCESS; z++)
		result = slice_pass(p, &c, c.src + z * c.src_slice, c.dst + z * c.dst_slice);
	OBC_VISIT(p->to->ctx);
	return result == CUDA_SUCCESS ? obc_stream_wait(p->to) : result;
}

/* ---- the backend's functions ---- */

/* A context of another server does not concern the copy. */
static void peers_keep(struct obf_copy *c, uint32_t server)
{
	if (c->src_ctx && server_of(c->src_ctx) != server)
		c->src_ctx = NULL;
	if (c->dst_ctx && server_of(c->dst_ctx) != server)
		c->dst_ctx = NULL;
}

static CUresult route_copy(struct obf_stream *stream, const struct obf_copy *copy, bool blocking)
{
	uint32_t here = server_of(stream->ctx);
	uint32_t src = copy->src_device ? obc_route_at(copy->src, here) : here;
	uint32_t dst = copy->dst_device ? obc_route_at(copy->dst, here) : here;
	struct passage passage = { .bytes = NULL };
	struct obf_copy c = *copy;
	struct obf_stream *at;
	CUresult result;

	if (src == here && dst == here) {
		peers_keep(&c, here);
		OBC_VISIT(stream->ctx);
		return obc_copy_box(stream, &c, blocking);
	}
	result = leave(stream, src != here ? c.src : c.dst, &at);
	if (result != CUDA_SUCCESS)
		return result;
	if (copy->src_device && copy->dst_device && src != dst) {
		result = leave(stream, c.src, &passage.from);
		if (result == CUDA_SUCCESS)
			result = leave(stream, c.dst, &passage.to);
		return result == CUDA_SUCCESS ? pass(&passage, &c) : result;
	}
	peers_keep(&c, server_of(at->ctx));
	OBC_VISIT(at->ctx);
	result = obc_copy_box(at, &c, true);
	return result == CUDA_SUCCESS ? obc_stream_wait(at) : result;
}

/* The server of one side; UINT32_MAX: host memory. */
static uint32_t side_server(
	const struct obf_array *array, bool device, uint64_t addr, uint32_t here)
{
	if (array)
		return server_of(array->ctx);
	return device ? obc_route_at(addr, here) : UINT32_MAX;
}

static CUresult route_array_copy(
	struct obf_stream *stream, const struct obf_array_copy *copy, bool blocking)
{
	uint32_t here = server_of(stream->ctx);
	uint32_t src = side_server(copy->src, copy->flat.src_device, copy->flat.src, here);
	uint32_t dst = side_server(copy->dst, copy->flat.dst_device, copy->flat.dst, here);
	struct obf_ctx *ctx = copy->src ? copy->src->ctx : copy->dst->ctx;
	CUresult result;

	if (src != dst && src != UINT32_MAX && dst != UINT32_MAX)
		return obf_absent("a copy of an array between two servers",
			"copy through host memory: from the array to memory, then to the other "
			"server");
	if (server_of(ctx) == here) {
		OBC_VISIT(stream->ctx);
		return obc_array_copy(stream, copy, blocking);
	}
	{
		OBC_VISIT(stream->ctx);
		result = obc_stream_wait(stream);
	}
	if (result != CUDA_SUCCESS)
		return result;
	OBC_VISIT(ctx);
	result = obc_array_copy(ctx->legacy, copy, true);
	return result == CUDA_SUCCESS ? obc_stream_wait(ctx->legacy) : result;
}

static CUresult route_fill(struct obf_stream *stream, const struct obf_fill *fill)
{
	uint32_t here = server_of(stream->ctx);
	struct obf_stream *at;
	CUresult result;

	if (obc_route_at(fill->dst, here) == here) {
		OBC_VISIT(stream->ctx);
		return obc_copy_fill(stream, fill);
	}
	result = leave(stream, fill->dst, &at);
	if (result != CUDA_SUCCESS)
		return result;
	OBC_VISIT(at->ctx);
	result = obc_copy_fill(at, fill);
	return result == CUDA_SUCCESS ? obc_stream_wait(at) : result;
}

void obc_route_copy_install(struct obf_backend *b)
{
	b->write = route_write;
	b->read = route_read;
	b->copy = route_copy;
	b->array_copy = route_array_copy;
	b->fill = route_fill;
}
