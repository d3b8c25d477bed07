/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a grant gives to a program, in the forms of the environment variables that carry it to the
 * client library: OUTBOARD_SERVER, OUTBOARD_TICKET, OUTBOARD_TLS_PIN. A grant comes from another
 * machine; every part of it is checked here. Owned by the caller; any thread.
 */
#ifndef OBL_ACCESS_H
#define OBL_ACCESS_H

#include <stdint.h>

#include "base/cause.h"
#include "protocol/pool.h"

#define OBL_ACCESS_TRY_NS 1000000000ull /* for one of several addresses of a server to answer */
#define OBL_ACCESS_TEXT \
	(OBP_POOL_PARTS_MAX * (OBP_POOL_URL_MAX + 2 * OBP_TICKET_MAX + 2)) /* of OUTBOARD_TICKET */

struct obl_access {
	/* one address for each part of the grant, with '+' between them */
	char *servers;
	char *tickets; /* as loadbalancer/ticket_text.h reads: for the addresses of `servers` */
	char *pins;    /* "tls://host:port=PIN,...", as transport/pin.h reads; may be empty */
	uint32_t n_devices;
};

/*
 * Chooses an address of each part: the only one, or the first that can be connected to (asked for
 * OBL_ACCESS_TRY_NS each). OB_ERR_PROTOCOL: the grant makes no sense, *ret_cause. OB_ERR_NO_MEMORY.
 * On success call obl_access_fini.
 */
enum ob_err obl_access_make(
	const struct obp_pool_grant *grant, struct obl_access *ret, struct ob_cause *ret_cause);
void obl_access_fini(struct obl_access *access);

#endif
