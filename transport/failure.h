/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obt_failure: why no session with a server could begin, as one line for the user: what failed,
 * why, what to do. The client library and the `outboard` command print the same texts. No state;
 * any thread.
 */
#ifndef OBT_FAILURE_H
#define OBT_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cause.h"
#include "transport/url.h"

#define OBT_FAILURE_TEXT 1536u /* bytes that every text fits into */

struct obt_failure {
	/*
	 * The text may be empty: then the code's own text is used. After OB_ERR_CONNECT and
	 * OB_ERR_RESOLVE `system` decides.
	 */
	const struct ob_cause *cause;
	bool connected;     /* connected; a later step failed */
	unsigned timeout_s; /* how long the client waited; 0: unknown */
	const struct obt_url *url;
	const char *text; /* the address as the user wrote it */
};

/* The failure as one line, without a line end or control characters, whatever the cause contains. */
void obt_failure_print(const struct obt_failure *failure, char *ret_text, size_t size);
/* A few words for a table: "Connection refused", "the server's name cannot be resolved". */
const char *obt_failure_brief(const struct ob_cause *cause);

#endif
