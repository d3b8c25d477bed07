/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/message.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "transport/tls_inside.h"

enum ob_err obt_message_send(struct obt_stream *stream, const struct obp_message *message,
	const void *before, size_t before_size, uint64_t deadline)
{
	enum ob_err err = OB_ERR_NO_MEMORY;
	size_t clear = 0;
	struct ob_buf frame;

	/* The preface is always in clear; on a TLS stream all that follows is not. */
	if (stream->tls && !obt_tls_started(stream)) {
		err = before_size ? obt_tls_start(stream, before, before_size, deadline)
				  : OB_ERR_TLS;
		if (err)
			return err;
		clear = before_size;
		before_size = 0;
		err = OB_ERR_NO_MEMORY;
	}
	ob_buf_init(&frame, 2 * OBP_CONTROL_MAX);
	if (ob_buf_append(&frame, before, before_size) && obp_message_encode(message, &frame)) {
		struct iovec iov = { frame.data, frame.size };

		err = obt_stream_send_all(stream, &iov, 1, deadline);
	}
	ob_buf_fini(&frame);
	return !err && clear ? obt_tls_hand_on(stream, before, clear, deadline) : err;
}

enum ob_err obt_message_receive(
	struct obt_stream *stream, struct obp_message *ret, uint64_t deadline)
{
	OB_CLEANUP(ob_freep) uint8_t *map = NULL;
	struct obp_frame frame;
	enum ob_err err = obt_stream_recv_all(stream, &frame, sizeof frame, deadline);

	if (err)
		return err;
	if (frame.magic != OBP_MAGIC)
		return OB_ERR_MAGIC;
	if (frame.version != OBP_FRAME_VERSION)
		return OB_ERR_VERSION;
	if (frame.type != OBP_FRAME_CONTROL || frame.size > OBP_CONTROL_MAX || frame.size % 8 ||
		frame.raw_size > frame.size)
		return OB_ERR_PROTOCOL;
	map = malloc(frame.size + 1);
	if (!map)
		return OB_ERR_NO_MEMORY;
	err = obt_stream_recv_all(stream, map, frame.size, deadline);
	if (!err)
		err = obp_message_decode(map, frame.raw_size, ret);
	/* A server without TLS may send a refusal in clear, and nothing else. */
	if (!err && stream->ops == &obt_refusal_ops && ret->type != OBP_MSG_REFUSED) {
		obp_message_fini(ret);
		return OB_ERR_TLS;
	}
	return err;
}
