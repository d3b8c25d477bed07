/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_work: the streams that may have unfinished work, so that a wait for a whole context asks the
 * driver about these streams only. The executor alone puts work into streams, and it marks a stream
 * when it looks up its handle for a record.
 *
 * Executor only.
 */
#ifndef OBS_WORK_H
#define OBS_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "server/worker/session.h"

/* Called by obs_work_mark for a stream that was not marked. */
void obs_work_add(struct obs_session *session, struct obs_handle *stream);

static inline void obs_work_mark(struct obs_session *session, struct obs_handle *stream)
{
	if (ob_unlikely(!(stream->extra & OBS_STREAM_BUSY)))
		obs_work_add(session, stream);
}

/*
 * Calls fn for each stream of the context with unfinished work, and removes the mark of the others.
 * The legacy stream is passed as NULL. fn returns false to stop. Returns the number of calls of fn.
 * The context must be current.
 */
uint32_t obs_work_each(struct obs_exec *x, bool (*fn)(void *user, CUstream stream), void *user);
/* The stream is about to be destroyed; its unfinished work goes on without a handle. */
void obs_work_orphan(struct obs_exec *x, const struct obs_handle *stream);

#endif
