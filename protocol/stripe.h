/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Stripes: further connections of a session that carry only the bytes of large copies
 * (docs/PROTOCOL.md, "Stripes").
 *
 *   log       ... write_striped(dst, size, transfer 7) ...      one record, in order with all calls
 *   stripe 0  PART 7 @0   PART 7 @2M  ...                       header + bytes; any stripe may
 *   stripe 1  PART 7 @1M  PART 7 @3M  ...                       carry any part
 *
 * The log alone determines the order of calls. The server keeps the parts that it receives on
 * stripes until its executor reaches the record; the record is complete when all bytes have
 * arrived. In the other direction the client requests the parts of transfer 8 with GIVE 8 on each
 * stripe, and the server ends each sequence of parts with GIVEN 8. If the stripes break during a
 * transfer, the reply says that it is not complete, and the client repeats the copy over the log;
 * the record itself is still executed only once.
 *
 * A part is a frame. Its `sequence` is the transfer, `ack` the offset of the bytes in the transfer
 * and `count` their number; flags may name a codec, as in every frame. This file has the constants
 * and the check of a part's header; no I/O, no state.
 */
#ifndef OBP_STRIPE_H
#define OBP_STRIPE_H

#include "base/cause.h"
#include "protocol/format.h"

#define OBP_STRIPES_MAX 16u /* of one session */

/*
 * Checks a frame's header on a stripe. OB_ERR_PROTOCOL: *ret_cause. codecs: those agreed on; size:
 * bytes of the transfer that must contain the part (UINT64_MAX: not known yet).
 */
enum ob_err obp_stripe_check(
	const struct obp_frame *frame, unsigned codecs, uint64_t size, struct ob_cause *ret_cause);
/*
 * Fills in the header of a part of n bytes, 1 to OBP_CHUNK_MAX, or of OBP_FRAME_GIVE or
 * OBP_FRAME_GIVEN with n = 0.
 */
void obp_stripe_fill(struct obp_frame *ret, enum obp_frame_type type, uint64_t transfer,
	uint64_t offset, uint32_t n);

#endif
