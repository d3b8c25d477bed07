/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Sends and receives the parts of transfers on a stripe (protocol/stripe.h); the same on both
 * sides. A stripe belongs to one thread, which blocks here. Other threads may read its gate; to end
 * the stripe they close the gate and shut the socket down. There are no time-outs here: only the
 * threads that wait for a transfer know whether data is due, and they watch `moved`.
 */
#ifndef OBT_PART_H
#define OBT_PART_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/pack.h"
#include "protocol/stripe.h"
#include "transport/path.h"
#include "transport/stream.h"

/* Shared by the stripes of one set. */
struct obt_gate {
	_Atomic bool closed;    /* all stripes of the set end */
	_Atomic uint64_t moved; /* time (ns) when a byte last moved on any stripe */
	_Atomic uint64_t bytes_in, bytes_out;
};

struct obt_stripe {
	struct obt_stream stream;
	struct obt_gate *gate;
	struct obp_packer packer;
	struct obp_unpacker unpacker;
	struct obt_meter meter; /* for the packer */
	unsigned codecs;        /* agreed on */
	/* how the peer broke the protocol; code OB_ERR_NONE: it did not */
	struct ob_cause cause;
};

/* Takes over the stream. The structure must not move. request: as for obp_packer_init. */
void obt_stripe_init(struct obt_stripe *stripe, struct obt_gate *gate,
	const struct obt_stream *stream, unsigned codecs, unsigned request);
/* Closes the stream. */
void obt_stripe_fini(struct obt_stripe *stripe);

/* Between two transfers: gives the memory of buffers and codecs back to the system. */
void obt_stripe_release(struct obt_stripe *stripe);

/* Largest size for the next part. */
size_t obt_stripe_piece(const struct obt_stripe *stripe);
/*
 * Sends one part. False, here and below: the connection is broken or closed, or the peer broke the
 * protocol (`cause`).
 */
bool obt_stripe_send(struct obt_stripe *stripe, uint64_t transfer, uint64_t offset,
	const void *data, uint32_t n);
/* Sends OBP_FRAME_GIVE or OBP_FRAME_GIVEN. */
bool obt_stripe_say(struct obt_stripe *stripe, enum obp_frame_type type, uint64_t transfer);
/* Receives the next frame's header and checks it, except for the transfer's size. */
bool obt_stripe_next(struct obt_stripe *stripe, struct obp_frame *ret);
/* After a part's header: receives its count bytes into dst, or drops them if dst is NULL. */
bool obt_stripe_take(struct obt_stripe *stripe, const struct obp_frame *frame, void *dst);

#endif
