/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What becomes of a request that was not placed: it is refused if it does not wait, or if no waiting
 * helps. That is decided at its first look only, because a server may be away for a moment later.
 *
 * A server that has registered has no devices for a moment, because its first heartbeat comes before
 * its driver has loaded. Until it has, what no other server can fulfil is refused with "later", or waits.
 * But a server may stay without devices, or fail and register again and again: each decision waits for
 * JOIN_MS at most, and what waits is refused at last after DEVICES_MS. Loop's thread only; no state but
 * the request's.
 */
#ifndef OBL_NOT_NOW_H
#define OBL_NOT_NOW_H

#include "loadbalancer/balancer/asker.h"
#include "loadbalancer/balancer/line.h"

/* May refuse the request, which frees it. line: as obl_line_fill has made it. */
void obl_not_now(struct obl_core *core, struct obl_line *line, struct obl_asker *asker);

#endif
