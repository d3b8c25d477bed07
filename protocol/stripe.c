/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/stripe.h"

#include "base/check.h"
#include "compression/codec.h"
#include "protocol/conn.h"

/* NULL: nothing. */
static const char *frame_wrong(const struct obp_frame *f, unsigned codecs, uint64_t size)
{
	bool part = f->type == OBP_FRAME_PART;
	uint32_t padded = (uint32_t)ob_round_up((uint64_t)f->count, 8);

	if (f->magic != OBP_MAGIC)
		return "a frame does not start with the magic number";
	if (f->version != OBP_FRAME_VERSION)
		return "a frame of another protocol version";
	if (!part && f->type != OBP_FRAME_GIVE && f->type != OBP_FRAME_GIVEN)
		return "unexpected frame type on a stripe";
	if (f->reserved || !f->sequence)
		return "a part that names no transfer";
	if (!part)
		return f->flags || f->size || f->count || f->raw_size || f->ack
			? "a frame that has a payload and may have none"
			: NULL;
	if (!f->count || f->count > OBP_CHUNK_MAX)
		return "a part that is empty or above the maximum";
	if (!ob_span_inside(f->ack, f->count, size))
		return "a part that does not lie in its transfer";
	if (!f->flags)
		return f->size != padded || f->raw_size != f->count ? "a part whose sizes disagree"
								    : NULL;
	if (f->flags >= OBZ_CODEC_COUNT || !(codecs & 1u << f->flags))
		return "a part packed in a way that was not agreed on";
	if (f->raw_size != padded || f->size % 8 || f->size < sizeof(struct obp_packed) ||
		f->size > padded)
		return "a packed part whose sizes disagree";
	return NULL;
}

enum ob_err obp_stripe_check(
	const struct obp_frame *frame, unsigned codecs, uint64_t size, struct ob_cause *ret_cause)
{
	const char *wrong = frame_wrong(frame, codecs, size);

	return wrong ? ob_cause_set(ret_cause, OB_ERR_PROTOCOL, "%s", wrong) : OB_ERR_NONE;
}

void obp_stripe_fill(struct obp_frame *ret, enum obp_frame_type type, uint64_t transfer,
	uint64_t offset, uint32_t n)
{
	obp_frame_fill(ret, type, (uint32_t)ob_round_up((uint64_t)n, 8), n, transfer, offset);
	ret->raw_size = n;
}
