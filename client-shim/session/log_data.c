/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/inside.h"
#include "client-shim/session/log_inside.h"

#define HEAD_MAX    128u /* bytes before the data of one record */
#define CHUNK_ALIGN 256u /* bytes: each chunk of a copy starts at a multiple of this */

/*
 * The part of a copy that is not in a record yet. words: the head of the next record, which begins
 * with address and size.
 */
struct rest {
	uint64_t words[HEAD_MAX / 8];
	const uint8_t *data;
	size_t size;
};

static bool rest_init(
	struct rest *rest, const void *head, uint32_t head_size, const void *data, size_t size)
{
	if (head_size > sizeof rest->words || head_size < 16 || head_size % 8)
		return false;
	memcpy(rest->words, head, head_size);
	rest->data = data;
	rest->size = size;
	return true;
}

static void rest_advance(struct rest *rest, size_t n)
{
	rest->words[0] += n;
	rest->data += n;
	rest->size -= n;
}

static CUresult record_write(
	uint16_t opcode, const uint64_t *head, uint32_t head_size, const void *data, size_t size)
{
	struct obc_slot slot;
	uint8_t *body = obc_log_begin(&slot, opcode, (uint32_t)(head_size + size));

	if (!body)
		return obc_log_error();
	memcpy(body, head, head_size);
	memcpy(body + head_size, data, size);
	return obc_log_commit(&slot);
}

/*
 * Bytes of data in a record that is stored in the ring. A record of the upload cache has one name
 * and is not split; if the ring is small its data is outside the ring.
 */
static size_t inline_max(uint16_t opcode)
{
	size_t room = (obc_log_state.body_max - HEAD_MAX) & ~(size_t)(CHUNK_ALIGN - 1);

	return opcode == OBP_OP_WRITE_KEPT ? OBP_PACK_CHUNK : ob_min((size_t)OBP_PACK_CHUNK, room);
}

static CUresult rest_write(uint16_t opcode, uint32_t head_size, struct rest *rest)
{
	CUresult result = CUDA_SUCCESS;

	while (rest->size && result == CUDA_SUCCESS) {
		size_t n = ob_min(rest->size, inline_max(opcode));

		rest->words[1] = n;
		result = record_write(opcode, rest->words, head_size, rest->data, n);
		rest_advance(rest, n);
	}
	return result;
}

CUresult obc_log_write_inline(
	uint16_t opcode, const void *head, uint32_t head_size, const void *data, size_t size)
{
	struct rest rest;

	return rest_init(&rest, head, head_size, data, size) ? rest_write(opcode, head_size, &rest)
							     : CUDA_ERROR_INVALID_VALUE;
}

CUresult obc_log_write_byref(uint16_t opcode, const void *head, uint32_t head_size,
	const void *data, size_t size, obc_settle *settle, void *user)
{
	CUresult result = CUDA_SUCCESS;
	struct rest rest;
	OBC_WAITS();

	if (!rest_init(&rest, head, head_size, data, size))
		return CUDA_ERROR_INVALID_VALUE;
	while (rest.size && result == CUDA_SUCCESS) {
		/* So small that sending a chunk overlaps the device's copy of the one before. */
		size_t n = ob_min(rest.size, (size_t)OBP_PACK_CHUNK);

		/*
		 * Another thread has begun a copy in the background: the server may hold the rest
		 * back, so the ring must limit it.
		 */
		if (atomic_load_explicit(&obc_log_state.ring.held, memory_order_relaxed)) {
			result = rest_write(opcode, head_size, &rest);
			break;
		}
		rest.words[1] = n;
		result = obc_log_commit_byref(opcode, rest.words, head_size, rest.data, n);
		rest_advance(&rest, n);
		/* The last one is sent together with the call that waits for it. */
		if (rest.size)
			log_drain();
	}
	/* The caller may change its memory when the server has received everything. */
	if (result == CUDA_SUCCESS)
		result = settle ? settle(user) : log_sync();
	log_left_wait(obc_log_last());
	return result;
}

/* Bytes that are copied into the ring in a nanosecond. */
#define RING_RATE 8u

size_t obc_log_byref_min(bool waits)
{
	uint64_t least = atomic_load_explicit(&obc_log_state.trip_least, memory_order_relaxed);
	size_t min = obc_log_state.byref_min;

	if (!waits || !least || min == SIZE_MAX)
		return min;
	return (size_t)ob_min(
		ob_max(RING_RATE * least, (uint64_t)OBC_BYREF_WAIT_MIN), (uint64_t)min);
}

CUresult obc_log_read(uint16_t opcode, const void *req, uint32_t req_size, void *dst, size_t size)
{
	struct log_wait wait = { .dst = dst, .capacity = size };
	struct obc_slot slot;

	if (!obc_log_begin(&slot, opcode, req_size))
		return obc_log_error();
	memcpy(slot.body, req, req_size);
	return log_wait_reply(&slot, &wait);
}
