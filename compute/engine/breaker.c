/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/engine/breaker.h"

void obv_breaker_init(struct obv_breaker *b, unsigned threshold, uint64_t pause_ns)
{
	*b = (struct obv_breaker){ .state = OUTBOARD_CLOSED,
		.threshold = threshold,
		.pause = pause_ns,
		.first_pause = pause_ns };
}

bool obv_breaker_ready(const struct obv_breaker *b, uint64_t now)
{
	return b->state == OUTBOARD_CLOSED || (b->state == OUTBOARD_OPEN && now >= b->until);
}

bool obv_breaker_begin(struct obv_breaker *b, uint64_t now, bool *ret_trial)
{
	*ret_trial = false;
	if (!obv_breaker_ready(b, now))
		return false;
	if (b->state == OUTBOARD_OPEN) {
		b->state = OUTBOARD_HALF_OPEN;
		*ret_trial = true;
	}
	return true;
}

void obv_breaker_success(struct obv_breaker *b)
{
	b->state = OUTBOARD_CLOSED;
	b->failures = 0;
	b->pause = b->first_pause;
}

bool obv_breaker_failure(struct obv_breaker *b, uint64_t now)
{
	b->failures++;
	if (b->state == OUTBOARD_HALF_OPEN)
		b->pause =
			b->pause >= OBV_BREAKER_LONGEST * b->first_pause ? b->pause : 2 * b->pause;
	else if (b->state == OUTBOARD_OPEN || b->failures < b->threshold)
		return false;
	b->state = OUTBOARD_OPEN;
	b->until = now + b->pause;
	b->opened++;
	return true;
}

uint64_t obv_backoff(unsigned attempt, uint64_t first_ns, uint64_t most_ns)
{
	uint64_t ns = first_ns;

	for (unsigned i = 1; i < attempt && ns < most_ns; i++)
		ns *= 2;
	return ns < most_ns ? ns : most_ns;
}
