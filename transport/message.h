/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Whole control messages over a stream, before a deadline: what a hello is made of. One owner per
 * stream; blocks.
 */
#ifndef OBT_MESSAGE_H
#define OBT_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/control.h"
#include "transport/stream.h"

/*
 * `before` (may be NULL) goes out in the same write ahead of the message: the preface. On a TLS stream
 * that has not begun, the message is the first layer's and the session's own layer follows
 * (transport/tls.h). OB_ERR_CLOSED, _TIMEOUT, _IO, _NO_MEMORY.
 */
enum ob_err obt_message_send(struct obt_stream *stream, const struct obp_message *message,
	const void *before, size_t before_size, uint64_t deadline);
/*
 * One message. Nothing else may be under way on the stream. Also OB_ERR_MAGIC, _VERSION, _PROTOCOL.
 * On success: obp_message_fini.
 */
enum ob_err obt_message_receive(
	struct obt_stream *stream, struct obp_message *ret, uint64_t deadline);

#endif
