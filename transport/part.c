/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/part.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"

/*
 * how often a thread that waits for its socket checks the gate; shutting the socket down wakes it
 * at once
 */
#define SLICE_MS 500

static double path_rate(void *stripe)
{
	struct obt_stripe *s = stripe;

	return obt_meter_rate(&s->meter, &s->stream, true);
}

void obt_stripe_init(struct obt_stripe *stripe, struct obt_gate *gate,
	const struct obt_stream *stream, unsigned codecs, unsigned request)
{
	*stripe = (struct obt_stripe){ .stream = *stream, .gate = gate, .codecs = codecs };
	obp_packer_init(
		&stripe->packer, codecs, request, obt_path_local(stream), path_rate, stripe);
}

void obt_stripe_fini(struct obt_stripe *stripe)
{
	obt_stream_close(&stripe->stream);
	obp_packer_fini(&stripe->packer);
	obp_unpacker_fini(&stripe->unpacker);
}

void obt_stripe_release(struct obt_stripe *stripe)
{
	obp_packer_release(&stripe->packer);
	obp_unpacker_release(&stripe->unpacker);
}

size_t obt_stripe_piece(const struct obt_stripe *stripe)
{
	return obp_packer_cuts(&stripe->packer) ? OBP_PACK_CHUNK : OBP_CHUNK_MAX;
}

static bool closed(const struct obt_stripe *stripe)
{
	return atomic_load_explicit(&stripe->gate->closed, memory_order_relaxed);
}

static void moved(struct obt_stripe *stripe, _Atomic uint64_t *counter, size_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
	atomic_store_explicit(&stripe->gate->moved, ob_clock_ns(), memory_order_relaxed);
}

/*
 * Waits for room to write, or bytes to read. False: broken, or the descriptor has been reused for
 * another file.
 */
static bool wait_for(struct obt_stripe *stripe, short events)
{
	struct pollfd pfd = { .fd = stripe->stream.fd, .events = events };

	return (poll(&pfd, 1, SLICE_MS) >= 0 || errno == EINTR) && obt_stream_ours(&stripe->stream);
}

static bool send_all(struct obt_stripe *stripe, struct iovec *iov, int n)
{
	int i = obt_iov_advance(iov, n, 0);

	while (i < n) {
		ssize_t done;

		if (closed(stripe))
			return false;
		done = stripe->stream.ops->send(&stripe->stream, iov + i, n - i, false);
		if (done < 0 && (errno != EAGAIN || !wait_for(stripe, POLLOUT)))
			return false;
		if (done <= 0)
			continue;
		moved(stripe, &stripe->gate->bytes_out, (size_t)done);
		i += obt_iov_advance(iov + i, n - i, (size_t)done);
	}
	return true;
}

static bool recv_all(struct obt_stripe *stripe, void *data, size_t size)
{
	uint8_t *p = data;

	while (size) {
		ssize_t done;

		if (closed(stripe))
			return false;
		done = stripe->stream.ops->recv(&stripe->stream, p, size, false);
		if (done == 0 || (done < 0 && (errno != EAGAIN || !wait_for(stripe, POLLIN))))
			return false;
		if (done < 0)
			continue;
		moved(stripe, &stripe->gate->bytes_in, (size_t)done);
		p += done;
		size -= (size_t)done;
	}
	return true;
}

bool obt_stripe_send(
	struct obt_stripe *stripe, uint64_t transfer, uint64_t offset, const void *data, uint32_t n)
{
	uint64_t zero = 0;
	struct obp_frame frame;
	struct iovec iov[3] = { { &frame, sizeof frame }, { (void *)(uintptr_t)data, n },
		{ &zero, (8 - n % 8) % 8 } };
	int count = iov[2].iov_len ? 3 : 2;

	obp_stripe_fill(&frame, OBP_FRAME_PART, transfer, offset, n);
	if (stripe->packer.on)
		count = obp_packer_frame(&stripe->packer, &frame, iov, count);
	return send_all(stripe, iov, count);
}

bool obt_stripe_say(struct obt_stripe *stripe, enum obp_frame_type type, uint64_t transfer)
{
	struct obp_frame frame;
	struct iovec iov = { &frame, sizeof frame };

	obp_stripe_fill(&frame, type, transfer, 0, 0);
	return send_all(stripe, &iov, 1);
}

bool obt_stripe_next(struct obt_stripe *stripe, struct obp_frame *ret)
{
	if (!recv_all(stripe, ret, sizeof *ret))
		return false;
	return !obp_stripe_check(ret, stripe->codecs, UINT64_MAX, &stripe->cause);
}

static bool take_packed(struct obt_stripe *stripe, const struct obp_frame *frame, void *dst)
{
	struct obp_unpacker *unpacker = &stripe->unpacker;

	if (obp_unpacker_begin(unpacker, frame) || !recv_all(stripe, unpacker->packed, frame->size))
		return false;
	if (obp_unpacker_finish(unpacker)) {
		ob_cause_set(&stripe->cause, OB_ERR_PROTOCOL,
			"a packed part does not unpack to the announced size");
		return false;
	}
	if (dst)
		memcpy(dst, unpacker->plain, frame->count);
	return true;
}

bool obt_stripe_take(struct obt_stripe *stripe, const struct obp_frame *frame, void *dst)
{
	uint8_t scrap[4096];
	size_t left = frame->size;

	if (frame->flags)
		return take_packed(stripe, frame, dst);
	if (dst && !recv_all(stripe, dst, frame->count))
		return false;
	for (left -= dst ? frame->count : 0; left; left -= ob_min(left, sizeof scrap))
		if (!recv_all(stripe, scrap, ob_min(left, sizeof scrap)))
			return false;
	return true;
}
