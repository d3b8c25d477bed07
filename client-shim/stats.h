/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_stats: the report at exit, wanted by OUTBOARD_STATS=1: calls, round trips, bytes, time spent
 * waiting, and which calls cost it. The counting itself is the log's, always on. Called once, when
 * no call is under way any more.
 */
#ifndef OBC_STATS_H
#define OBC_STATS_H

/* To stderr, if OUTBOARD_STATS says so. */
void obc_stats_print(void);

#endif
