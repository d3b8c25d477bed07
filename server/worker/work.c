/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/work.h"

#include <stdlib.h>

/* Streams that were destroyed need no entry. */
static void drop_destroyed(struct obs_session *session)
{
	struct obs_work *work = &session->work;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->n; i++)
		if (obs_handles_find(&session->streams, work->ids[i]))
			work->ids[kept++] = work->ids[i];
	work->n = kept;
}

static bool grow(struct obs_work *work)
{
	uint32_t room = work->room ? 2 * work->room : 64;
	uint64_t *ids = realloc(work->ids, room * sizeof *ids);

	if (ids) {
		work->ids = ids;
		work->room = room;
	}
	return ids != NULL;
}

void obs_work_add(struct obs_session *session, struct obs_handle *stream)
{
	struct obs_work *work = &session->work;

	if (work->n == work->room) {
		drop_destroyed(session);
		/* So that the next walk is far away; without memory it is not. */
		if (work->n > work->room / 2)
			grow(work);
	}
	if (work->n == work->room && !grow(work)) {
		/* The context is waited for as a whole. */
		if (stream->context)
			stream->context->orphans = true;
		return;
	}
	stream->extra |= OBS_STREAM_BUSY;
	work->ids[work->n++] = atomic_load_explicit(&stream->id, memory_order_relaxed);
}

uint32_t obs_work_each(struct obs_exec *x, bool (*fn)(void *user, CUstream stream), void *user)
{
	struct obs_work *work = &x->session->work;
	uint32_t kept = 0, found = 0;
	bool more = true;

	if (x->context->legacy_busy) {
		CUstream legacy = x->context->part.stream; /* NULL: the context's own */

		x->context->legacy_busy = x->drv->cuStreamQuery(legacy) == CUDA_ERROR_NOT_READY;
		if (x->context->legacy_busy) {
			more = fn(user, legacy);
			found++;
		}
	}
	for (uint32_t i = 0; i < work->n; i++) {
		struct obs_handle *stream = obs_handles_find(&x->session->streams, work->ids[i]);

		if (!stream)
			continue;
		if (more && stream->context == x->context) {
			if (x->drv->cuStreamQuery(stream->driver) != CUDA_ERROR_NOT_READY) {
				stream->extra &= ~OBS_STREAM_BUSY;
				continue;
			}
			more = fn(user, stream->driver);
			found++;
		}
		work->ids[kept++] = work->ids[i];
	}
	work->n = kept;
	return found;
}

void obs_work_orphan(struct obs_exec *x, const struct obs_handle *stream)
{
	if (stream->context && stream->extra & OBS_STREAM_BUSY &&
		x->drv->cuStreamQuery(stream->driver) == CUDA_ERROR_NOT_READY)
		stream->context->orphans = true;
}
