/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Parts of transfers on a stripe (protocol/stripe.h), with the I/O: the same on both sides. A
 * stripe belongs to one thread, which blocks here; everybody else may look at its gate, and closes
 * the gate and shuts the socket down to end it. There is no time-out in here, because only those
 * who wait for a transfer know whether anything should move: they watch `moved`.
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

/* What the stripes of one set have in common. */
struct obt_gate {
	_Atomic bool closed;    /* all of them end */
	_Atomic uint64_t moved; /* ns, when a byte last moved on any */
	_Atomic uint64_t bytes_in, bytes_out;
};

struct obt_stripe {
	struct obt_stream stream;
	struct obt_gate *gate;
	struct obp_packer packer;
	struct obp_unpacker unpacker;
	struct obt_meter meter; /* of the packer's */
	unsigned codecs;        /* agreed on */
	/* what the peer did wrong; NULL: nothing, the connection broke */
	const char *why;
};

/* Takes the stream. The structure stays where it is. request: as obp_packer_init. */
void obt_stripe_init(struct obt_stripe *stripe, struct obt_gate *gate,
	const struct obt_stream *stream, unsigned codecs, unsigned request);
/* Closes the stream. */
void obt_stripe_fini(struct obt_stripe *stripe);

/* The most bytes that the next part should have. */
size_t obt_stripe_piece(const struct obt_stripe *stripe);
/* One part. False: broken or closed, here and below. */
bool obt_stripe_send(struct obt_stripe *stripe, uint64_t transfer, uint64_t offset,
	const void *data, uint32_t n);
/* OBP_FRAME_GIVE or OBP_FRAME_GIVEN. */
bool obt_stripe_say(struct obt_stripe *stripe, enum obp_frame_type type, uint64_t transfer);
/* The next frame's header, checked but for its transfer's size. */
bool obt_stripe_next(struct obt_stripe *stripe, struct obp_frame *ret);
/* After a part's header: its count bytes into dst, or nowhere when dst is NULL. */
bool obt_stripe_take(struct obt_stripe *stripe, const struct obp_frame *frame, void *dst);

#endif
