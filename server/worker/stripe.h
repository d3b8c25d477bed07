/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_stripes: the session's further connections for large copies (protocol/stripe.h). Each has a
 * thread; the driver is asked by the thread alone that executes the transfer's record.
 *
 *   to the device     stripe threads: socket -> free slot -> full;  executor: full -> copy started
 *                     -> event passed -> free
 *   from the device   executor: free slot -> copy started -> event passed -> full;  stripe threads:
 *                     full -> socket -> free
 *
 * The slots are page-locked and few, so that both sides work at the same time and neither runs
 * ahead. A part that comes before its record is not read until the executor is there; one of a
 * transfer that is over is read and dropped. Stripes joined with the same number are a set: when
 * one breaks, or no byte has moved for OBS_STRIPE_STALL_NS while a transfer waits for one, all of
 * the set are closed, and the transfer is answered "not whole". Nothing else depends on a stripe,
 * and none outlives the process, which is the session.
 *
 * obs_stripe_join: loop thread. The operations: executor or a lane's thread. One transfer at a
 * time; a second is not whole.
 */
#ifndef OBS_STRIPE_H
#define OBS_STRIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/session.h"

#define OBS_STRIPE_STALL_NS 5000000000ull

void obs_stripes_init(struct obs_stripes *stripes);
/* How many a client may open: 0 when they are switched off. */
uint32_t obs_stripes_offer(const struct obs_session *session);
/*
 * A connection with the session's secret becomes a stripe of set `number`. Takes the stream; a
 * refused one is told and closed.
 */
void obs_stripe_join(struct obs_session *session, const struct obt_stream *stream, uint64_t number);

/* ---- for the operations (ops/stripe.c); all under stripes->lock ---- */

void obs_stripe_put(struct obs_stripe_queue *queue, struct obs_stripe_slot *slot);
/* NULL: empty. */
struct obs_stripe_slot *obs_stripe_get(struct obs_stripe_queue *queue);
/* All stripes of the set end, and the transfer that uses them. */
void obs_stripe_break(struct obs_stripes *stripes, struct obs_stripe_set *set);

#endif
