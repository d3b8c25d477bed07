/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The CUDA contexts of a session. */
#ifndef OBS_CONTEXT_H
#define OBS_CONTEXT_H

#include "server/worker/session.h"

/* The entry of the context with this id; NULL: there is none. Executor only. */
struct obs_context *obs_context_find(struct obs_session *session, uint64_t id);
/*
 * Makes sure that the driver has the context: a primary context is retained when it is first used.
 * CUDA_SUCCESS, or the driver's error.
 */
CUresult obs_context_ready(struct obs_session *session, struct obs_context *context);
/* Makes `context` (NULL: none) the calling thread's current one in the driver, if it is not. */
CUresult obs_context_enter(struct obs_exec *x, struct obs_context *context);

#endif
