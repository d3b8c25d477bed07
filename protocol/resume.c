/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/resume.h"

#include "base/check.h"

void obp_quality_rtt(struct obp_quality *quality, uint64_t rtt_ns)
{
	uint64_t off =
		rtt_ns > quality->rtt_ns ? rtt_ns - quality->rtt_ns : quality->rtt_ns - rtt_ns;

	if (quality->samples++ == 0) {
		quality->rtt_ns = quality->min_ns = quality->max_ns = rtt_ns;
		quality->jitter_ns = rtt_ns / 2;
		return;
	}
	quality->jitter_ns = quality->jitter_ns - quality->jitter_ns / 4 + off / 4;
	quality->rtt_ns = quality->rtt_ns - quality->rtt_ns / 8 + rtt_ns / 8;
	quality->min_ns = ob_min(quality->min_ns, rtt_ns);
	quality->max_ns = ob_max(quality->max_ns, rtt_ns);
}

static void rate_sample(double *rate, uint64_t bytes, uint64_t ns)
{
	double now = (double)bytes * 1e9 / (double)ns;

	*rate = now > *rate ? now : *rate - (*rate - now) / 8;
}

void obp_quality_bytes(
	struct obp_quality *quality, uint64_t now_ns, uint64_t out_bytes, uint64_t in_bytes)
{
	if (quality->at_ns && now_ns > quality->at_ns) {
		uint64_t ns = now_ns - quality->at_ns;

		rate_sample(
			&quality->out_rate, out_bytes - ob_min(quality->out_bytes, out_bytes), ns);
		rate_sample(&quality->in_rate, in_bytes - ob_min(quality->in_bytes, in_bytes), ns);
	}
	quality->at_ns = now_ns;
	quality->out_bytes = out_bytes;
	quality->in_bytes = in_bytes;
}

uint64_t obp_quality_timeout(const struct obp_quality *quality, uint64_t max_ns)
{
	/*
	 * Pings share the link with copies, so jitter also covers the time that a ping waits behind
	 * queued data.
	 */
	uint64_t wait = 2 * quality->rtt_ns + 8 * quality->jitter_ns;

	return ob_min(ob_max(wait, (uint64_t)OBP_SILENCE_MIN_NS), max_ns);
}

void obp_backoff_init(struct obp_backoff *backoff, uint64_t seed)
{
	*backoff = (struct obp_backoff){ .random = seed | 1 };
}

uint64_t obp_backoff_next(struct obp_backoff *backoff)
{
	uint32_t doublings = ob_min(backoff->attempts, 16u);
	uint64_t whole;

	if (backoff->attempts++ == 0)
		return 0;
	whole = ob_min(
		(uint64_t)OBP_BACKOFF_FIRST_NS << (doublings - 1), (uint64_t)OBP_BACKOFF_MAX_NS);
	backoff->random ^= backoff->random << 13;
	backoff->random ^= backoff->random >> 7;
	backoff->random ^= backoff->random << 17;
	return whole / 2 + backoff->random % (whole / 2 + 1);
}

void obp_futile_made(struct obp_futile *futile, uint64_t now_ns)
{
	futile->made = now_ns;
}

bool obp_futile_broke(struct obp_futile *futile, uint64_t now_ns, uint64_t items, uint64_t bytes,
	uint64_t limit_ns)
{
	bool quick = futile->made && now_ns - futile->made < OBP_FUTILE_QUICK_NS;

	if (items != futile->items || !futile->since) {
		*futile = (struct obp_futile){ .since = now_ns, .items = items };
	} else if (bytes - futile->bytes >= OBP_FUTILE_BYTES) {
		/* The path carries data: the quick ends before this connection do not count. */
		futile->partial++;
		futile->dead = 0;
		futile->since = now_ns;
	} else if (quick) {
		futile->dead++;
	}
	futile->bytes = bytes;
	return futile->dead >= OBP_FUTILE_DEAD_MAX || futile->partial >= OBP_FUTILE_PARTIAL_MAX ||
		(futile->dead >= OBP_FUTILE_DEAD_MIN && now_ns - futile->since > limit_ns);
}

/*
 * Updates *since, the time since when `stuck` has been true continuously (0: it is false). True:
 * for at least limit_ns.
 */
static bool stuck_since(uint64_t *since, bool stuck, uint64_t now_ns, uint64_t limit_ns)
{
	if (!stuck)
		*since = 0;
	else if (*since == 0)
		*since = now_ns;
	return stuck && now_ns - *since >= limit_ns;
}

bool obp_stall_check(
	struct obp_stall *stall, const struct obp_progress *now, uint64_t now_ns, uint64_t limit_ns)
{
	const struct obp_progress *last = &stall->last;
	/*
	 * A thread waits for replies that the peer had sent before the last check, and no byte has
	 * arrived since.
	 */
	bool in = now->waiting && last->waiting && last->peer_sent > now->received &&
		last->bytes_in == now->bytes_in;
	/*
	 * The peer waits for records that were sent before the last check, and has received no byte
	 * since.
	 */
	bool out = now->peer_idle && last->peer_idle && last->sent > now->peer_received &&
		last->peer_bytes_in == now->peer_bytes_in;
	bool in_stuck = stuck_since(&stall->in_since, in, now_ns, limit_ns);
	bool out_stuck = stuck_since(&stall->out_since, out, now_ns, limit_ns);

	stall->last = *now;
	return in_stuck || out_stuck;
}
