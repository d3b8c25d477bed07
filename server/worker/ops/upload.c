/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Uploads whose bytes follow in parts while later records come (server/worker/held.h). A part is
 * answered when its slot is free again, so that the client never sends more than there is room for.
 */
#include <string.h>

#include "base/check.h"
#include "server/worker/completion.h"
#include "server/worker/held.h"
#include "server/worker/ops/ops.h"

void obs_op_upload_begin(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_upload_begin_req *req)
{
	CUstream stream = NULL;
	CUresult refused = x->refused;

	if (!req->upload || obs_open_upload(x->session, req->upload))
		obs_violation(x, rec, "the upload's number is in use");
	if (refused == CUDA_SUCCESS && !x->context)
		refused = CUDA_ERROR_INVALID_CONTEXT;
	if (refused != CUDA_SUCCESS)
		obs_async_result(x, rec, refused);
	else if (!obs_stream_get(x, rec, req->stream, &stream))
		refused = CUDA_ERROR_INVALID_HANDLE; /* has been reported */
	obs_open_begin(x, req->upload, req->stream, stream, refused);
}

/* ---- parts ---- */

#define PIECES (OBP_PART_MAX / OBP_PART_PIECE)

/* The pieces of a part whose copies are not known to be complete; for the completion thread. */
struct part {
	struct obs_slot *slots[PIECES];
	uint32_t n;
};

_Static_assert(sizeof(struct part) <= OBS_PENDING_STATE, "a part waits in an entry");

/* Gives the slot back if nothing is copied from it any more. */
static bool piece_over(struct obs_exec *x, struct obs_slot *slot, bool wait)
{
	/* An error of the device is reported by the client's next call anyway. */
	if (slot->pending && wait)
		x->drv->cuEventSynchronize(slot->event);
	else if (slot->pending && x->drv->cuEventQuery(slot->event) == CUDA_ERROR_NOT_READY)
		return false;
	slot->pending = false;
	obs_staging_upload_give(&x->session->staging, slot);
	return true;
}

static bool part_poll(struct obs_exec *x, void *state)
{
	struct part *part = state;

	while (part->n && piece_over(x, part->slots[part->n - 1], false))
		part->n--;
	if (part->n)
		return false;
	obs_reply_send(x, CUDA_SUCCESS, NULL, 0);
	return true;
}

/* Makes the upload's context current. The result says whether the bytes can be copied. */
static CUresult part_check(
	struct obs_exec *x, struct obs_open *open, const struct obp_upload_part_req *req)
{
	CUresult result = open->refused;

	if (result == CUDA_SUCCESS)
		result = obs_context_enter(x, open->context);
	if (result == CUDA_SUCCESS && !obs_memory_check(&x->session->memory, req->dst, req->size))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

static struct obs_slot *piece_slot(struct obs_exec *x, const struct obp_record *rec)
{
	struct obs_slot *slot = obs_staging_upload_take(&x->session->staging, x->context);

	if (!slot)
		obs_violation(x, rec, "too many parts of uploads are not answered yet");
	return slot;
}

/*
 * The bytes are in the slot: starts the copy to the device. If it is complete at once the slot is
 * used for the next piece, while it is still in the core's cache.
 */
static void piece_start(struct obs_exec *x, struct part *part, const struct obs_open *open,
	struct obs_slot *slot, uint64_t dst, uint64_t size)
{
	CUresult result = x->drv->cuMemcpyHtoDAsync_v2(dst, slot->data, size, open->driver);

	obs_staging_write_started(&x->session->staging, slot, x->context, open->driver);
	if (result != CUDA_SUCCESS)
		obs_reply_defer(x->session, x->opcode, result);
	if (!piece_over(x, slot, false))
		part->slots[part->n++] = slot;
}

/* All pieces have been started. */
static void part_started(struct obs_exec *x, const struct obp_record *rec, struct obs_open *open,
	struct part *part, bool last)
{
	struct obs_pending *pending = part->n ? obs_completion_new(x) : NULL;

	if (pending) {
		pending->poll = part_poll;
		memcpy(pending->state, part, sizeof *part);
		obs_completion_add(x->session, pending);
	} else {
		while (part->n)
			piece_over(x, part->slots[--part->n], true);
		obs_reply(x, rec, CUDA_SUCCESS, NULL, 0);
	}
	if (last)
		obs_open_over(x->session, open);
}

void obs_op_upload_part(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_upload_part_req *req, const void *data)
{
	struct obs_open *open = obs_open_upload(x->session, req->upload);
	struct part part = { .n = 0 };
	CUresult result;

	if (!open)
		obs_violation(x, rec, "a part of an upload that has not begun");
	result = part_check(x, open, req);
	if (result != CUDA_SUCCESS && open->refused == CUDA_SUCCESS)
		obs_reply_defer(x->session, rec->opcode, result);
	for (uint64_t at = 0, n; at < req->size && result == CUDA_SUCCESS; at += n) {
		struct obs_slot *slot = piece_slot(x, rec);

		n = ob_min(req->size - at, (uint64_t)OBP_PART_PIECE);
		memcpy(slot->data, (const uint8_t *)data + at, n);
		piece_start(x, &part, open, slot, req->dst + at, n);
	}
	part_started(x, rec, open, &part, req->last);
}

/* Receives and copies the part's bytes. False: the connection broke. */
static bool pieces_receive(struct obs_exec *x, const struct obp_record *rec,
	const struct obs_open *open, const struct obp_upload_part_req *req, struct part *part)
{
	for (uint64_t at = 0, n; at < req->size; at += n) {
		struct obs_slot *slot = piece_slot(x, rec);

		n = ob_min(req->size - at, (uint64_t)OBP_PART_PIECE);
		if (!obs_exec_receive(x, slot->data, n)) {
			obs_staging_upload_give(&x->session->staging, slot);
			return false;
		}
		piece_start(x, part, open, slot, req->dst + at, n);
	}
	return obs_exec_receive(x, &(uint64_t){ 0 }, (8 - req->size % 8) % 8);
}

bool obs_big_part(struct obs_exec *x, const struct obp_item *item, bool *ret_done)
{
	const struct obp_record *rec = &item->record;
	struct part part = { .n = 0 };
	struct obp_upload_part_req req;
	struct obs_open *open;

	*ret_done = false;
	/* The head of a large record has arrived (obp_conn_next). */
	if (item->have < sizeof req)
		return true;
	memcpy(&req, item->body, sizeof req);
	open = obs_open_upload(x->session, req.upload);
	if (!open || req.size > OBP_PART_MAX ||
		sizeof req + ob_round_up(req.size, 8) != item->size ||
		part_check(x, open, &req) != CUDA_SUCCESS)
		return true;
	*ret_done = true;
	/*
	 * If the connection breaks the whole record comes again, and the same bytes are copied to
	 * the same place. What depends on them waits for the last part.
	 */
	if (!obs_exec_receive(x, &req, sizeof req) || !pieces_receive(x, rec, open, &req, &part)) {
		while (part.n)
			piece_over(x, part.slots[--part.n], true);
		return false;
	}
	part_started(x, rec, open, &part, req.last);
	return true;
}

void obs_op_held_bytes(struct obs_exec *x, const struct obp_record *rec)
{
	const struct obp_held_bytes_rep rep = { .bytes = x->session->held.bytes };

	obs_reply(x, rec, CUDA_SUCCESS, &rep, sizeof rep);
}
