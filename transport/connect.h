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

#include "base/err.h"
#include "transport/stream.h"
#include "transport/url.h"

/*
 * Connects before the deadline (ob_clock_ns). The deadline covers every address and the handshake,
 * but not the look-up of the name, which takes as long as the resolver's settings allow.
 * OB_ERR_CONNECT, OB_ERR_TIMEOUT: errno has more. OB_ERR_RESOLVE: errno is ENOENT for an unknown
 * name, EAGAIN when no name server answered. tls://: also OB_ERR_TLS; the first obt_message_send
 * makes the handshake.
 */
enum ob_err obt_stream_connect(
	const struct obt_url *url, uint64_t deadline, struct obt_stream *ret);

/*
 * A listening socket, or -1 with errno. Replaces the file of a unix socket that has no listener.
 * ret_url: the address to connect to.
 */
int obt_listen(const struct obt_url *url, int backlog, char *ret_url, size_t url_size);

#endif
