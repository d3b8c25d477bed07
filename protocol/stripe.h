/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Stripes: further connections of a session that carry nothing but the bytes of large copies
 * (docs/PROTOCOL.md, "Stripes").
 *
 *   log       ... write_striped(dst, size, transfer 7) ...                 one record, in its place among all calls
 *   stripe 0  PART 7 @0   PART 7 @2M  ...                                  header + bytes; which stripe takes which part is as it comes
 *   stripe 1  PART 7 @1M  PART 7 @3M  ...
 *
 * The order of calls is the log's alone: the server holds what a stripe brings until its executor
 * is at the record, and the record is done when all bytes are there. In the other direction the
 * client asks on each stripe with GIVE 8 for transfer 8's parts, and each ends with GIVEN 8. A
 * transfer whose stripes broke is answered "not whole", and the copy is made again over the log:
 * the record itself is still executed once.
 *
 * A part is a frame whose `sequence` is the transfer, `ack` the offset of its bytes in it and
 * `count` their number; flags may name a codec, as in every frame. This file has the numbers and
 * the check of one header; no I/O, no state.
 */
#ifndef OBP_STRIPE_H
#define OBP_STRIPE_H

#include "base/err.h"
#include "protocol/format.h"

#define OBP_STRIPES_MAX 16u /* of one session */

/*
 * What is wrong with a frame's header on a stripe; NULL: nothing. codecs: those agreed on; size:
 * bytes of the transfer it must lie in (UINT64_MAX: not known yet).
 */
const char *obp_stripe_check(const struct obp_frame *frame, unsigned codecs, uint64_t size);
/*
 * The header of a part of n bytes, 1 to OBP_CHUNK_MAX, or of OBP_FRAME_GIVE or OBP_FRAME_GIVEN with
 * n 0.
 */
void obp_stripe_fill(struct obp_frame *ret, enum obp_frame_type type, uint64_t transfer,
	uint64_t offset, uint32_t n);

#endif
