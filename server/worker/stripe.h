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

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "protocol/stripe.h"
#include "transport/part.h"

struct obs_session;

#define OBS_STRIPE_SLOTS_MAX (2 * OBP_STRIPES_MAX + 2)
#define OBS_STRIPE_STALL_NS  5000000000ull

struct obs_stripe_slot {
	struct obs_stripe_slot *next;
	uint8_t *data; /* OBP_CHUNK_MAX bytes; NULL until first used */
	CUevent event; /* of the current transfer only */
	uint64_t offset;
	uint32_t size;
	bool marked; /* the event was recorded */
};

/* First in, first out. */
struct obs_stripe_queue {
	struct obs_stripe_slot *first, **last;
};

struct obs_stripe_set {
	struct obt_gate gate;
	uint64_t number;
	uint32_t n; /* members */
	struct obs_stripe *members[OBP_STRIPES_MAX];
};

struct obs_transfer {
	uint64_t id, size;
	uint64_t done;    /* bytes that the other side of the slots has taken */
	uint64_t touched; /* ns, when the executor last did something for it */
	struct obs_stripe_set *set;
	bool open, write, failed;
};

struct obs_stripes {
	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	struct obs_stripe_set *set; /* the last joined; NULL: none */
	uint32_t threads;           /* of all sets */
	struct obs_transfer transfer;
	uint64_t last; /* transfers up to here are over */
	struct obs_stripe_queue free, full;
	uint32_t n_slots; /* with memory */
	struct obs_stripe_slot slots[OBS_STRIPE_SLOTS_MAX];
	_Atomic uint64_t bytes_in, bytes_out; /* copied */
};

void obs_stripes_init(struct obs_stripes *stripes);
/* How many a client may open: 0 when they are switched off. */
uint32_t obs_stripes_offer(const struct obs_session *session);
/*
 * A connection with the session's secret becomes a stripe of set `number`. Takes the stream; a
 * refused one is told and closed.
 */
void obs_stripe_join(struct obs_session *session, const struct obt_stream *stream, uint64_t number);

#endif
