/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_completion: calls that wait for the device while the executor goes on. The executor starts
 * what the call needs on the device and adds an entry; one thread of the worker polls all entries
 * and answers each when its work is complete. So a session needs one thread for this, however many
 * threads the program has.
 *
 * The thread polls without a pause while an entry is young and then at intervals of 1/64 of the
 * age of the youngest entry, at most 250 us: an answer is late by at most 1.6 % of the time that
 * its call has waited. An entry is young again after each step of its call.
 */
#ifndef OBS_COMPLETION_H
#define OBS_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/session.h"

#define OBS_PENDING_STATE 192u /* bytes */
/* calls at a time; beyond that a call is not left to the completion thread */
#define OBS_PENDING_MAX   (OBP_LANE_MAX + 8192u)

/*
 * A call that is answered later. The fields up to `state` belong to whoever adds the entry, the
 * others to completion.c.
 */
struct obs_pending {
	struct obs_pending *next;
	uint64_t call, begun; /* begun: ns */
	struct obs_context *context;
	uint16_t opcode, lane;
	/*
	 * Polls the call, with its context current; x->call, lane_index and opcode are those of the
	 * call. True: it has been answered. If something was done but not all, it sets
	 * x->progress. NULL: the call is answered when all its events are complete.
	 */
	bool (*poll)(struct obs_exec *x, void *state);
	_Alignas(8) uint8_t state[OBS_PENDING_STATE];
	/* an event of the client that is waited for; NULL: none */
	CUevent shared;
	bool shared_last; /* the client's handle is gone: the event is destroyed at the end */
	/* events of this entry, of which the first n are waited for; kept for the next call */
	CUevent *events;
	uint32_t n, made, room;
	struct obs_context *made_in;
	struct obs_open *open; /* a copy that ends with the answer; NULL: none */
	bool query;            /* as a query, the call does not make the driver print */
	uint32_t body; /* bytes of the reply's body, which is zeros; at most OBS_PENDING_STATE */
};

void obs_completion_init(struct obs_completion *completion);
/*
 * Returns an entry for the current record, to be filled and then added, or NULL: no memory, or no
 * thread can be started; the caller then waits itself. Executor only, like the rest.
 */
struct obs_pending *obs_completion_new(struct obs_exec *x);
/* The call also waits for all work that is now in the stream. */
CUresult obs_completion_await(struct obs_exec *x, struct obs_pending *pending, CUstream stream);
void obs_completion_add(struct obs_session *session, struct obs_pending *pending);
/* Returns an entry that was not added. */
void obs_completion_drop(struct obs_session *session, struct obs_pending *pending);
/* Whether a call waits for this event of the client. */
bool obs_completion_waits(struct obs_session *session, CUevent event);
/*
 * The client's handle of this event is about to be destroyed or given another event. True: a call
 * waits for the event, so it must be left as it is; it is destroyed when that call has been
 * answered.
 */
bool obs_completion_keeps(struct obs_session *session, CUevent event);
/*
 * The context is about to be destroyed: waits until none of its calls is pending, and destroys the
 * events that were made in it.
 */
void obs_completion_forget(struct obs_session *session, struct obs_context *context);

#endif
