/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Timing of records, when a client asks for it. Switched off, it costs the test of one flag for each
 * record.
 *
 * op times_switch: how long each waited after its bytes had arrived, how long it was executed, how
 * much of that inside the driver, how long sending its reply took. Meant for one client thread at a
 * time; driver time of other lanes is added to their own records.
 *
 * op timeline_switch: when each was executed and answered, and by which thread
 * (server/worker/timeline.h). Any number of client threads.
 */
#ifndef OBS_TIMES_H
#define OBS_TIMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define OBS_TIMES_KEPT 8192u /* records; older ones are overwritten */

/* Of one record; nanoseconds. */
struct obs_record_time {
	uint64_t number, queue, executing, driver, reply;
};

struct obs_driver;

/*
 * One of the two is switched on. Written by the executor; other threads may see it late and miss a
 * record's time.
 */
extern _Atomic bool obs_times_on;

void obs_times_arrived(void); /* bytes have arrived */
/* A record is about to be executed, on this thread. */
void obs_times_begin(uint64_t number, uint16_t opcode);
/* The reply to this record is about to be sent, by the thread that began it or by another one. */
void obs_times_answer(uint64_t number);
void obs_times_end(void);

/*
 * Switches timing on or off and forgets earlier records. Returns the driver table to use. Executor.
 */
const struct obs_driver *obs_times_switch(const struct obs_driver *table, bool on);
/* Switches the timeline on or off and forgets its earlier events. Executor. */
void obs_times_timeline(bool on);
/* Times of the records from number `first` on, the oldest first. How many; at most `max`. */
uint32_t obs_times_read(uint64_t first, struct obs_record_time *ret, uint32_t max);

#endif
