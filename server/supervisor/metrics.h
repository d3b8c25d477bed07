/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * GET /metrics in Prometheus' text format, base units. Uses libmicrohttpd, which runs inside the
 * supervisor's loop through its one descriptor: no thread, no lock. Reports only what the loop
 * knows; no session is asked.
 */
#ifndef OBS_METRICS_H
#define OBS_METRICS_H

#include "base/cause.h"

struct obs_super;

#define OBS_METRICS_CONNECTIONS 128 /* at the same time */
#define OBS_METRICS_FULL        64  /* beyond this the oldest is closed for each new one */
#define OBS_METRICS_TIMEOUT_S   5

/* url: tcp://host:port. Prints where it listens. OB_ERR_URL, _CONNECT, _IO: *ret_cause. */
enum ob_err obs_metrics_open(struct obs_super *super, const char *url, struct ob_cause *ret_cause);
void obs_metrics_close(struct obs_super *super);

#endif
