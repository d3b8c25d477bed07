/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Streams and listening sockets from addresses (url.h): what knows every kind of stream. Any
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
 * Connects before the deadline (ob_clock_ns; it covers every address and the handshake, not the
 * look-up of the name, which takes as long as the resolver's own settings allow). OB_ERR_CONNECT,
 * OB_ERR_TIMEOUT; errno tells more. OB_ERR_RESOLVE: errno is ENOENT for a name that is not known,
 * EAGAIN when no name server answered. tls://: also OB_ERR_TLS; the first obt_message_send goes on
 * with the handshake.
 */
enum ob_err obt_stream_connect(
	const struct obt_url *url, uint64_t deadline, struct obt_stream *ret);

/*
 * A listening socket, or -1 with errno. A stale unix socket file that nobody listens on is
 * replaced. ret_url takes the address as it can be connected to.
 */
int obt_listen(const struct obt_url *url, int backlog, char *ret_url, size_t url_size);

#endif
