/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Calls of etcd's JSON gateway, one answer each: they go to the current endpoint, log in when etcd
 * wants a token, and are repeated at another endpoint where that is safe. Every call ends within
 * OBL_CALL_TIMEOUTS time-outs of one attempt. Embedded in its owner, which calls obl_calls_tick about ten
 * times in a second. Loop's thread only.
 */
#ifndef OBL_CALLS_H
#define OBL_CALLS_H

#include <jansson.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "loadbalancer/registry/endpoints.h"
#include "loadbalancer/registry/http.h"
#include "loadbalancer/registry/login.h"

#define OBL_CALLS_MAX         16u /* at etcd at a time, but for urgent ones; others wait in order */
#define OBL_CALL_TIMEOUTS     4u
#define OBL_CALL_BYTES_MAX    (64u << 20) /* bodies of pending calls; more are refused: OB_ERR_LIMIT */
#define OBL_FAILURE_LATELY_NS (10 * OB_SECOND)

enum obl_call_kind {
	OBL_CALL_REPEAT, /* may be executed several times */
	OBL_CALL_URGENT, /* the same, and does not wait for others */
	OBL_CALL_ONCE, /* is repeated only if nothing of it was sent, or etcd did not execute it */
};

struct obl_reply {
	/*
	 * OB_ERR_NONE: *root. OB_ERR_CONNECT: not sent. OB_ERR_REFUSED: not executed; `code` is
	 * etcd's. OB_ERR_TIMEOUT, OB_ERR_PROTOCOL, OB_ERR_CLOSED: unknown. OB_ERR_LIMIT: not sent.
	 */
	enum ob_err err;
	const struct ob_cause *cause; /* NULL: no error */
	int code;
	const json_t *root;
	uint64_t started_ns; /* of the attempt that was answered */
};

typedef void obl_reply_done(void *user, const struct obl_reply *reply);

struct obl_call;
TAILQ_HEAD(obl_call_list, obl_call);

struct obl_calls {
	struct obl_http *http;
	struct obl_endpoints endpoints;
	uint32_t timeout_ms;
	struct obl_call_list list;
	size_t bytes;    /* of the bodies */
	uint32_t n_sent; /* calls at etcd, but for urgent ones */
	struct obl_login login;
	struct ob_cause failure; /* the last one, for messages; code OB_ERR_NONE: none yet */
	uint64_t failure_ns;
	/* Called when an endpoint fails. */
	void (*failed)(void *user, uint32_t endpoint);
	void *user;
};

/* The members http, endpoints, timeout_ms, failed and user are set; user_name NULL: no login. */
void obl_calls_init(struct obl_calls *calls, const char *user_name, const char *password_file);
/* Ends the calls that are pending (OB_ERR_CLOSED); `done` may start new ones. */
void obl_calls_close(struct obl_calls *calls);
/* Calls that are still pending end without a call of `done`. */
void obl_calls_fini(struct obl_calls *calls);
void obl_calls_tick(struct obl_calls *calls, uint64_t now);
/* path: "/v3/kv/txn". Takes over the body. done is called later, exactly once. */
void obl_calls_start(struct obl_calls *calls, enum obl_call_kind kind, const char *path,
	struct ob_buf *body, size_t answer_max, obl_reply_done *done, void *user);
/* A call that is not made: `done` is called at the next tick. */
void obl_calls_refuse(
	struct obl_calls *calls, const struct ob_cause *cause, obl_reply_done *done, void *user);
/* What failed last, for a message; the other text if that is long ago. Valid until the next failure. */
const char *obl_calls_failure_text(const struct obl_calls *calls, const char *otherwise);
/*
 * Starts a stream at the current endpoint (*ret_endpoint). NULL: not now, because there is no token or
 * all endpoints have failed.
 */
struct obl_http_request *obl_calls_stream(struct obl_calls *calls, const char *path,
	const struct ob_buf *body, struct obl_http_call *call, uint32_t *ret_endpoint);
/* The owner noticed that an endpoint does not work. */
void obl_calls_endpoint_failed(struct obl_calls *calls, uint32_t endpoint, const char *why);
#endif
