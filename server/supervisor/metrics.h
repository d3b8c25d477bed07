/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * GET /metrics in Prometheus' text format, base units. libmicrohttpd enters here: it runs inside
 * the supervisor's loop, through the one descriptor it offers for that, so that there is no thread
 * and nothing to lock. Only what the loop knows is told; no session is asked.
 */
#ifndef OBS_METRICS_H
#define OBS_METRICS_H

struct obs_super;

#define OBS_METRICS_CONNECTIONS 128 /* at the same time */
#define OBS_METRICS_FULL        64  /* from so many on the oldest is cut off for each that comes */
#define OBS_METRICS_TIMEOUT_S   5

/* url: tcp://host:port. 0, or -1 after saying why on stderr. Prints where it listens. */
int obs_metrics_open(struct obs_super *super, const char *url);
void obs_metrics_close(struct obs_super *super);

#endif
