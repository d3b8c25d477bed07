/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compression/chooser.h"

#include "base/check.h"
#include "base/clock.h"

/*
 * a codec that is slower than the link is tried again at every 8th sample, since its speed depends
 * on the data
 */
#define HOPELESS_EVERY 8u
/* longest time between two chunks that earns credit; after a longer one a new copy has begun */
#define PAUSE_NS       (20 * OB_MS)
#define CREDIT_MAX     0.01 /* seconds */
/* for the samples of the first chunks: a few milliseconds are much of a session's first copy */
#define CREDIT_FIRST   0.005
#define STEP_MAX       2.0 /* maximum factor by which one measurement raises a speed */
#define FACTOR_MAX     1.5 /* maximum ratio of the speed on whole chunks to that on samples */
#define WARM_BYTES     4096u
#define OTHERS_MAX     4.0
#define FAR            2.0
/* factor by which a chunk's ratio differs from the expected one, up or down */
#define SURPRISE       1.25

void obz_chooser_init(struct obz_chooser *chooser, unsigned allowed, enum obz_codec forced)
{
	*chooser = (struct obz_chooser){ .allowed = allowed & OBZ_ALL_CODECS,
		.forced = forced,
		.now = forced,
		.sample_credit = CREDIT_FIRST };
}

bool obz_chooser_due(struct obz_chooser *chooser, uint64_t now)
{
	uint64_t n = chooser->chunks++, passed = ob_min(now - chooser->last_ns, (uint64_t)PAUSE_NS);
	/* more samples at the beginning, so that a short copy over a slow link is packed too */
	bool early = n < OBZ_SAMPLE_EVERY && (n & (n + 1)) == 0;

	if (chooser->forced || !chooser->allowed)
		return false;
	chooser->sample_credit = ob_min(
		chooser->sample_credit + OBZ_SAMPLE_SHARE * 1e-9 * (double)passed, CREDIT_MAX);
	chooser->probe_credit =
		ob_min(chooser->probe_credit + OBZ_PROBE_SHARE * 1e-9 * (double)passed, CREDIT_MAX);
	chooser->last_ns = now;
	if (n == 0)
		return true;
	return (n % OBZ_SAMPLE_EVERY == 0 || early || chooser->surprised) &&
		chooser->sample_credit >= 0;
}

static double seconds_of(const struct obz_guess *guess, double rate)
{
	return ob_max(1 / guess->speed, 1 / (guess->ratio * rate));
}

enum obz_codec obz_choose(const struct obz_guess guess[OBZ_CODEC_COUNT], unsigned allowed,
	enum obz_codec now, double rate)
{
	enum obz_codec best = now;
	double shortest;

	if (rate <= 0)
		return OBZ_NONE;
	if (now != OBZ_NONE && (guess[now].ratio <= 0 || guess[now].speed <= 0))
		best = now = OBZ_NONE;
	shortest = OBZ_GAIN * (now == OBZ_NONE ? 1 / rate : seconds_of(&guess[now], rate));
	/*
	 * Changing from a codec to none needs no minimum gain: without a codec the peer has no
	 * work.
	 */
	if (now != OBZ_NONE && 1 / rate < shortest / OBZ_GAIN) {
		shortest = OBZ_GAIN / rate;
		best = OBZ_NONE;
	}
	for (unsigned i = 1; i < OBZ_CODEC_COUNT; i++) {
		double seconds;

		if (!(allowed & 1u << i) || i == now || guess[i].ratio <= 0 || guess[i].speed <= 0)
			continue;
		seconds = seconds_of(&guess[i], rate);
		if (seconds < shortest) {
			shortest = seconds;
			best = (enum obz_codec)i;
		}
	}
	return best;
}

/*
 * Updates a speed slowly downwards and quickly upwards: a measured speed is also low if the thread
 * was preempted. A codec that is slower than expected shows this soon after it is chosen.
 */
static double speed_blend(double old, double new)
{
	if (old <= 0)
		return new;
	return new < old ? (7 * old + new) / 8 : (old + ob_min(new, old * STEP_MAX)) / 2;
}

static double slow_blend(double old, double new, double most)
{
	new = ob_min(ob_max(new, 1 / most), most);
	return old > 0 ? (7 * old + new) / 8 : (1 + new) / 2;
}

/*
 * Bytes of both kinds of data add up on the wire, so packed sizes are averaged and not ratios. One
 * chunk counts a quarter: neighbouring chunks of a program file differ by a factor of two or three,
 * and what counts is the sum of them, since sockets buffer several.
 */
static double ratio_blend(double old, double new)
{
	return old > 0 ? 4 / (3 / old + 1 / new) : new;
}

static double ratio_of(size_t raw, size_t packed)
{
	return packed ? (double)raw / (double)packed : 1;
}

static double speed_of(size_t raw, uint64_t ns)
{
	return (double)raw * 1e9 / (double)ob_max(ns, (uint64_t)1);
}

/*
 * If one codec's ratio changes, the data has become easier or harder to compress: adjusts the
 * ratios of the other codecs in proportion, so that their order stays until the next sample.
 */
static void others_follow(struct obz_chooser *chooser, enum obz_codec codec, double old, double new)
{
	double by;

	if (old < 1.01 || new < 1.01)
		return;
	by = ob_min(ob_max((new - 1) / (old - 1), 1 / OTHERS_MAX), OTHERS_MAX);
	for (unsigned i = 1; i < OBZ_CODEC_COUNT; i++)
		if (i != codec && chooser->guess[i].ratio > 1)
			chooser->guess[i].ratio = 1 + (chooser->guess[i].ratio - 1) * by;
}

/*
 * Updates the guesses from samples of one chunk; `taken`: the set of codecs that were sampled.
 * Differences between chunks mostly affect all codecs alike, so all ratios first follow that of the
 * codec in use. The remaining difference counts half.
 */
static void samples_learn(struct obz_chooser *chooser, unsigned taken)
{
	enum obz_codec now = chooser->now;
	double ratio[OBZ_CODEC_COUNT];

	for (unsigned i = 1; i < OBZ_CODEC_COUNT; i++)
		ratio[i] = chooser->sampled[i].ratio > 1 && chooser->factor[i].ratio > 0
			? ob_max(chooser->sampled[i].ratio * chooser->factor[i].ratio, 1.0)
			: chooser->sampled[i].ratio;
	if (now != OBZ_NONE && taken & 1u << now) {
		others_follow(chooser, now, chooser->guess[now].ratio, ratio[now]);
		chooser->guess[now].ratio = ratio[now];
	}
	for (unsigned i = 1; i < OBZ_CODEC_COUNT; i++) {
		struct obz_guess *guess = &chooser->guess[i];
		bool far = ratio[i] > FAR * guess->ratio || guess->ratio > FAR * ratio[i];

		if (!(taken & 1u << i))
			continue;
		guess->speed = speed_blend(guess->speed,
			chooser->sampled[i].speed *
				(chooser->factor[i].speed > 0 ? chooser->factor[i].speed : 1));
		guess->ratio = guess->ratio <= 0 || far ? ratio[i] : (guess->ratio + ratio[i]) / 2;
	}
}

void obz_chooser_sample(struct obz_chooser *chooser, struct obz_work *work, const uint8_t *data,
	size_t size, void *scratch)
{
	size_t part = ob_min(size,
		chooser->rate > OBZ_FAST_RATE ? (size_t)OBZ_SAMPLE_FAST_BYTES
					      : (size_t)OBZ_SAMPLE_BYTES);
	bool all = chooser->samples % HOPELESS_EVERY == 0 || chooser->surprised;
	uint64_t began;
	/*
	 * Sample a different offset each time, since a chunk may begin with a table's header. The
	 * offset is a multiple of the widest number.
	 */
	size_t offset = (size - part) / 4 * (chooser->samples % 5) & ~(size_t)7;
	unsigned taken = 0;

	if (chooser->samples++ == 0)
		/*
		 * the first use of a codec allocates its tables: exclude that from the measured
		 * speed
		 */
		for (unsigned i = 1; i < OBZ_CODEC_COUNT; i++)
			if (chooser->allowed & 1u << i)
				obz_compress(work, (enum obz_codec)i, data,
					ob_min(size, (size_t)WARM_BYTES), scratch,
					OBZ_SAMPLE_BYTES);
	began = ob_clock_ns();
	for (unsigned i = 1; i < OBZ_CODEC_COUNT && chooser->rate > 0; i++) {
		struct obz_guess *guess = &chooser->guess[i];
		uint64_t begin;
		size_t packed;

		if (!(chooser->allowed & 1u << i) ||
			(!all && guess->speed > 0 && guess->speed * OBZ_GAIN < chooser->rate))
			continue;
		begin = ob_clock_ns();
		packed = obz_compress(work, (enum obz_codec)i, data + offset, part, scratch, part);
		chooser->sampled[i] = (struct obz_guess){ ratio_of(part, packed),
			speed_of(part, ob_clock_ns() - begin) };
		taken |= 1u << i;
	}
	samples_learn(chooser, taken);
	chooser->surprised = false;
	chooser->sample_credit -= 1e-9 * (double)(ob_clock_ns() - began);
	chooser->now = obz_choose(chooser->guess, chooser->allowed, chooser->now, chooser->rate);
}

enum obz_codec obz_chooser_pick(struct obz_chooser *chooser, size_t size)
{
	const struct obz_guess *guess = &chooser->guess[chooser->now];
	double cost;

	if (chooser->forced || chooser->now == OBZ_NONE || chooser->rate <= 0 ||
		guess->speed >= guess->ratio * chooser->rate)
		return chooser->now;
	/*
	 * The codec is slower than the link, so the measured rate is a lower bound: the link was
	 * not saturated. Its rate without a codec is unknown, so send a chunk raw if the credit
	 * allows it.
	 */
	cost = (double)size / chooser->rate;
	if (chooser->probe_credit < cost)
		return chooser->now;
	chooser->probe_credit -= cost;
	return OBZ_NONE;
}

void obz_chooser_learn(
	struct obz_chooser *chooser, enum obz_codec codec, size_t raw, size_t packed, uint64_t ns)
{
	struct obz_guess *guess = &chooser->guess[codec], *factor = &chooser->factor[codec];
	const struct obz_guess *sample = &chooser->sampled[codec];
	double ratio = ratio_of(raw, packed), speed = speed_of(raw, ns), mean;

	if (chooser->forced)
		return;
	mean = ratio_blend(guess->ratio, ratio);
	/* If the data differs from the samples, the next chunk is one. */
	if (ratio > SURPRISE * guess->ratio || guess->ratio > SURPRISE * ratio)
		chooser->surprised = true;
	else if (sample->ratio > 0 && packed)
		factor->ratio = slow_blend(factor->ratio, ratio / sample->ratio, 2);
	others_follow(chooser, codec, guess->ratio, mean);
	guess->ratio = mean;
	if (!packed)
		guess->ratio = 1;
	guess->speed = speed_blend(guess->speed, speed);
	if (sample->speed > 0)
		factor->speed = slow_blend(factor->speed, speed / sample->speed, FACTOR_MAX);
	chooser->now = obz_choose(chooser->guess, chooser->allowed, chooser->now, chooser->rate);
}

void obz_chooser_rate(struct obz_chooser *chooser, double rate)
{
	chooser->rate = rate;
	if (!chooser->forced)
		chooser->now = obz_choose(chooser->guess, chooser->allowed, chooser->now, rate);
}
