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

#include "base/err.h"
#include "transport/url.h"

#define OBT_FAILURE_TEXT 1536u /* bytes that every text fits into */

struct obt_failure {
	enum ob_err err;
	int saved_errno;    /* after OB_ERR_CONNECT, OB_ERR_RESOLVE */
	bool connected;     /* connected; a later step failed */
	unsigned timeout_s; /* how long the client waited; 0: unknown */
	const struct obt_url *url;
	const char *text; /* the address as the user wrote it */
	/*
	 * more detail: obt_stream_why, the server's refusal, why shared memory is unavailable;
	 * NULL: none
	 */
	const char *why;
};

/* The failure as one line, without a line end or control characters, whatever `why` contains. */
void obt_failure_print(const struct obt_failure *failure, char *ret_text, size_t size);
/* A few words for a table: "Connection refused", "the server's name cannot be resolved". */
const char *obt_failure_brief(enum ob_err err, int saved_errno);

#endif
