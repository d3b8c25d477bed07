/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Checks of a request that need nothing but its headers, address and body. No state; any thread.
 */
#ifndef OBL_DASHBOARD_HEADERS_H
#define OBL_DASHBOARD_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"
#include "protocol/pool.h"

/* An operator's command, taken from the path and the body of a POST. */
struct obl_web_order {
	const char *verb; /* constant */
	char target[OBP_POOL_NAME_MAX];
	char argument[OBP_POOL_WHERE_MAX];
};

/*
 * The token of "Bearer TOKEN" (RFC 6750), or NULL: another scheme, or nothing. Points into the
 * header.
 */
const char *obl_web_token_text(const char *authorization);
/*
 * True if a Host header names this machine: an IP address, localhost or its host name. A page of
 * another site can make a browser send requests here under the name of that site (DNS rebinding).
 */
bool obl_web_host_own(const char *host);
/* True if an Origin header (NULL: none) is that of the page of this host. */
bool obl_web_origin_own(const char *origin, const char *host);
/*
 * Splits "/api/v1/servers/NAME/VERB" and "/api/v1/sessions/ID/kill". False: another path, or a name
 * with other characters than letters, digits, '.', '_' and '-'.
 */
bool obl_web_order_find(const char *path, struct obl_web_order *ret);
/*
 * Reads the body of a command: empty, or an object, which for "drain" may have the member "grace_s"
 * (whole seconds, at most a day). OB_ERR_ARGUMENT: anything else; *ret_cause.
 */
enum ob_err obl_web_body_read(
	const char *body, size_t size, struct obl_web_order *order, struct ob_cause *ret_cause);
/*
 * Reads "GPU-...,GPU-...": returns the number of UUIDs; `max` + 1: more, or malformed. NULL and ""
 * are none.
 */
unsigned obl_web_gpus_read(const char *list, uint8_t (*ret_uuids)[16], unsigned max);

#endif
