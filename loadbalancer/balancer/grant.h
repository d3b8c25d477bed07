/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The answer to a request whose reservation is in the registry: one part for each server, with a
 * ticket that this balancer signs. The same reservation gives the same grant at every balancer,
 * apart from the signature. Loop's thread only.
 */
#ifndef OBL_GRANT_H
#define OBL_GRANT_H

#include "loadbalancer/balancer/core.h"

/*
 * Sends GRANT. False: a part has ended or its server is not known any more, or there is no memory;
 * *ret_cause, and nothing was sent.
 */
bool obl_grant_send(struct obl_core *core, struct obl_link *link,
	const struct obl_reservation *reservation, struct ob_cause *ret_cause);

#endif
