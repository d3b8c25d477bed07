/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Chooses the codec, or none, that saves time for the bytes of one direction of one connection. The
 * choice depends on measurements only: one chunk in 16 is sampled, and each codec's ratio and speed
 * on the samples are kept. Together with the link's measured rate they give the time for one byte
 * from end to end:
 *
 *     raw      1 / rate
 *     a codec  max(1 / speed, 1 / (ratio * rate))     compression and sending overlap,
 *                                                     decompression is faster than either
 *
 * The choice changes when another one saves a twentieth of the time. The results of whole chunks
 * correct those of the samples. Samples, and chunks that are sent raw only to measure the capacity
 * of a link that is not saturated, together take a few hundredths of the time. One owner; no locks.
 */
#ifndef OBZ_CHOOSER_H
#define OBZ_CHOOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compression/codec.h"

#define OBZ_SAMPLE_EVERY      16u         /* chunks */
#define OBZ_SAMPLE_BYTES      (64u << 10) /* size of a sample on a slow link */
#define OBZ_SAMPLE_FAST_BYTES (16u << 10)
#define OBZ_FAST_RATE         500e6 /* bytes/s above which a sample must be short */
/*
 * another choice must take at most this fraction of the current one's time; a packed chunk must be
 * below this fraction of its raw size
 */
#define OBZ_GAIN              0.95
#define OBZ_SAMPLE_SHARE      0.02 /* of the time, for samples */
#define OBZ_PROBE_SHARE       0.03 /* of the time, for chunks that are sent raw */

struct obz_guess {
	double ratio; /* raw bytes per packed byte; 0: never tried */
	double speed; /* raw bytes/s of compression */
};

struct obz_chooser {
	unsigned allowed;      /* set of codecs */
	enum obz_codec forced; /* other than NONE: always use this one */
	enum obz_codec now;
	double rate; /* bytes/s of the link; 0: unknown, send raw */
	uint64_t chunks, samples;
	bool surprised;                     /* the last chunk's ratio differed from the samples' */
	uint64_t last_ns;                   /* when the last chunk was counted */
	double sample_credit, probe_credit; /* seconds */
	struct obz_guess guess[OBZ_CODEC_COUNT];
	/* the last sample; ratio and speed of whole chunks relative to samples, 0: unknown */
	struct obz_guess sampled[OBZ_CODEC_COUNT], factor[OBZ_CODEC_COUNT];
};

void obz_chooser_init(struct obz_chooser *chooser, unsigned allowed, enum obz_codec forced);
/*
 * Counts a chunk, at `now` ns. True: the caller must pass this one to obz_chooser_sample before it
 * is sent.
 */
bool obz_chooser_due(struct obz_chooser *chooser, uint64_t now);
/* Tries the codecs on a part of the chunk. scratch: OBZ_SAMPLE_BYTES bytes. */
void obz_chooser_sample(struct obz_chooser *chooser, struct obz_work *work, const uint8_t *data,
	size_t size, void *scratch);
/*
 * Returns the codec for these bytes: usually `now`; NONE when they are sent raw to measure the
 * link's capacity.
 */
enum obz_codec obz_chooser_pick(struct obz_chooser *chooser, size_t size);
/*
 * Reports the result of packing a whole chunk: packed bytes (0: not below OBZ_GAIN of the raw size)
 * after `ns`.
 */
void obz_chooser_learn(
	struct obz_chooser *chooser, enum obz_codec codec, size_t raw, size_t packed, uint64_t ns);
/* Sets the link's rate, bytes/s, 0: unknown, and makes the choice again. */
void obz_chooser_rate(struct obz_chooser *chooser, double rate);
/* The rule above as a pure function. */
enum obz_codec obz_choose(const struct obz_guess guess[OBZ_CODEC_COUNT], unsigned allowed,
	enum obz_codec now, double rate);

#endif
