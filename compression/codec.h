/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Codecs behind one table: LZ4, zstd, and byte shuffle followed by zstd (named "planes" in
 * settings). Byte shuffle reorders arrays of numbers into all first bytes, all second bytes and so
 * on, because the exponents of neighbours resemble each other and their mantissas do not.
 *
 * Decompression accepts any input: the output must have exactly the size that the caller gives, and
 * a stream that would produce more or fewer bytes is reported as damaged. Compression writes no
 * byte beyond the given room. Functions without a work area have no state; a work area has one
 * owner at a time.
 */
#ifndef OBZ_CODEC_H
#define OBZ_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The values are on the wire and in files: they never change. */
enum obz_codec { OBZ_NONE = 0, OBZ_LZ4 = 1, OBZ_ZSTD = 2, OBZ_SHUFFLE = 3 };

#define OBZ_CODEC_COUNT 4u
/* a set of codecs has bit 1 << codec */
#define OBZ_ALL_CODECS  ((1u << OBZ_LZ4) | (1u << OBZ_ZSTD) | (1u << OBZ_SHUFFLE))
#define OBZ_SIZE_MAX    (64u << 20) /* bytes of one compressed piece, before and after */
#define OBZ_SHUFFLE_MAX 4u          /* bytes of the widest numbers that are shuffled */

/*
 * State that the codecs reuse from one piece to the next: their tables and a buffer for shuffled
 * bytes. Zero it to begin.
 */
struct obz_work {
	void *lz4, *zstd_in, *zstd_out;
	uint8_t *shuffled;
	size_t shuffled_size;
};

void obz_work_fini(struct obz_work *work);

/* "lz4"; NULL for an invalid value. */
const char *obz_codec_name(enum obz_codec codec);
/* False: no codec has this name. */
bool obz_codec_find(const char *name, enum obz_codec *ret);

/*
 * Returns the bytes written, or 0: the result does not fit into `capacity`, or out of memory. size
 * <= OBZ_SIZE_MAX.
 */
size_t obz_compress(struct obz_work *work, enum obz_codec codec, const void *src, size_t size,
	void *dst, size_t capacity);
/*
 * Decompresses to exactly dst_size bytes in dst. LZ4: one raw block; zstd: one or more frames.
 * OB_ERR_COMPRESSED, OB_ERR_NO_MEMORY. work may be NULL.
 */
enum ob_err obz_decompress_with(struct obz_work *work, enum obz_codec codec, const void *src,
	size_t src_size, void *dst, size_t dst_size);
enum ob_err obz_decompress(
	enum obz_codec codec, const void *src, size_t src_size, void *dst, size_t dst_size);

#endif
