/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The contexts of a session. Threads: as said. */
#ifndef OBS_CONTEXT_H
#define OBS_CONTEXT_H

#include "server/worker/session.h"

/*
 * The context's entry, made at first sight when the id is a primary's; NULL: no such context.
 * Executor only.
 */
struct obs_context *obs_context_find(struct obs_session *session, uint64_t id);
/*
 * The driver's context, primaries being retained at first use. CUDA_SUCCESS or why there is none.
 */
CUresult obs_context_ready(struct obs_session *session, struct obs_context *context);
/* Makes `context` (NULL: none) the calling thread's current one in the driver, if it is not. */
CUresult obs_context_enter(struct obs_exec *x, struct obs_context *context);

#endif
