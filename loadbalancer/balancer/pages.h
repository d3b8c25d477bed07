/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The dashboard of this balancer: starts the HTTP server (loadbalancer/dashboard/web.h) and tells it
 * what it asks about the core. Loop's thread only. One per process.
 */
#ifndef OBL_PAGES_H
#define OBL_PAGES_H

#include "loadbalancer/balancer/core.h"

/* Listens at settings->http; does nothing if that is NULL. Errors as obl_web_open. */
enum ob_err obl_pages_open(struct obl_core *core, struct ob_cause *ret_cause);
/* Closes all connections; what waits for a command's end is answered. */
void obl_pages_close(void);

#endif
