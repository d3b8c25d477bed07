/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/refuse.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "transport/tls.h"

void obs_message_send(
	struct obt_stream *stream, enum obp_message_type type, enum ob_err code, const char *text)
{
	struct ob_buf frame;
	struct obp_message *message OB_CLEANUP(ob_freep) = calloc(1, sizeof *message);

	if (!message || (stream->tls && !obt_tls_started(stream)))
		return;
	message->type = type;
	message->code = (uint32_t)code;
	snprintf(message->text, sizeof message->text, "%s", text);
	ob_buf_init(&frame, sizeof(struct obp_frame) + OBP_CONTROL_MAX);
	if (obp_message_encode(message, &frame)) {
		struct iovec iov = { frame.data, frame.size };
		ssize_t sent = stream->ops->send(stream, &iov, 1, false);

		(void)sent; /* a client that does not read loses the message */
	}
	ob_buf_fini(&frame);
}

void obs_refuse_stream(struct obt_stream *stream, enum ob_err code, const char *text)
{
	obs_message_send(stream, OBP_MSG_REFUSED, code, text);
}

void obs_refuse_send(int fd, enum ob_err code, const char *text)
{
	struct obt_stream stream = { .ops = &obt_socket_ops, .fd = fd };

	obs_message_send(&stream, OBP_MSG_REFUSED, code, text);
}
