/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The time of each record, taken when a client asks for it (op times_switch): how long it waited
 * after its bytes had arrived, how long it was executed, how much of that inside the driver, how
 * long sending its reply took. Off, it costs one look at a flag for each record. Of interest is one
 * thread at a time; what another lane's thread does meanwhile is counted for that lane's record.
 */
#ifndef OBS_TIMES_H
#define OBS_TIMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define OBS_TIMES_KEPT 8192u /* records; older ones are forgotten */

/* Of one record; nanoseconds. */
struct obs_record_time {
	uint64_t number, queue, executing, driver, reply;
};

struct obs_driver;

/* Executor writes; others may read it late, which costs a record's time. */
extern _Atomic bool obs_times_on;

void obs_times_arrived(void);          /* bytes have come in */
void obs_times_begin(uint64_t number); /* a record is about to be executed, on this thread */
void obs_times_answer(void);           /* its reply is about to be sent */
void obs_times_end(void);

/*
 * From now on each record is timed, or none; what was noted before is forgotten. The table of
 * driver calls to use. Executor.
 */
const struct obs_driver *obs_times_switch(const struct obs_driver *table, bool on);
/* Of the records from number `first` on, the oldest first. How many; at most `max`. */
uint32_t obs_times_read(uint64_t first, struct obs_record_time *ret, uint32_t max);

#endif
