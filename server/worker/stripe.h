/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_stripes: the session's further connections for large copies (protocol/stripe.h). Each has a
 * thread; driver calls are made only by the thread that executes the transfer's record.
 *
 *   to the device     stripe threads: socket -> free slot -> full;  executor: full -> copy started
 *                     -> event passed -> free
 *   from the device   executor: free slot -> copy started -> event passed -> full;  stripe threads:
 *                     full -> socket -> free
 *
 * The slots are page-locked and few, so that both sides work in parallel and neither runs far
 * ahead. A part that arrives before its record stays in the socket until the executor has reached
 * the record; a part of a finished transfer is read and dropped. Stripes joined with the same
 * number form a set. When one breaks, or no byte has moved for OBS_STRIPE_STALL_NS while a transfer
 * waits, the whole set is closed and the transfer is answered as incomplete. Nothing else depends
 * on stripes; they end with the process.
 *
 * obs_stripe_join: loop thread. The operations: executor or a lane's thread. One transfer at a
 * time; a second is answered as incomplete.
 */
#ifndef OBS_STRIPE_H
#define OBS_STRIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/session.h"

#define OBS_STRIPE_STALL_NS 5000000000ull

void obs_stripes_init(struct obs_stripes *stripes);
/* How many stripes a client may open; 0: switched off. */
uint32_t obs_stripes_offer(const struct obs_session *session);
/*
 * Makes a connection with the session's secret a stripe of set `number`. Takes over the stream; on
 * refusal the client is told and the stream closed.
 */
void obs_stripe_join(struct obs_session *session, const struct obt_stream *stream, uint64_t number);

/* ---- for the operations (ops/stripe.c); all under stripes->lock ---- */

void obs_stripe_put(struct obs_stripe_queue *queue, struct obs_stripe_slot *slot);
/* NULL: empty. */
struct obs_stripe_slot *obs_stripe_get(struct obs_stripe_queue *queue);
/* Ends all stripes of the set, and the transfer that uses them. */
void obs_stripe_break(struct obs_stripes *stripes, struct obs_stripe_set *set);

#endif
