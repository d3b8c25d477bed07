/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * When the device worked for which record, for the timeline (timeline.h), measured by the driver's
 * events. While switched on, the calls that give work to a stream go through device_calls.c, which
 * calls begin and end around them:
 *
 *     stream   ... [mark] work 1 [mark] work 2 [mark] ...... [mark] work 3 [mark]
 *                                                     idle
 *
 * A mark is an event of the driver. Work that is submitted before the work before it is complete
 * begins at that one's mark; otherwise, or if the stream may wait for something else in between, a
 * mark of its own is recorded before it. Several works of one record (pieces of a copy) that follow
 * one another share the marks, and when no mark is free so do works of the same opcode.
 *
 * Works are looked at in passing, when later ones begin, and when the client reads the timeline.
 * Nothing waits for the device, but for a moment when a context is first used and then a few times
 * a second (device_clock.h). Marks belong to a context, at most OBS_DEVICE_MARKS each; work that
 * finds none left is counted as a lost event of the timeline.
 *
 * Any thread that has called obs_device_thread. No driver call that may block is made under the
 * lock, because a thread that answers the client must not wait for one whose queue is full.
 */
#ifndef OBS_DEVICE_TIMES_H
#define OBS_DEVICE_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "server/worker/device_streams.h"

struct obs_context;
struct obs_exec;

/* One driver call that gives work to a stream. */
struct obs_device_work {
	struct obs_device_stream *stream; /* NULL: not measured */
	struct obs_device_pool *pool;
	struct obs_device_mark *start, *end;
	uint64_t began;     /* ns */
	uint64_t turn;      /* the works of earlier turns are forgotten */
	bool fresh, failed; /* `start` is this work's own; recording it failed */
	bool again;         /* `end` is that of the record's work before */
};

/* This thread executes records with x, which must exist until the thread ends. */
void obs_device_thread(const struct obs_exec *x);
/* Forgets all works. Executor. */
void obs_device_switch(bool on);
/* Around the call. stream: as the driver is called, NULL or CU_STREAM_LEGACY: the legacy one. */
void obs_device_begin(struct obs_device_work *work, CUstream stream);
void obs_device_end(struct obs_device_work *work, CUresult result);
/* The stream was made to wait for something other than its own work. */
void obs_device_interrupted(CUstream stream);
/* The stream is about to be destroyed. */
void obs_device_stream_ends(CUstream stream);
/* Reports all works that are complete. May change the thread's current context. Executor. */
void obs_device_collect(struct obs_exec *x);
/* The context, which may be current or not, is about to be destroyed. Executor. */
void obs_device_forget(struct obs_exec *x, struct obs_context *context);

#endif
