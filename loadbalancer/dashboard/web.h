/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The HTTP server of a balancer: dashboard, JSON API and metrics, by libmicrohttpd on the
 * balancer's libuv loop. The library never blocks: its epoll descriptor is polled by the loop.
 * Bounded in connections, streams, sizes and times: a connection that is idle, or sends its request
 * slowly, is closed, sooner when others come. Owned by the balancer; the loop's thread.
 */
#ifndef OBL_DASHBOARD_WEB_H
#define OBL_DASHBOARD_WEB_H

#include <uv.h>

#include "loadbalancer/dashboard/source.h"

#define OBL_WEB_PORT      14980 /* in texts; an address names its port */
#define OBL_WEB_TIMEOUT_S 10u

struct obl_web;

struct obl_web_options {
	const char *url;        /* tcp://host:port, tls://host:port or unix:/path */
	const char *cert, *key; /* PEM files, for tls:// */
	bool tokens;            /* callers need one: other machines may connect */
	bool insecure;          /* allow what the next line refuses */
	/* for tests: limits by address hold for this machine's too; 0: the usual ones */
	bool limits_local;
	uint32_t reply_s, documents_bytes; /* OBL_REPLY_S, OBL_DOCUMENTS_BYTES */
	uint32_t look_ms;                  /* interval of the history's looks; 0: 5 s */
};

/*
 * Listens; *ret_url is the address that a browser opens ("http://127.0.0.1:14980/"). OB_ERR_URL,
 * _CONNECT, _IO, _TLS, _ARGUMENT: *ret_cause; among them an address that other machines can reach
 * without TLS or without tokens. The source lives until obl_web_close has called `closed`.
 */
enum ob_err obl_web_open(uv_loop_t *loop, const struct obl_web_options *options,
	const struct obl_source *source, struct obl_web **ret, char *ret_url, size_t url_size,
	struct ob_cause *ret_cause);
/*
 * Closes all connections and frees the server when the loop has closed its handles; then calls
 * `closed`, unless it is NULL. web NULL: calls it at once.
 */
void obl_web_close(struct obl_web *web, void (*closed)(void *user), void *user);

#endif
