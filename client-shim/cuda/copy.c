/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client-shim/cuda/context.h"
#include "client-shim/cuda/hostfunc.h"
#include "client-shim/cuda/shared.h"
#include "client-shim/session/background.h"
#include "client-shim/session/log.h"
#include "client-shim/session/transfer.h"
#include "protocol/obc_calls.h"

/* ---- bytes ---- */

struct settle {
	struct obc_stream *at;
	uint64_t last; /* record of the wait; 0: there was none */
};

/* For obc_transfer_write: waits for the stream after the last byte of an upload was sent. */
static CUresult settle_stream(void *user)
{
	struct settle *settle = user;
	uint64_t launches = obc_ctx_launches(), number = obc_log_last();
	CUresult result;

	obc_stream_mark(settle->at, number);
	result = obc_stream_wait(&settle->at->base);
	settle->last = obc_log_last();
	if (result == CUDA_SUCCESS)
		obc_stream_arrived(settle->at, number, launches);
	return result;
}

/* waits: the call returns when the copy is complete, if it is larger than OBF_COPY_SMALL. */
static CUresult to_device(
	struct obc_stream *at, uint64_t dst, const void *src, size_t size, bool waits)
{
	struct settle settle = { .at = at };
	CUresult result = obc_transfer_write(dst, src, size, at->base.handle,
		waits && size > OBF_COPY_SMALL ? settle_stream : NULL, &settle);

	if (obc_log_last() != settle.last)
		obc_stream_mark(at, obc_log_last());
	return result;
}

CUresult obc_copy_arrived(struct obc_stream *at, uint64_t launches, CUresult result)
{
	if (result == CUDA_SUCCESS)
		obc_stream_arrived(at, obc_log_last(), launches);
	return result;
}

static CUresult from_device(struct obc_stream *at, void *dst, uint64_t src, size_t size)
{
	uint64_t launches = obc_ctx_launches();

	return obc_copy_arrived(at, launches, obc_transfer_read(dst, src, size, at->base.handle));
}

/*
 * Whether an upload may still wait in its stream in a way that can be seen: a kernel or a copy in
 * the background before it may use the program's memory, or fail; work of a stream that does not
 * wait for the upload's stream may overtake it.
 */
static bool must_settle(const struct obc_stream *at)
{
	return obc_ctx_launched(at->base.ctx) ||
		(atomic_load_explicit(&at->home->other_streams, memory_order_relaxed) &&
			obc_ctx_busy(at->home) && !obc_streams_idle(at->base.ctx));
}

CUresult obc_copy_uploaded(struct obc_stream *at, uint64_t launches, size_t size)
{
	uint64_t number = obc_log_last();
	CUresult result;

	if ((size <= OBF_COPY_SMALL && !obc_background_pending()) || !must_settle(at))
		return CUDA_SUCCESS;
	result = obc_stream_wait(&at->base);
	/* The upload, record `number`, came after all work that its stream waits for. */
	if (result == CUDA_SUCCESS)
		obc_stream_arrived(at, number, launches);
	return result;
}

uint64_t obc_copy_peer(const struct obf_ctx *ctx)
{
	return ctx ? obc_ctx_of(ctx)->id : 0;
}

static CUresult on_device(struct obc_stream *at, const struct obf_copy *c)
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
		.dst_ctx = obc_copy_peer(c->dst_ctx),
		.src_ctx = obc_copy_peer(c->src_ctx),
		.stream = at->base.handle,
	};
	obc_stream_mark(at, slot.number);
	return obc_log_commit(&slot);
}

CUresult obc_copy_before_host_read(struct obc_stream *at)
{
	return ob_unlikely(obc_hostfunc_pending()) ? obc_stream_wait(&at->base) : CUDA_SUCCESS;
}

/* ---- boxes ---- */

static const uint8_t *host_row(uint64_t base, size_t pitch, size_t slice, size_t height, size_t row)
{
	return (const uint8_t *)(uintptr_t)(base + row / height * slice + row % height * pitch);
}

/* Writes rows [row, row + n) of one slice directly into the log. */
static CUresult rows_send(struct obc_stream *at, const struct obf_copy *c, size_t row, size_t n)
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
	req->stream = at->base.handle;
	for (size_t i = 0; i < n; i++)
		memcpy((uint8_t *)data + i * c->width,
			host_row(c->src, c->src_pitch, c->src_slice, c->height, row + i), c->width);
	obc_stream_mark(at, slot.number);
	return obc_log_commit(&slot);
}

static CUresult box_to_device(struct obc_stream *at, const struct obf_copy *c)
{
	CUresult result = CUDA_SUCCESS;
	size_t rows = c->height * c->depth, n;

	for (size_t row = 0; row < rows && result == CUDA_SUCCESS; row += n) {
		n = 1;
		if (c->width > OBP_ROWS_MAX) {
			uint64_t dst = c->dst + row / c->height * c->dst_slice +
				row % c->height * c->dst_pitch;

			result = to_device(at, dst,
				host_row(c->src, c->src_pitch, c->src_slice, c->height, row),
				c->width, false);
		} else {
			n = ob_min(c->height - row % c->height, OBP_ROWS_MAX / c->width);
			result = rows_send(at, c, row, n);
		}
	}
	return result;
}

/* For host rows with gaps: the rows arrive packed and are copied to their places. */
static CUresult box_scatter(struct obc_stream *at, const struct obf_copy *c)
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
			result = from_device(at, dst, src, c->width);
			continue;
		}
		result = obc_copy_arrived(at, launches,
			obc_call_op_read_rows(src, c->src_pitch, c->src_slice, c->width, n, 1,
				at->base.handle, packed));
		for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
			memcpy(dst + i * c->dst_pitch, packed + i * c->width, c->width);
	}
	return result;
}

static bool is_packed(const struct obf_copy *c, size_t pitch, size_t slice)
{
	return (pitch == c->width || c->height == 1) &&
		(slice == c->width * c->height || c->depth == 1) &&
		(c->height == 1 || pitch == c->width);
}

static CUresult box_from_device(struct obc_stream *at, const struct obf_copy *c)
{
	uint64_t launches = obc_ctx_launches();

	if (!is_packed(c, c->dst_pitch, c->dst_slice))
		return box_scatter(at, c);
	return obc_copy_arrived(at, launches,
		obc_call_op_read_rows(c->src, c->src_pitch, c->src_slice, c->width, c->height,
			c->depth, at->base.handle, (void *)(uintptr_t)c->dst));
}

static CUresult box_on_host(struct obc_stream *at, const struct obf_copy *c)
{
	/* In the order of the stream: earlier work may still read or write these bytes. */
	CUresult result = obc_stream_wait(&at->base);

	for (size_t row = 0; row < c->height * c->depth && result == CUDA_SUCCESS; row++)
		memmove((void *)(uintptr_t)host_row(
				c->dst, c->dst_pitch, c->dst_slice, c->height, row),
			host_row(c->src, c->src_pitch, c->src_slice, c->height, row), c->width);
	return result;
}

static CUresult box_copy(struct obc_stream *at, const struct obf_copy *c)
{
	CUresult result;

	if (c->src_device && c->dst_device)
		return on_device(at, c);
	if (!c->src_device && !c->dst_device)
		return box_on_host(at, c);
	if (c->src_device)
		return box_from_device(at, c);
	result = obc_copy_before_host_read(at);
	return result == CUDA_SUCCESS ? box_to_device(at, c) : result;
}

/* ---- the backend's functions ---- */

static bool is_pinned(const void *p, size_t size)
{
	struct obf_place place = obf_mem_classify((uintptr_t)p, size, NULL);

	return place.kind == OBF_PLACE_PINNED && place.left >= size;
}

CUresult obc_copy_write(
	struct obf_stream *stream, uint64_t dst, const void *src, size_t size, bool blocking)
{
	struct obc_stream *at = obc_stream_of(stream);
	uint64_t launches, number;
	CUresult result = obc_copy_before_host_read(at);

	if (obc_shared_exist() && result == CUDA_SUCCESS)
		result = obc_shared_work(at, dst, size, true);
	if (result != CUDA_SUCCESS)
		return result;
	if (!blocking && size >= OBC_BACKGROUND_MIN && is_pinned(src, size) &&
		obc_background_write(dst, src, size, stream->handle, &number)) {
		obc_stream_mark(at, number);
		return CUDA_SUCCESS;
	}
	launches = obc_ctx_launches();
	result = to_device(at, dst, src, size, blocking);
	return blocking && result == CUDA_SUCCESS ? obc_copy_uploaded(at, launches, size) : result;
}

CUresult obc_copy_read(
	struct obf_stream *stream, void *dst, uint64_t src, size_t size, bool blocking)
{
	struct obc_stream *at = obc_stream_of(stream);
	CUresult result = obc_shared_exist() ? obc_shared_work(at, src, size, false) : CUDA_SUCCESS;
	uint64_t number;

	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	if (!blocking && is_pinned(dst, size) &&
		obc_background_read(dst, src, size, stream->handle, &number)) {
		obc_stream_mark(at, number);
		return CUDA_SUCCESS;
	}
	/* When this returns, the bytes have arrived, also for a copy that is not blocking. */
	return from_device(at, dst, src, size);
}

/* Number of bytes from the first to the last byte of the rows. */
static uint64_t extent(const struct obf_copy *c, size_t pitch, size_t slice)
{
	return (c->height - 1) * pitch + (c->depth - 1) * slice + c->width;
}

static CUresult box_shared(struct obc_stream *at, const struct obf_copy *c)
{
	CUresult result = CUDA_SUCCESS;

	if (c->src_device)
		result = obc_shared_work(at, c->src, extent(c, c->src_pitch, c->src_slice), false);
	if (c->dst_device && result == CUDA_SUCCESS)
		result = obc_shared_work(at, c->dst, extent(c, c->dst_pitch, c->dst_slice), true);
	return result;
}

CUresult obc_copy_box(struct obf_stream *stream, const struct obf_copy *c, bool blocking)
{
	struct obc_stream *at = obc_stream_of(stream);
	size_t all = c->width * c->height * c->depth;
	uint64_t launches;
	CUresult result;

	if (c->src_device != c->dst_device && is_packed(c, c->src_pitch, c->src_slice) &&
		is_packed(c, c->dst_pitch, c->dst_slice))
		return c->src_device
			? obc_copy_read(stream, (void *)(uintptr_t)c->dst, c->src, all, blocking)
			: obc_copy_write(
				  stream, c->dst, (const void *)(uintptr_t)c->src, all, blocking);
	if (obc_shared_exist()) {
		result = box_shared(at, c);
		if (result != CUDA_SUCCESS)
			return result;
	}
	launches = obc_ctx_launches();
	result = box_copy(at, c);
	if (!blocking || result != CUDA_SUCCESS || c->src_device || !c->dst_device)
		return result;
	return obc_copy_uploaded(at, launches, all);
}

void obc_host_range(const void *p, size_t size, bool added)
{
	(void)p;
	(void)size;
	if (!added)
		obc_background_wait();
}

/* Every fill is one record. */
CUresult obc_copy_fill(struct obf_stream *stream, const struct obf_fill *fill)
{
	struct obp_memset_req *req;
	struct obc_slot slot;

	if (obc_shared_exist()) {
		CUresult result = obc_shared_work(obc_stream_of(stream), fill->dst,
			(fill->height - 1) * fill->pitch + fill->width * fill->element, true);

		if (result != CUDA_SUCCESS)
			return result;
	}
	req = obc_log_begin(&slot, OBP_OP_MEMSET, sizeof *req);
	if (!req)
		return obc_log_error();
	*req = (struct obp_memset_req){
		.dst = fill->dst,
		.value = fill->value,
		.element = fill->element,
		.pitch = fill->pitch,
		.width = fill->width,
		.height = fill->height,
		.stream = stream->handle,
	};
	obc_stream_mark(obc_stream_of(stream), slot.number);
	return obc_log_commit(&slot);
}
