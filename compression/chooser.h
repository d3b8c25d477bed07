/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Which codec pays for the bytes of one direction of one connection, or none. Nothing is believed in advance: one chunk in 16 is sampled, each codec's
 * ratio and speed on it are kept, and beside the link's measured rate they say how long a byte takes from end to end:
 *
 *     raw      1 / rate
 *     a codec  max(1 / speed, 1 / (ratio * rate))     compression and sending overlap, decompression is faster than either
 *
 * A codec is chosen when it saves at least a tenth of raw's time. One owner; no locks.
 */
#ifndef OBZ_CHOOSER_H
#define OBZ_CHOOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compression/codec.h"

#define OBZ_SAMPLE_EVERY 16u            /* chunks */
#define OBZ_SAMPLE_BYTES (64u << 10)    /* of a chunk that is sampled, on a slow link */
#define OBZ_SAMPLE_FAST_BYTES (16u << 10)
#define OBZ_FAST_RATE 500e6             /* bytes/s above which a sample must be short */
#define OBZ_GAIN 0.9                    /* of raw's time that a codec may take at most to be chosen; also the size it must come below */

struct obz_guess {
	double ratio;           /* raw bytes for one packed byte; 0: never tried */
	double speed;           /* raw bytes/s of compression */
};

struct obz_chooser {
	unsigned allowed;       /* set of codecs */
	enum obz_codec forced;  /* not NONE: always this one */
	enum obz_codec now;
	double rate;            /* bytes/s of the link; 0: not known, so raw */
	uint64_t chunks, samples;
	struct obz_guess guess[OBZ_CODEC_COUNT];
};

void obz_chooser_init(struct obz_chooser *chooser, unsigned allowed, enum obz_codec forced);
/* Counts a chunk; true when this one is to be shown to obz_chooser_sample before it is sent. */
bool obz_chooser_due(struct obz_chooser *chooser);
/* Tries the codecs on a part of the chunk. rate: bytes/s of the link as measured, 0 unknown. scratch: OBZ_SAMPLE_BYTES. */
void obz_chooser_sample(struct obz_chooser *chooser, struct obz_work *work, const uint8_t *data, size_t size, double rate, void *scratch);
/* What became of a whole chunk: packed bytes (0: it did not come below OBZ_GAIN) after so many ns. */
void obz_chooser_learn(struct obz_chooser *chooser, enum obz_codec codec, size_t raw, size_t packed, uint64_t ns);
/* The rule above by itself. */
enum obz_codec obz_choose(const struct obz_guess guess[OBZ_CODEC_COUNT], unsigned allowed, double rate);

#endif
