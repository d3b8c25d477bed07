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
 * If a stripe fails, all stripes are closed and the caller (obc_transfer) repeats the copy over the
 * log, so no data is lost. Later copies try new stripes at growing intervals. One copy uses the
 * stripes at a time; meanwhile copies of other threads go over the log. If OUTBOARD_STRIPES is
 * unset, stripes are used only where they were measured to be faster (stripe_choice.h).
 *
 * One set per process. Any thread.
 */
#ifndef OBC_STRIPE_H
#define OBC_STRIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "client-shim/session/server.h"
#include "client-shim/session/stripe_choice.h"
#include "transport/link_memory.h"
#include "transport/stream.h"
#include "transport/url.h"

/* bytes: the smallest copy for which stripes are considered; OUTBOARD_STRIPE_MIN */
#define OBC_STRIPE_MIN  (16u << 20)
#define OBC_STRIPE_AUTO 4u /* number of stripes when OUTBOARD_STRIPES is unset */

/*
 * Bytes; the smallest copy for which stripes are considered. UINT64_MAX: for none. Written at the
 * start and the end of the session.
 */
extern uint64_t obc_stripe_min_first;
#define obc_stripe_min OBC_HERE(obc_stripe_min_first)

/* What the choice between stripes and log depends on. */
struct obc_stripe_view {
	bool ready;  /* stripes are open */
	bool forced; /* OUTBOARD_STRIPES gives a number: they are used whenever they are open */
	const struct obc_choice *choice;
};

/*
 * A copy, by obc_transfer: enter; carry and count for each piece, or none if it goes over the log;
 * learn; leave. enter reserves the stripes, opens them if there are none, and waits for them only
 * if OUTBOARD_STRIPES gives a number. False: another copy has reserved them.
 */
bool obc_stripe_enter(enum obc_direction direction, struct obc_stripe_view *ret);
void obc_stripe_leave(void);
/*
 * Carries one piece of at most OBP_TRANSFER_MAX bytes. *ret_complete false: not all bytes have
 * arrived, and the piece must be repeated, which writes the same bytes to the same address.
 */
CUresult obc_stripe_carry(enum obc_direction direction, uint64_t addr, void *data, uint64_t size,
	uint64_t stream, bool *ret_complete);
/* Before each further piece: whether the stripes are still open. */
bool obc_stripe_ready(void);
/* Counts a piece that the stripes carried, or did not carry completely. */
void obc_stripe_count(enum obc_direction direction, uint64_t size, bool complete);
/* The copy took `ns`. */
void obc_stripe_learn(enum obc_direction direction, enum obc_way way, uint64_t size, uint64_t ns);

/* ---- for client-shim/session/session.c and stats.c ---- */

/*
 * Called at the start of the session, before any copy. data: the data connection. offered: the
 * number of stripes that the welcome allows. codecs, codec_request: as for obc_log_open.
 * timeout_ns: limit for connecting.
 */
void obc_stripe_init(const struct obt_url *url, const struct obt_stream *data, uint32_t offered,
	unsigned codecs, unsigned codec_request, uint64_t timeout_ns);
/* Right after init: what earlier sessions measured; 0: unknown. */
void obc_stripe_recall(const struct obt_link_memory *memory);
/* At the end: sets the members of log and stripes that are known. */
void obc_stripe_learned(struct obt_link_memory *ret);
/*
 * Control thread, about once a second: when the stripes have carried nothing for OBC_IDLE_NS, gives
 * the memory of their buffers and codecs back to the system.
 */
void obc_stripe_release_idle(uint64_t now);
/* At exit. */
void obc_stripe_stop(void);
/* In a forked child. */
void obc_stripe_forget(void);

struct obc_stripe_stats {
	uint32_t n;                   /* stripes open now */
	uint64_t copies[2], bytes[2]; /* over stripes; by direction */
	uint64_t broken, repeated;    /* sets that broke; pieces repeated over the log */
	double rate[2][2];            /* bytes/s, by direction and enum obc_way */
};
void obc_stripe_stats(struct obc_stripe_stats *ret);

#endif
