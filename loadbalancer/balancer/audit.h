/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Compares the ledgers and the tenants' usage with the sum of the reservations, and corrects what
 * differs: the usage of a tenant that gets a quota while others place for it, or values that
 * somebody has edited. The balancer that leads does it. A difference must be seen twice with the
 * same revision, OBL_AUDIT_EVERY_S apart, so that changes which are still being reported are none.
 * If a reservation cannot be read, nothing is corrected. Loop's thread only.
 */
#ifndef OBL_AUDIT_H
#define OBL_AUDIT_H

#include "loadbalancer/balancer/core.h"

#define OBL_AUDIT_EVERY_S 5u

/* Every second. */
void obl_audit_sweep(struct obl_core *core);
/* Corrects what was seen twice. True: a transaction was begun. */
bool obl_audit_start(struct obl_core *core);

#endif
