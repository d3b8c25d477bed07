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
 * The headers of a request that decide where it ends and whom it is for. Programs between browser
 * and balancer may read doubtful ones in another way, and then take one peer's answer for another's.
 */
struct obl_web_framing {
	unsigned lengths, codings, hosts;
	bool doubtful; /* a malformed name or value */
};

/* Counts a header in. */
void obl_web_framing_add(struct obl_web_framing *framing, const char *name, const char *value);
/* version: "HTTP/1.1". OB_ERR_ARGUMENT: there is doubt; *ret_cause says which. */
enum ob_err obl_web_framing_check(
	const struct obl_web_framing *framing, const char *version, struct ob_cause *ret_cause);
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
 * Splits "/api/v1/servers/NAME/VERB" and "/api/v1/sessions/ID/VERB". False: another path, or a name
 * with other characters than letters, digits, '.', '_' and '-'.
 */
bool obl_web_order_find(const char *path, struct obl_web_order *ret);
/*
 * Reads the body of a command: empty, or an object, which for "drain" may have the member "grace_s"
 * (whole seconds, at most a day), and for "move" the member "server" (a name). OB_ERR_ARGUMENT:
 * anything else; *ret_cause.
 */
enum ob_err obl_web_body_read(
	const char *body, size_t size, struct obl_web_order *order, struct ob_cause *ret_cause);
/*
 * Reads "GPU-...,GPU-...": returns the number of UUIDs; `max` + 1: more, or malformed. NULL and ""
 * are none.
 */
unsigned obl_web_gpus_read(const char *list, uint8_t (*ret_uuids)[16], unsigned max);

#endif
