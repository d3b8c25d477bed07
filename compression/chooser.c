/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compression/chooser.h"

#include "base/check.h"
#include "base/clock.h"

#define HOPELESS_EVERY 8u    /* samples after which a codec that is slower than the link is tried again: its speed depends on the data */

void obz_chooser_init(struct obz_chooser *chooser, unsigned allowed, enum obz_codec forced)
{
	*chooser = (struct obz_chooser){ .allowed = allowed & OBZ_ALL_CODECS, .forced = forced, .now = forced };
}

bool obz_chooser_due(struct obz_chooser *chooser)
{
	uint64_t n = chooser->chunks++;

	/* The first chunks more often, so that a short copy over a slow link gains too. */
	return !chooser->forced && chooser->allowed && (n % OBZ_SAMPLE_EVERY == 0 || (n < OBZ_SAMPLE_EVERY && (n & (n + 1)) == 0));
}

enum obz_codec obz_choose(const struct obz_guess guess[OBZ_CODEC_COUNT], unsigned allowed, double rate)
{
	enum obz_codec best = OBZ_NONE;
	double shortest;

	if (rate <= 0)
		return OBZ_NONE;
	shortest = OBZ_GAIN / rate;
	for (unsigned i = 1; i < OBZ_CODEC_COUNT; i++) {
		double seconds;

		if (!(allowed & 1u << i) || guess[i].ratio <= 0 || guess[i].speed <= 0)
			continue;
		seconds = ob_max(1 / guess[i].speed, 1 / (guess[i].ratio * rate));
		if (seconds < shortest) {
			shortest = seconds;
			best = (enum obz_codec)i;
		}
	}
	return best;
}

static double blend(double old, double new)
{
	return old > 0 ? (old + new) / 2 : new;
}

static void note(struct obz_guess *guess, size_t raw, size_t packed, uint64_t ns)
{
	guess->ratio = blend(guess->ratio, packed ? (double)raw / (double)packed : 1);
	guess->speed = blend(guess->speed, (double)raw * 1e9 / (double)ob_max(ns, (uint64_t)1));
}

void obz_chooser_sample(struct obz_chooser *chooser, struct obz_work *work, const uint8_t *data, size_t size, double rate, void *scratch)
{
	size_t part = ob_min(size, rate > OBZ_FAST_RATE ? (size_t)OBZ_SAMPLE_FAST_BYTES : (size_t)OBZ_SAMPLE_BYTES), offset;
	bool all = chooser->samples++ % HOPELESS_EVERY == 0;

	chooser->rate = rate;
	/* Another place each time: a chunk's beginning may be a table's head. A multiple of the widest number. */
	offset = (size - part) / 4 * (chooser->samples % 5) & ~(size_t)7;
	for (unsigned i = 1; i < OBZ_CODEC_COUNT && rate > 0; i++) {
		struct obz_guess *guess = &chooser->guess[i];
		uint64_t begin;
		size_t packed;

		if (!(chooser->allowed & 1u << i) || (!all && guess->speed > 0 && guess->speed * OBZ_GAIN < rate))
			continue;
		begin = ob_clock_ns();
		packed = obz_compress(work, (enum obz_codec)i, data + offset, part, scratch, part);
		note(guess, part, packed, ob_clock_ns() - begin);
	}
	chooser->now = obz_choose(chooser->guess, chooser->allowed, rate);
}

void obz_chooser_learn(struct obz_chooser *chooser, enum obz_codec codec, size_t raw, size_t packed, uint64_t ns)
{
	struct obz_guess *guess = &chooser->guess[codec];

	if (chooser->forced)
		return;
	note(guess, raw, packed, ns);
	if (!packed)
		guess->ratio = 1; /* other bytes than those that were sampled: at once, not by and by */
	chooser->now = obz_choose(chooser->guess, chooser->allowed, chooser->rate);
}
