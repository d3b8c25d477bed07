/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The events of a session's timeline (op timeline_switch, timeline_read) until the client reads
 * them: a bounded ring. When it is full new events are counted and dropped. Any thread; one short
 * lock for each event. While switched off nothing is called, and the ring has no memory.
 */
#ifndef OBS_TIMELINE_H
#define OBS_TIMELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/timeline.h"

#define OBS_TIMELINE_KEPT (256u << 10) /* events: 10 MiB */

extern _Atomic bool obs_timeline_on;

/* Forgets earlier events. */
void obs_timeline_switch(bool on);
/* Adds an event. Returns its index, for obs_timeline_extend; UINT64_MAX: dropped. */
uint64_t obs_timeline_add(const struct obp_timeline_event *event);
/* Sets the duration of an event that has not been read yet. */
void obs_timeline_extend(uint64_t index, uint64_t took_ns);
/* So many events could not be measured: they count as dropped. */
void obs_timeline_lose(uint64_t n);
/* This thread's number in events. A thread that has ended gives its number to a later one. */
unsigned obs_timeline_thread(void);
/* Takes out the oldest events, at most `max`. Returns their number. */
uint32_t obs_timeline_read(struct obp_timeline_event *ret, uint32_t max, uint64_t *ret_lost);

#endif
