/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_watch: lets a program poll an event or a stream without a round trip for each query. After a
 * query that found the work incomplete, the client asks the server to say when it is complete, and
 * answers further queries from what it has heard. So an answer is at most as old as the way from
 * the server takes.
 *
 * A watch belongs to one event or stream. Any thread; under the lock of watch.c.
 */
#ifndef OBC_WATCH_H
#define OBC_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/cuda_types.h"

struct obc_later;

struct obc_watch {
	struct obc_later *later; /* NULL: the server was not asked */
	uint64_t number;         /* of the record that asked: work before it is watched */
	_Atomic bool polled;     /* a query has asked */
};

/*
 * Asks the server to say when the work of `handle` is complete that is in the log now. `number`:
 * the record of the newest such work. opcode: event_watch or stream_watch. Does nothing if that has
 * been asked, if the server does not know the operation, or if too many such calls are unanswered.
 */
void obc_watch_begin(struct obc_watch *watch, uint16_t opcode, uint64_t handle, uint64_t number);
/*
 * What the server has said about the work up to record `number`. False: it was not asked about it,
 * so it must be asked now. True: *ret is CUDA_ERROR_NOT_READY or the result, *ret_before the record
 * before which all work is complete if the result is CUDA_SUCCESS.
 */
bool obc_watch_look(struct obc_watch *watch, uint64_t number, CUresult *ret, uint64_t *ret_before);
/* A query has asked for the state of the event or stream. */
static inline void obc_watch_polled(struct obc_watch *watch)
{
	atomic_store_explicit(&watch->polled, true, memory_order_relaxed);
}

/*
 * Whether a query has asked since this was called last: then the next recording should be watched
 * at once.
 */
static inline bool obc_watch_pays(struct obc_watch *watch)
{
	return ob_unlikely(atomic_load_explicit(&watch->polled, memory_order_relaxed)) &&
		atomic_exchange_explicit(&watch->polled, false, memory_order_relaxed);
}
/* The event or stream is destroyed. */
void obc_watch_end(struct obc_watch *watch);

#endif
