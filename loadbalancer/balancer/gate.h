/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The listening sockets of the balancer, and the limits of connections: in all and of one address.
 * When all are in use, the oldest connection that has sent nothing yet gives way, else the oldest
 * that follows a reservation, whose program loses nothing by that; else the new one is closed. Loop's
 * thread only. Owner: the balancer.
 */
#ifndef OBL_GATE_H
#define OBL_GATE_H

#include <sys/types.h>

#include "base/options.h"
#include "loadbalancer/balancer/link.h"
#include "transport/url.h"

#define OBL_GATE_ACCEPTS 64u /* in one turn of the loop */

struct obl_gate_options {
	struct ob_texts listen;
	const char *tls_cert, *tls_key;
	bool insecure, has_tokens;
	uint32_t connections, address_connections;
};

struct obl_listener {
	struct obl_gate *gate;
	uv_poll_t poll;
	int fd;
	bool secure;
	char url[OBT_URL_MAX + 1];
	char unix_path[OBT_PATH_MAX]; /* "": no Unix socket */
	ino_t unix_inode;
};

struct obl_gate {
	const struct obl_gate_options *options;
	struct obl_links links; /* loop, user and functions are set by the caller before opening */
	struct obl_listener listeners[OB_OPTIONS_TEXTS_MAX];
	size_t n_listeners;
	bool resting; /* no descriptors: nothing is accepted until the sweep */
	uv_timer_t sweep;
};

/*
 * Opens all addresses and prints them to the log. OB_ERR_URL, _ARGUMENT, _CONNECT, _TLS: *ret_cause,
 * and obl_gate_close may be called.
 */
enum ob_err obl_gate_open(
	struct obl_gate *gate, const struct obl_gate_options *options, struct ob_cause *ret_cause);
/* Accepts nothing more. The links stay. */
void obl_gate_shut(struct obl_gate *gate);
/* After obl_gate_shut and when no link is left: frees what remains. */
void obl_gate_fini(struct obl_gate *gate);

#endif
