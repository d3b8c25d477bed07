/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A balancer's metrics as Prometheus text (docs/DASHBOARD.md lists them). Device series carry
 * dcgm-exporter's labels. No state; the loop's thread.
 */
#ifndef OBL_DASHBOARD_EXPOSITION_H
#define OBL_DASHBOARD_EXPOSITION_H

#include "base/buf.h"
#include "loadbalancer/dashboard/source.h"

#define OBL_EXPOSITION_MAX (64u << 20) /* bytes; 8,000 GPUs take 10 MB */

/* Appends the whole text. out->failed: it was larger, or there was no memory. */
void obl_exposition_write(const struct obl_source *source, struct ob_buf *out);
/* "ready", "cordoned" ...; "?" for another value. */
const char *obl_seen_state_name(enum obl_seen_state state);

#endif
