/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * GET /metrics in Prometheus' text format, base units. libmicrohttpd enters here: it runs inside the supervisor's loop, through the one
 * descriptor it offers for that, so that there is no thread and nothing to lock. Only what the loop knows is told; no session is asked.
 */
#ifndef OBS_METRICS_H
#define OBS_METRICS_H

struct obs_super;

#define OBS_METRICS_CONNECTIONS 16  /* at the same time */
#define OBS_METRICS_TIMEOUT_S 10

/* url: tcp://host:port. 0, or -1 after saying why on stderr. Prints where it listens. */
int obs_metrics_open(struct obs_super *super, const char *url);
void obs_metrics_close(struct obs_super *super);

#endif
