/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Which codec pays for the bytes of one direction of one connection, or none. Nothing is believed
 * in advance: one chunk in 16 is sampled, each codec's ratio and speed on it are kept, and beside
 * the link's measured rate they say how long a byte takes from end to end:
 *
 *     raw      1 / rate
 *     a codec  max(1 / speed, 1 / (ratio * rate))     compression and sending overlap,
 *                                                     decompression is faster than either
 *
 * What goes on changes when something else saves a twentieth of the time. Whole chunks tell how far
 * samples can be believed. Samples, and chunks that go raw only to find out what a link with time
 * to spare could take, together cost a few hundredths of the time. One owner; no locks.
 */
#ifndef OBZ_CHOOSER_H
#define OBZ_CHOOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compression/codec.h"

#define OBZ_SAMPLE_EVERY      16u         /* chunks */
#define OBZ_SAMPLE_BYTES      (64u << 10) /* of a chunk that is sampled, on a slow link */
#define OBZ_SAMPLE_FAST_BYTES (16u << 10)
#define OBZ_FAST_RATE         500e6 /* bytes/s above which a sample must be short */
/*
 * of the time of what goes on now that another choice may take at most; also the size a chunk must
 * come below
 */
#define OBZ_GAIN              0.95
#define OBZ_SAMPLE_SHARE      0.02 /* of the time, for samples */
#define OBZ_PROBE_SHARE       0.03 /* of the time, for chunks that go raw */

struct obz_guess {
	double ratio; /* raw bytes for one packed byte; 0: never tried */
	double speed; /* raw bytes/s of compression */
};

struct obz_chooser {
	unsigned allowed;      /* set of codecs */
	enum obz_codec forced; /* not NONE: always this one */
	enum obz_codec now;
	double rate; /* bytes/s of the link; 0: not known, so raw */
	uint64_t chunks, samples;
	bool surprised;                     /* the last chunk was not what samples had said */
	uint64_t last_ns;                   /* when the last chunk was counted */
	double sample_credit, probe_credit; /* seconds */
	struct obz_guess guess[OBZ_CODEC_COUNT];
	/* the last sample as it was; whole chunks over samples, 0: not known */
	struct obz_guess sampled[OBZ_CODEC_COUNT], factor[OBZ_CODEC_COUNT];
};

void obz_chooser_init(struct obz_chooser *chooser, unsigned allowed, enum obz_codec forced);
/*
 * Counts a chunk, at `now` ns; true when this one is to be shown to obz_chooser_sample before it is
 * sent.
 */
bool obz_chooser_due(struct obz_chooser *chooser, uint64_t now);
/* Tries the codecs on a part of the chunk. scratch: OBZ_SAMPLE_BYTES. */
void obz_chooser_sample(struct obz_chooser *chooser, struct obz_work *work, const uint8_t *data,
	size_t size, void *scratch);
/* What to send these bytes with: usually `now`; NONE when the link is to show what it can take. */
enum obz_codec obz_chooser_pick(struct obz_chooser *chooser, size_t size);
/*
 * What became of a whole chunk: packed bytes (0: it did not come below OBZ_GAIN) after so many ns.
 */
void obz_chooser_learn(
	struct obz_chooser *chooser, enum obz_codec codec, size_t raw, size_t packed, uint64_t ns);
/* The link's rate, bytes/s, 0 unknown: what is chosen follows it. */
void obz_chooser_rate(struct obz_chooser *chooser, double rate);
/* The rule above by itself. */
enum obz_codec obz_choose(const struct obz_guess guess[OBZ_CODEC_COUNT], unsigned allowed,
	enum obz_codec now, double rate);

#endif
