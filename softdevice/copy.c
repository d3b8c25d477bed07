/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/copy.h"

#include <string.h>

#include "softdevice/address.h"
#include "softdevice/context.h"
#include "softdevice/core/engine/guard.h"
#include "softdevice/memory.h"
#include "softdevice/sched.h"
#include "softdevice/stream.h"
#include "softdevice/window.h"

struct copy_op {
	struct obd_op op;
	struct obf_copy copy;
	_Alignas(16) unsigned char stage[];
};

static void rows_copy(const struct obf_copy *c, uint64_t dst, uint64_t src)
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

void obd_copy_rows(const struct obf_copy *copy)
{
	rows_copy(copy, copy->dst, copy->src);
}

static void copy_rows(void *op)
{
	obd_copy_rows(&((struct copy_op *)op)->copy);
}

void obd_copy_guarded(void (*rows)(void *op), struct obd_op *op)
{
	if (!obd_guard_try(rows, op, obd_window.base, obd_window.size))
		obd_ctx_fail(op->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void copy_run(struct obd_op *op)
{
	obd_copy_guarded(copy_rows, op);
}

/* Number of bytes from the first to the last byte of the rows. */
static uint64_t extent(const struct obf_copy *c, size_t pitch, size_t slice)
{
	return (c->height - 1) * pitch + (c->depth - 1) * slice + c->width;
}

static bool is_pinned(uint64_t addr, uint64_t size)
{
	struct obd_address at = obd_address_classify(addr, size);

	return at.kind == OBD_ADDRESS_PINNED && size <= at.left;
}

static struct copy_op *copy_op_new(struct obd_ctx *ctx, const struct obf_copy *copy, bool staged)
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
		struct obf_copy in = *copy;
		in.dst_pitch = op->copy.src_pitch;
		in.dst_slice = op->copy.src_slice;
		rows_copy(&in, op->copy.src, copy->src);
	}
	return op;
}

/*
 * Decides when a copy accesses host memory, as CUDA documents it. A copy from pageable memory has
 * read it, and a copy to pageable memory has written it, when the call returns. Pinned memory is
 * read and written when the stream reaches the copy.
 *
 * *ret_staged: the source is copied to a buffer at the call. *ret_wait: the call waits for the
 * copy.
 */
static void mode_of(const struct obf_copy *c, bool blocking, bool *ret_staged, bool *ret_wait)
{
	uint64_t bytes = (uint64_t)c->width * c->height * c->depth;

	*ret_staged = *ret_wait = false;
	if (blocking) {
		/*
		 * As in CUDA, the call does not wait for a copy between device addresses, nor for a
		 * small upload, whose bytes are copied at the call.
		 */
		*ret_staged = !c->src_device && c->dst_device && bytes <= OBF_COPY_SMALL;
		*ret_wait = !*ret_staged && (!c->src_device || !c->dst_device);
	} else if (!c->dst_device && !is_pinned(c->dst, extent(c, c->dst_pitch, c->dst_slice))) {
		*ret_wait = true;
	} else if (!c->src_device && !is_pinned(c->src, extent(c, c->src_pitch, c->src_slice))) {
		*ret_staged = bytes <= OBD_STAGE_MAX;
		*ret_wait = !*ret_staged;
	}
}

/* Checks what the front end does not know: mappings without access, and queued frees. */
static CUresult side_check(bool device, uint64_t addr, uint64_t size)
{
	return device ? obd_address_check(addr, size) : CUDA_SUCCESS;
}

CUresult obd_copy_checked(struct obf_stream *base, const struct obf_copy *copy, bool blocking)
{
	struct obd_stream *stream = obd_stream_of(base);
	bool staged, wait;
	struct copy_op *op;
	CUresult result;

	mode_of(copy, blocking, &staged, &wait);
	if (blocking && (obd_memory_is_shared(copy->src) || obd_memory_is_shared(copy->dst)))
		wait = true;
	op = copy_op_new(stream->ctx, copy, staged);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (wait)
		result = obd_sched_run_and_wait(&op->op, stream);
	else if (blocking || (uint64_t)copy->width * copy->height * copy->depth <= OBD_SHORT_MAX)
		result = obd_sched_run_or_submit(&op->op, stream);
	else
		result = obd_sched_submit(&op->op, stream, NULL);
	/*
	 * A small upload does not wait for kernels. It does wait for other copies: in many programs
	 * a kernel on a non-blocking stream comes next, which does not wait for the default stream,
	 * and it finds the bytes. CUDA does not guarantee this order.
	 */
	if (!result && staged && blocking && !op->op.unbounded_wait)
		obd_op_wait(&op->op);
	obd_op_unref(&op->op);
	if (!result && wait) {
		obd_print_flush(&stream->ctx->print);
		result = obd_ctx_result(stream->ctx);
	}
	return result;
}

CUresult obd_copy_box(struct obf_stream *base, const struct obf_copy *copy, bool blocking)
{
	CUresult result;

	result = side_check(
		copy->src_device, copy->src, extent(copy, copy->src_pitch, copy->src_slice));
	if (!result)
		result = side_check(copy->dst_device, copy->dst,
			extent(copy, copy->dst_pitch, copy->dst_slice));
	return result ? result : obd_copy_checked(base, copy, blocking);
}

CUresult obd_copy_side_check(
	bool device, uint64_t addr, size_t pitch, size_t slice, const struct obf_copy *copy)
{
	return side_check(device, addr, extent(copy, pitch, slice));
}

CUresult obd_copy_write(
	struct obf_stream *stream, uint64_t dst, const void *src, size_t size, bool blocking)
{
	struct obf_copy copy = obf_copy_row(dst, (uintptr_t)src, size);

	copy.dst_device = true;
	return obd_copy_box(stream, &copy, blocking);
}

CUresult obd_copy_read(
	struct obf_stream *stream, void *dst, uint64_t src, size_t size, bool blocking)
{
	struct obf_copy copy = obf_copy_row((uintptr_t)dst, src, size);

	copy.src_device = true;
	return obd_copy_box(stream, &copy, blocking);
}
