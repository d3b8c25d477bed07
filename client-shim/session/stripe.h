/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_stripe: large copies over several connections (protocol/stripe.h). Each stripe has one
 * thread, started with the first copy that is large enough. The thread connects and joins by
 * itself. It then sends from, or receives into, the caller's memory, while the caller waits in the
 * log for the reply to the record.
 *
 *   caller     job set, threads woken | call write_striped ... reply | all threads idle
 *   thread k                          | part, part, part ...         |
 *
 * When all threads are idle, the caller may use its memory again.
 *
 * If a stripe fails, all stripes are closed and the copy is repeated over the log, so no data is
 * lost. Later copies try new stripes at growing intervals. One transfer uses the stripes at a time;
 * meanwhile copies of other threads go over the log. If OUTBOARD_STRIPES is unset, stripes are used
 * only where they were measured to be faster (stripe_choice.h).
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

/* bytes: the smallest copy for which stripes are considered; OUTBOARD_STRIPE_MIN */
#define OBC_STRIPE_MIN  (16u << 20)
#define OBC_STRIPE_AUTO 4u /* number of stripes when OUTBOARD_STRIPES is unset */

/* Like obc_call_op_write and obc_call_op_read, over the log or the stripes, whichever is faster. */
CUresult obc_stripe_write(uint64_t dst, uint64_t size, uint64_t stream, const void *src);
CUresult obc_stripe_read(uint64_t src, uint64_t size, uint64_t stream, void *dst);

/* ---- for client-shim/session/session.c and stats.c ---- */

/*
 * Called at the start of the session, before any copy. data: the data connection. offered: the
 * number of stripes that the welcome allows. codecs, codec_request: as for obc_log_open. timeout_ns: limit
 * for connecting.
 */
void obc_stripe_init(const struct obt_url *url, const struct obt_stream *data, uint32_t offered,
	unsigned codecs, unsigned codec_request, uint64_t timeout_ns);
/* At exit. */
void obc_stripe_stop(void);
/* In a forked child. */
void obc_stripe_forget(void);

struct obc_stripe_stats {
	uint32_t n;                   /* stripes open now */
	uint64_t copies[2], bytes[2]; /* over stripes; [0] to the device, [1] from it */
	uint64_t broken, again;       /* sets that broke; copies repeated over the log */
	double rate[2][2];            /* bytes/s, by direction and enum obc_way */
};
void obc_stripe_stats(struct obc_stripe_stats *ret);

#endif
