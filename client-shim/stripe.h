/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_stripe: large copies over several connections (protocol/stripe.h). One thread for each
 * stripe, started with the first copy that is large enough, which connects and joins by itself;
 * then it sends from, or receives into, the caller's memory, and the caller waits in the log for
 * the record's reply.
 *
 *   caller     job set, threads woken | call write_striped ... reply | all threads idle
 *   thread k                          | part, part, part ...         |
 *
 * When all threads are idle, the caller may use its memory again.
 *
 * When anything goes wrong with a stripe all of them are closed and the copy is made over the log,
 * where nothing is lost; later copies try new stripes, at growing intervals. One transfer at a
 * time: another thread's copy takes the log meanwhile. In a session of its own accord
 * (OUTBOARD_STRIPES unset) stripes are used where they were measured to be faster
 * (stripe_choice.h).
 *
 * One set per process. Any thread.
 */
#ifndef OBC_STRIPE_H
#define OBC_STRIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "transport/stream.h"
#include "transport/url.h"

/* bytes of a copy from which on stripes are thought of; OUTBOARD_STRIPE_MIN */
#define OBC_STRIPE_MIN  (16u << 20)
#define OBC_STRIPE_AUTO 4u /* stripes when the number is not given */

/* As obc_call_op_write and obc_call_op_read, by whatever way is best. */
CUresult obc_stripe_write(uint64_t dst, uint64_t size, uint64_t stream, const void *src);
CUresult obc_stripe_read(uint64_t src, uint64_t size, uint64_t stream, void *dst);

/* ---- for client-shim/session.c and stats.c ---- */

/*
 * The session begins; data: its connection. offered: what the welcome allows; codecs, wish: as for
 * the log; timeout_ns: to connect. Before any copy.
 */
void obc_stripe_init(const struct obt_url *url, const struct obt_stream *data, uint32_t offered,
	unsigned codecs, unsigned wish, uint64_t timeout_ns);
/* At exit. */
void obc_stripe_stop(void);
/* In a forked child. */
void obc_stripe_forget(void);

struct obc_stripe_stats {
	uint32_t n;                   /* stripes open now */
	uint64_t copies[2], bytes[2]; /* over stripes; to the device, from it */
	uint64_t broken, again;       /* sets that broke; copies made again over the log */
	double rate[2][2];            /* bytes/s: direction, way (enum obc_way) */
};
void obc_stripe_stats(struct obc_stripe_stats *ret);

#endif
