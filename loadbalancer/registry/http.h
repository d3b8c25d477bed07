/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * An HTTP client on a libuv loop, for etcd's gateway: POST requests with a JSON body by libcurl's
 * multi interface, over connections that are kept. Callbacks come from the loop, outside libcurl, so
 * they may start and cancel requests. Proxies of the environment are ignored, redirects not followed.
 * Loop's thread only.
 */
#ifndef OBL_HTTP_H
#define OBL_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/cause.h"

#define OBL_HTTP_CONNECTIONS_MAX 24u /* to one host; further requests wait */

struct obl_http;
struct obl_http_request;

struct obl_http_answer {
	/*
	 * OB_ERR_NONE: `status` is valid. OB_ERR_CONNECT, OB_ERR_TLS: nothing was sent.
	 * OB_ERR_TIMEOUT, OB_ERR_CLOSED (connection lost): the server may have executed the request.
	 * OB_ERR_LIMIT: the answer is too large.
	 */
	enum ob_err err;
	const char *why; /* libcurl's text of the error */
	long status;
	const char *body; /* NUL-terminated; of a stream: "" */
	size_t size;
};

struct obl_http_call {
	const char *url;
	const void *body;
	size_t size;
	const char *token;   /* of the header Authorization; NULL: none */
	uint32_t timeout_ms; /* of the whole request; of a stream: of connecting */
	size_t answer_max;   /* bytes */
	bool once;           /* never sent again after a part of it was sent */
	/* NULL: not a stream. Else the answer's parts as they come. */
	void (*data)(void *user, const char *bytes, size_t size);
	/* The last call; also for a stream that the server ended. Not after obl_http_cancel. */
	void (*done)(void *user, const struct obl_http_answer *answer);
	void *user;
};

/* ca, cert, key: PEM files, or NULL. OB_ERR_TLS: a file cannot be read. */
enum ob_err obl_http_new(uv_loop_t *loop, const char *ca, const char *cert, const char *key,
	struct obl_http **ret, struct ob_cause *ret_cause);
/* Cancels all requests; closed is called from the loop. */
void obl_http_close(struct obl_http *http, void (*closed)(void *user), void *user);
/* Copies what the call points to. */
struct obl_http_request *obl_http_start(struct obl_http *http, const struct obl_http_call *call);
/* Ends the request without a call of `done`. */
void obl_http_cancel(struct obl_http_request *request);

#endif
