/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Makes streams and listening sockets from addresses (url.h). Above all kinds of streams. Any
 * thread.
 */
#ifndef OBT_CONNECT_H
#define OBT_CONNECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"
#include "transport/stream.h"
#include "transport/url.h"

/*
 * Connects before the deadline (ob_clock_ns). The deadline covers every address and the handshake,
 * but not the look-up of the name, which takes as long as the resolver's settings allow.
 * OB_ERR_CONNECT, _TIMEOUT, _RESOLVE (transport/resolve.h): *ret_cause, with an errno value in
 * `system`. tls://: also OB_ERR_TLS; the first obt_message_send makes the handshake.
 */
enum ob_err obt_stream_connect(const struct obt_url *url, uint64_t deadline, struct obt_stream *ret,
	struct ob_cause *ret_cause);

/*
 * Makes a listening socket, which the caller owns. Replaces the file of a unix socket that has no
 * listener. ret_url: the address to connect to. OB_ERR_CONNECT: *ret_cause, with an errno value in
 * `system`.
 */
enum ob_err obt_listen(const struct obt_url *url, int backlog, int *ret_fd, char *ret_url,
	size_t url_size, struct ob_cause *ret_cause);

#endif
