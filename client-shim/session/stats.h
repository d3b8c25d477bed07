/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_stats: the report at exit, enabled by OUTBOARD_STATS=1: calls, round trips, bytes, time spent
 * waiting, and the calls that waited. The log always counts. Called after the last call.
 */
#ifndef OBC_STATS_H
#define OBC_STATS_H

/* Prints to stderr what concerns the current server, if OUTBOARD_STATS enables it. */
void obc_stats_print(void);
/* With several servers: the sums. */
void obc_stats_print_together(void);

#endif
