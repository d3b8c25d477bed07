/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Raw bytes received on a stripe: headers and parts, plain and packed, into a buffer as large as
 * the largest part.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/fuzz/fuzz.h"
#include "transport/part.h"

static const uint8_t *bytes;
static size_t left;

static ssize_t give(struct obt_stream *stream, void *data, size_t size, bool block)
{
	size_t n = ob_min(size, left);

	(void)stream;
	(void)block;
	memcpy(data, bytes, n);
	bytes += n;
	left -= n;
	return (ssize_t)n;
}

static ssize_t refuse(struct obt_stream *stream, const struct iovec *iov, int n, bool block)
{
	(void)stream;
	(void)iov;
	(void)n;
	(void)block;
	errno = EPIPE;
	return -1;
}

static void forget(struct obt_stream *stream)
{
	stream->fd = -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct obt_ops ops = {
		.name = "bytes", .send = refuse, .recv = give, .close = forget
	};
	const struct obt_stream stream = { .ops = &ops, .fd = -1 };
	uint8_t *buffer = malloc(OBP_CHUNK_MAX);
	struct obt_gate gate = { 0 };
	struct obt_stripe stripe;
	struct obp_frame frame;

	bytes = data;
	left = size;
	obt_stripe_init(&stripe, &gate, &stream, OBZ_ALL_CODECS, 0);
	while (buffer && obt_stripe_next(&stripe, &frame))
		if (frame.type == OBP_FRAME_PART &&
			!obt_stripe_take(&stripe, &frame, frame.time_ns & 1 ? buffer : NULL))
			break;
	obt_stripe_fini(&stripe);
	free(buffer);
	return 0;
}
