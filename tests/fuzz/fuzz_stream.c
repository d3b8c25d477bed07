/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/fuzz/fuzz_stream.h"

#include <string.h>

#include "base/buf.h"
#include "base/check.h"

struct fuzz_wire fuzz_wire;

const struct obt_ops fuzz_stream_ops = { .name = "fuzz",
	.send = fuzz_stream_send,
	.recv = fuzz_stream_recv,
	.close = fuzz_stream_close };

void fuzz_wire_clear(void)
{
	fuzz_wire.size = fuzz_wire.at = 0;
}

void fuzz_wire_put(const void *data, size_t size)
{
	size_t n = ob_min(size, sizeof fuzz_wire.data - fuzz_wire.size);

	if (n)
		memcpy(fuzz_wire.data + fuzz_wire.size, data, n);
	fuzz_wire.size += n;
}

void fuzz_wire_put_frame(const struct obp_frame *frame, const void *payload, size_t size)
{
	static const uint8_t zeros[8];

	fuzz_wire_put(frame, sizeof *frame);
	fuzz_wire_put(payload, size);
	fuzz_wire_put(zeros, ob_round_up(size, 8) - size);
}

void fuzz_wire_put_message(const struct obp_message *message)
{
	struct ob_buf frame;

	ob_buf_init(&frame, sizeof(struct obp_frame) + OBP_CONTROL_MAX);
	if (obp_message_encode(message, &frame))
		fuzz_wire_put(frame.data, frame.size);
	ob_buf_fini(&frame);
}

ssize_t fuzz_stream_send(struct obt_stream *stream, const struct iovec *iov, int n, bool block)
{
	size_t total = 0;

	(void)stream;
	(void)block;
	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	return (ssize_t)total;
}

ssize_t fuzz_stream_recv(struct obt_stream *stream, void *data, size_t size, bool block)
{
	size_t n = ob_min(size, fuzz_wire.size - fuzz_wire.at);

	(void)stream;
	(void)block;
	memcpy(data, fuzz_wire.data + fuzz_wire.at, n);
	fuzz_wire.at += n;
	return (ssize_t)n;
}

void fuzz_stream_close(struct obt_stream *stream)
{
	(void)stream;
}
