/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Events of the pool: joined, lost, silent, placed, ... They go to the log at once, and to the
 * registry (events/NUMBER) at most once a second, several in one transaction; equal ones are
 * counted. The registry keeps the last OBL_EVENTS_KEPT of all balancers. Loop's thread only.
 */
#ifndef OBL_EVENTS_H
#define OBL_EVENTS_H

#include "loadbalancer/balancer/core.h"

#define OBL_EVENTS_KEPT     1000u
#define OBL_EVENTS_AT_ONCE  16u /* in one transaction */
#define OBL_EVENTS_EVERY_MS 1000u

/*
 * subject: a server, tenant or balancer, by the kind (document.c: whom it is shown to). A new event
 * of the same kind and subject is counted.
 */
void obl_event_add(struct obl_core *core, const char *kind, const char *subject, const char *format,
	...) __attribute__((format(printf, 4, 5)));
/* Stores what waits. True: a transaction was begun. */
bool obl_events_start(struct obl_core *core);

#endif
