/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_free_memory: answers the client's question, on the control connection, how much memory of a
 * device is free. A client whose program asks again and again keeps its last answer up to date in
 * this way, without a round trip for each call (client-shim/session/free_memory.h).
 *
 * A thread of its own asks the driver: the driver may be busy for seconds, for example compiling,
 * while the loop must answer pings. The question is asked in a context in which the client made
 * the same call before, and which cannot be destroyed meanwhile. The thread is started with the
 * first question.
 */
#ifndef OBS_FREE_MEMORY_H
#define OBS_FREE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/session.h"

void obs_free_memory_init(struct obs_free_memory *memory);
/*
 * The client asks for this device; `value` is repeated in the answer. A later question replaces one
 * that is not answered yet. Does not wait. False: there is no such device, or the value is 0. Loop.
 */
bool obs_free_memory_ask(struct obs_session *session, uint32_t device, uint64_t value);
/* The client has asked for the memory in this context by a call; NULL: in none. Executor. */
void obs_free_memory_context(struct obs_session *session, struct obs_context *context);
/* The context ends: waits until no question uses it. Executor. */
void obs_free_memory_forget(struct obs_session *session, const struct obs_context *context);

#endif
