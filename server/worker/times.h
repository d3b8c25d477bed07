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

/* Executor writes; others may read it late, which costs a record's time. */
extern _Atomic bool obs_times_on;

void obs_times_arrived(void);          /* bytes have come in */
void obs_times_begin(uint64_t number); /* a record is about to be executed, on this thread */
void obs_times_answer(void);           /* its reply is about to be sent */
void obs_times_end(void);

#endif
