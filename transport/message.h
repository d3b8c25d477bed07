/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Complete control messages over a stream, before a deadline, as the handshake uses them. One owner
 * per stream; blocks.
 */
#ifndef OBT_MESSAGE_H
#define OBT_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/control.h"
#include "transport/stream.h"

/*
 * Sends a message. `before` (may be NULL), the preface, is sent ahead of it in the same write. On a
 * TLS stream that has not begun, the message goes through the first layer, and the session's own
 * layer follows (transport/tls.h). OB_ERR_CLOSED, _TIMEOUT, _IO, _NO_MEMORY.
 */
enum ob_err obt_message_send(struct obt_stream *stream, const struct obp_message *message,
	const void *before, size_t before_size, uint64_t deadline);
/*
 * Receives one message. No other data may be expected on the stream. Also OB_ERR_MAGIC, _VERSION,
 * _PROTOCOL. On success: call obp_message_fini.
 */
enum ob_err obt_message_receive(
	struct obt_stream *stream, struct obp_message *ret, uint64_t deadline);

#endif
