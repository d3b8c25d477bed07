/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Copies from the device to the client. With one thread in the program the executor waits for the
 * device; with several (x->later) the completion thread sends what is not complete at once.
 */
#include "base/check.h"
#include "base/clock.h"
#include "server/worker/completion.h"
#include "server/worker/held.h"
#include "server/worker/ops/array.h"
#include "server/worker/ops/box.h"
#include "server/worker/ops/ops.h"

/*
 * Bytes. With small pieces the device's copy, packing, sending and unpacking overlap, and a piece
 * is still in the second-level cache when it is sent.
 */
#define PIECE OBS_STAGING_READ

/*
 * A copy to the client in pieces of at most PIECE bytes. Two pieces are in two slots: while one is
 * sent, the device writes the other. `row` and `done_in_row` say where the next piece
 * begins.
 */
struct pull {
	struct box box;
	struct obs_array *array;   /* NULL: memory; else it is in use until pull_end */
	uint64_t pos[3];           /* in the array; box has the extent only */
	uint64_t row, done_in_row; /* rows are numbered through all slices */
	uint64_t piece;            /* bytes */
	CUstream stream;
	struct obs_slot *slots[2]; /* NULL: not taken yet */
	uint32_t size[2];          /* of the pieces in the slots; 0: none */
	unsigned at;               /* the slot whose piece is sent next */
	bool told;                 /* what kernels printed before has been sent */
	uint64_t since;            /* ns, when slots were wanted first */
};

_Static_assert(sizeof(struct pull) <= OBS_PENDING_STATE, "a read waits in an entry");

/* Starts a piece of an array: rows of one slice from `row` on, or a part of one. */
static CUresult pull_array(struct obs_exec *x, const struct pull *pull, uint64_t row, uint64_t at,
	uint64_t width, uint64_t rows, uint8_t *dst)
{
	const CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = pull->array->driver,
		.srcXInBytes = pull->pos[0] + at,
		.srcY = pull->pos[1] + row % pull->box.height,
		.srcZ = pull->pos[2] + row / pull->box.height,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = dst,
		.dstPitch = width,
		.dstHeight = rows,
		.WidthInBytes = width,
		.Height = rows,
		.Depth = 1 };

	return x->drv->cuMemcpy3DAsync_v2(&copy, pull->stream);
}

static CUresult pull_rows(
	struct obs_exec *x, const struct pull *pull, uint64_t row, uint64_t rows, uint8_t *dst)
{
	const struct box *box = &pull->box;
	CUresult result = CUDA_SUCCESS;

	while (rows > 0 && result == CUDA_SUCCESS) {
		uint64_t k = row / box->height, y = row % box->height,
			 n = ob_min(rows, box->height - y);
		CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.srcDevice = box->addr + k * box->slice + y * box->pitch,
			.srcPitch = n > 1 ? box->pitch : box->width,
			.dstMemoryType = CU_MEMORYTYPE_HOST,
			.dstHost = dst,
			.dstPitch = box->width,
			.WidthInBytes = box->width,
			.Height = n };

		result = pull->array ? pull_array(x, pull, row, 0, box->width, n, dst)
				     : x->drv->cuMemcpy2DAsync_v2(&copy, pull->stream);
		dst += n * box->width;
		row += n;
		rows -= n;
	}
	return result;
}

/* Rows of which not all bytes have been started. */
static uint64_t pull_left(const struct pull *pull)
{
	return pull->box.width ? pull->box.height * pull->box.depth - pull->row : 0;
}

/* Starts the next piece; *ret_size 0: there are no more. */
static CUresult pull_next(struct obs_exec *x, struct pull *pull, uint8_t *dst, uint32_t *ret_size)
{
	const struct box *box = &pull->box;
	uint64_t rows = pull_left(pull), n;

	*ret_size = 0;
	if (rows == 0)
		return CUDA_SUCCESS;
	if (box->width <= pull->piece && rows > 1) {
		uint64_t row = pull->row;

		n = ob_min(rows, pull->piece / box->width);
		pull->row += n;
		*ret_size = (uint32_t)(n * box->width);
		return pull_rows(x, pull, row, n, dst);
	}
	n = ob_min(box->width - pull->done_in_row, pull->piece);
	*ret_size = (uint32_t)n;
	CUresult result = pull->array
		? pull_array(x, pull, pull->row, pull->done_in_row, n, 1, dst)
		: x->drv->cuMemcpyDtoHAsync_v2(dst,
			  box->addr + pull->row / box->height * box->slice +
				  pull->row % box->height * box->pitch + pull->done_in_row,
			  n, pull->stream);
	pull->done_in_row += n;
	if (pull->done_in_row == box->width) {
		pull->row++;
		pull->done_in_row = 0;
	}
	return result;
}

static CUresult pull_fill(struct obs_exec *x, struct pull *pull, unsigned i)
{
	return pull_next(x, pull, pull->slots[i]->data, &pull->size[i]);
}

/* Marks the piece in the slot so that it can be waited for. */
static void pull_mark(struct obs_exec *x, struct pull *pull, unsigned i)
{
	struct obs_slot *slot = pull->slots[i];
	CUevent event = obs_staging_event(&x->session->staging, slot, x->context);

	slot->pending = event && x->drv->cuEventRecord(event, pull->stream) == CUDA_SUCCESS;
}

/* True: the piece in the slot is complete already, as with a driver that copies before it returns. */
static bool pull_complete(const struct obs_exec *x, const struct pull *pull, unsigned i)
{
	const struct obs_slot *slot = pull->slots[i];

	return slot->pending && x->drv->cuEventQuery(slot->event) == CUDA_SUCCESS;
}

/*
 * Starts the first pieces: two that overlap, or one if it is complete at once, so that it is sent
 * before the next is copied.
 */
static CUresult pull_start(struct obs_exec *x, struct pull *pull)
{
	CUresult result = CUDA_SUCCESS;

	for (unsigned i = 0; i < 2 && result == CUDA_SUCCESS; i++) {
		result = pull_fill(x, pull, i);
		if (pull->size[i])
			pull_mark(x, pull, i);
		if (pull_complete(x, pull, i))
			break;
	}
	return result;
}

static CUresult pull_wait(struct obs_exec *x, struct pull *pull)
{
	struct obs_slot *slot = pull->slots[pull->at];
	bool marked = slot->pending;

	slot->pending = false;
	return marked ? x->drv->cuEventSynchronize(slot->event)
		      : x->drv->cuStreamSynchronize(pull->stream);
}

/* The next piece is complete: sends it and starts another in its place. True: it was the last. */
static bool pull_advance(struct obs_exec *x, struct pull *pull, CUresult *ret_result)
{
	unsigned i = pull->at;
	bool more = pull->size[i ^ 1] || pull_left(pull);

	*ret_result = CUDA_SUCCESS;
	if (!pull->told)
		obs_exec_output(x, CUDA_SUCCESS);
	pull->told = true;
	obs_reply_slot(x, CUDA_SUCCESS, pull->slots[i], pull->size[i], more);
	if (!more)
		return true;
	pull->size[i] = 0;
	if (pull->size[i ^ 1])
		pull->at = i ^ 1;
	if (!obs_staging_read_turn(&x->session->staging, &pull->slots[i]))
		*ret_result = CUDA_ERROR_OUT_OF_MEMORY;
	else
		*ret_result = pull_fill(x, pull, i);
	if (pull->size[i])
		pull_mark(x, pull, i);
	return false;
}

/* A reply without a byte. Nobody waits for that of a later read, so its error comes again. */
static void pull_answer(struct obs_exec *x, CUresult result)
{
	if (x->opcode == OBP_OP_READ_LATER && result != CUDA_SUCCESS)
		obs_reply_defer(x->session, x->opcode, result);
	obs_reply_send(x, result, NULL, 0);
}

/* The read has failed, or succeeded without a byte. */
static void pull_refuse(struct obs_exec *x, struct pull *pull, CUresult result)
{
	/* The slots may be reused by others only when nothing writes into them any more. */
	x->drv->cuStreamSynchronize(pull->stream);
	pull->slots[0]->pending = pull->slots[1]->pending = false;
	obs_exec_output(x, result);
	pull_answer(x, result);
}

/* The only piece, in the first slot. */
static void pull_last(struct obs_exec *x, struct pull *pull, CUresult result)
{
	obs_exec_output(x, result);
	if (result == CUDA_SUCCESS)
		obs_reply_slot(x, result, pull->slots[0], pull->size[0], false);
	else
		pull_answer(x, result);
}

/* A single piece: no event, the stream is waited for. */
static void pull_single(struct obs_exec *x, struct pull *pull)
{
	CUresult result = pull_fill(x, pull, 0);

	if (result == CUDA_SUCCESS)
		result = x->drv->cuStreamSynchronize(pull->stream);
	pull_last(x, pull, result);
}

static void pull_pieces(struct obs_exec *x, struct pull *pull)
{
	CUresult result = pull_start(x, pull);
	bool last = false;

	while (result == CUDA_SUCCESS && !last) {
		result = pull_wait(x, pull);
		if (result == CUDA_SUCCESS)
			last = pull_advance(x, pull, &result);
	}
	if (!last)
		pull_refuse(x, pull, result);
}

static void pull_end(const struct obs_exec *x, struct pull *pull)
{
	if (pull->array)
		obs_array_unuse(x->drv, pull->array);
	pull->array = NULL;
}

static void pull_give(struct obs_exec *x, struct pull *pull)
{
	obs_staging_read_give(&x->session->staging, pull->slots);
	pull_end(x, pull);
}

/* ---- while the executor goes on ---- */

/* True: the pieces in the slots have been started, or the call has been answered (*ret_over). */
static bool poll_start(struct obs_exec *x, struct pull *pull, bool *ret_over)
{
	CUresult result;

	*ret_over = false;
	if (!obs_staging_read_try(&x->session->staging, pull->slots)) {
		if (ob_clock_ns() - pull->since < OBS_STAGING_TIMEOUT_S * OB_SECOND ||
			obs_staging_paused(&x->session->staging))
			return false;
		pull_answer(x, CUDA_ERROR_OUT_OF_MEMORY);
		pull_end(x, pull);
		*ret_over = true;
		return true;
	}
	result = pull_start(x, pull);
	if (result != CUDA_SUCCESS) {
		pull_refuse(x, pull, result);
		pull_give(x, pull);
		*ret_over = true;
	}
	return true;
}

/* For the completion thread: sends at most one piece. */
static bool pull_poll(struct obs_exec *x, void *state)
{
	struct pull *pull = state;
	struct obs_slot *slot;
	bool over;
	CUresult result;

	if (!pull->slots[0]) {
		if (!poll_start(x, pull, &over))
			return false;
		if (over)
			return true;
	}
	slot = pull->slots[pull->at];
	result = slot->pending ? x->drv->cuEventQuery(slot->event)
			       : x->drv->cuStreamQuery(pull->stream);
	if (result == CUDA_ERROR_NOT_READY)
		return false;
	over = false;
	if (result == CUDA_SUCCESS)
		result = pull_wait(x, pull); /* returns at once; makes the driver print */
	if (result == CUDA_SUCCESS)
		over = pull_advance(x, pull, &result);
	if (result != CUDA_SUCCESS)
		pull_refuse(x, pull, result);
	if (result == CUDA_SUCCESS && !over) {
		x->progress = true;
		return false;
	}
	pull_give(x, pull);
	return true;
}

/*
 * True: the call has been answered, or will be by the completion thread. A small read that is
 * complete at once is answered here.
 */
static bool pull_later(struct obs_exec *x, struct pull *pull, bool single, uint64_t stream)
{
	struct obs_pending *pending;
	CUresult result = CUDA_ERROR_NOT_READY;

	if (single && obs_staging_read_try(&x->session->staging, pull->slots)) {
		result = pull_fill(x, pull, 0);
		if (result == CUDA_SUCCESS)
			result = x->drv->cuStreamQuery(pull->stream);
		if (result == CUDA_ERROR_NOT_READY)
			pull_mark(x, pull, 0);
	}
	pending = result == CUDA_ERROR_NOT_READY ? obs_completion_new(x) : NULL;
	if (pending) {
		pull->since = ob_clock_ns();
		pending->poll = pull_poll;
		memcpy(pending->state, pull, sizeof *pull);
		if (x->opcode == OBP_OP_READ_LATER)
			pending->open = obs_open_begin(x, 0, stream, pull->stream, CUDA_SUCCESS);
		obs_completion_add(x->session, pending);
		return true;
	}
	if (!pull->slots[0])
		return false;
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
		result = pull_wait(x, pull);
	pull->slots[0]->pending = false;
	pull_last(x, pull, result);
	pull_give(x, pull);
	return true;
}

/* ---- the operations ---- */

static bool pull_inside(struct obs_exec *x, const struct pull *pull)
{
	const struct obs_array_box box = { .array = pull->array,
		.pos = { pull->pos[0], pull->pos[1], pull->pos[2] },
		.width = pull->box.width,
		.height = pull->box.height,
		.depth = pull->box.depth };

	return pull->array ? obs_array_inside(x, &box) : box_inside(x, &pull->box);
}

static void pull_run(
	struct obs_exec *x, const struct obp_record *rec, struct pull *pull, uint64_t stream)
{
	uint64_t bytes;
	bool single;

	if (!obs_stream_get(x, rec, stream, &pull->stream))
		return;
	if (!x->context) {
		obs_exec_result(x, rec, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	if (!pull_inside(x, pull) || ob_mul_overflows(pull->box.width, pull->box.height, &bytes) ||
		ob_mul_overflows(bytes, pull->box.depth, &bytes)) {
		obs_exec_result(x, rec, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	if (pull->array)
		obs_array_use(pull->array);
	pull->piece = PIECE;
	single = bytes <= pull->piece;
	obs_replies_release(x->session);
	if (x->later && bytes && pull_later(x, pull, single, stream))
		return;
	if (!obs_staging_read_take(&x->session->staging, pull->slots)) {
		obs_exec_result(x, rec, CUDA_ERROR_OUT_OF_MEMORY);
		pull_end(x, pull);
		return;
	}
	if (single)
		pull_single(x, pull);
	else
		pull_pieces(x, pull);
	pull_give(x, pull);
}

void obs_op_read(struct obs_exec *x, const struct obp_record *rec, const struct obp_read_req *req)
{
	struct pull pull = { .box = { req->src, req->size, req->size, req->size, 1, 1 } };

	pull_run(x, rec, &pull, req->stream);
}

void obs_op_read_later(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_read_later_req *req)
{
	struct pull pull = { .box = { req->src, req->size, req->size, req->size, 1, 1 } };

	pull_run(x, rec, &pull, req->stream);
}

void obs_op_read_rows(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_read_rows_req *req)
{
	struct pull pull = { .box = { req->src, req->src_pitch, req->src_slice, req->width,
				     req->height, req->depth } };

	pull_run(x, rec, &pull, req->stream);
}

void obs_op_array_read(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_array_read_req *req)
{
	struct pull pull = { .box = { 0, req->width, 0, req->width, req->height, req->depth },
		.pos = { req->pos[0], req->pos[1], req->pos[2] } };

	if (obs_array_get(x, rec, req->array, &pull.array))
		pull_run(x, rec, &pull, req->stream);
}
