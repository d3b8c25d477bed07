/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/refuse.h"

#include <stdio.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"

void obs_message_send(int fd, enum obp_message_type type, enum ob_err code, const char *text)
{
	struct ob_buf frame;
	struct obp_message *message OB_CLEANUP(ob_freep) = calloc(1, sizeof *message);

	if (!message)
		return;
	message->type = type;
	message->code = (uint32_t)code;
	snprintf(message->text, sizeof message->text, "%s", text);
	ob_buf_init(&frame, sizeof(struct obp_frame) + OBP_CONTROL_MAX);
	if (obp_message_encode(message, &frame)) {
		ssize_t sent = send(fd, frame.data, frame.size, MSG_DONTWAIT | MSG_NOSIGNAL);

		(void)sent; /* a client that does not read does not learn why */
	}
	ob_buf_fini(&frame);
}

void obs_refuse_send(int fd, enum ob_err code, const char *text)
{
	obs_message_send(fd, OBP_MSG_REFUSED, code, text);
}
