/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The inside of obs_stripes, shared by stripe.c (connections, threads) and ops/stripe.c (the
 * operations). Not for others. All under stripes->lock.
 */
#ifndef OBS_STRIPE_INSIDE_H
#define OBS_STRIPE_INSIDE_H

#include "server/worker/stripe.h"

void obs_stripe_put(struct obs_stripe_queue *queue, struct obs_stripe_slot *slot);
/* NULL: empty. */
struct obs_stripe_slot *obs_stripe_get(struct obs_stripe_queue *queue);
/* All stripes of the set end, and the transfer that uses them. */
void obs_stripe_break(struct obs_stripes *stripes, struct obs_stripe_set *set);

#endif
