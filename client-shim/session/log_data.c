/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/opt.h"
#include "client-shim/session/inside.h"
#include "client-shim/session/log_inside.h"

#define HEAD_MAX    128u /* bytes before the data of one record */
#define CHUNK_ALIGN 256u /* bytes: each chunk of a copy starts at a multiple of this */

static CUresult write_inline(
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

CUresult obc_log_write(
	uint16_t opcode, const void *head, uint32_t head_size, const void *data, size_t size)
{
	bool byref = size >= obc_log_state.byref_min && ob_opt_on(OB_OPT_BYREF);
	const uint8_t *p = data;
	uint64_t words[HEAD_MAX / 8];
	CUresult result = CUDA_SUCCESS;

	if (head_size > sizeof words || head_size < 16 || head_size % 8)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(words, head, head_size);
	while (size && result == CUDA_SUCCESS) {
		size_t n = ob_min(size,
			!byref                                           ? inline_max(opcode)
				: obp_packer_cuts(&obc_log_state.packer) ? OBP_PACK_CHUNK
									 : OBP_CHUNK_MAX);

		words[1] = n;
		if (byref) {
			OBC_WAITS();

			result = obc_log_commit_byref(opcode, words, head_size, p, n);
			log_drain();
		} else {
			result = write_inline(opcode, words, head_size, p, n);
		}
		words[0] += n;
		p += n;
		size -= n;
	}
	/* The caller may change its memory when the server has received everything. */
	return byref && result == CUDA_SUCCESS ? log_sync() : result;
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
