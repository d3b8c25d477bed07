/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compression/codec.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
/* for ZSTD_createCCtx_advanced; the library is linked statically */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "base/check.h"
#include "base/pages.h"
#include "compression/shuffle.h"

#define ZSTD_LEVEL 1
#define LZ4_SPEED  1 /* LZ4's "acceleration": 1 gives the best ratio */

/*
 * Format of the byte shuffle: this head, then the bytes of each plane, compressed if packed[k] is
 * less than the size of a plane, then the bytes after the last complete number. Little-endian.
 */
struct shuffle_head {
	uint32_t width;                   /* 2 or 4 */
	uint32_t packed[OBZ_SHUFFLE_MAX]; /* bytes of each plane as stored; unused: 0 */
};

void obz_work_fini(struct obz_work *work)
{
	free(work->lz4);
	ZSTD_freeCCtx(work->zstd_in);
	ZSTD_freeDCtx(work->zstd_out);
	if (work->shuffled)
		ob_pages_discard(work->shuffled, work->shuffled_size);
	free(work->shuffled);
	*work = (struct obz_work){ 0 };
}

/* ---- none ---- */

static size_t none_compress(
	struct obz_work *work, const uint8_t *src, size_t size, uint8_t *dst, size_t capacity)
{
	(void)work;
	if (size > capacity)
		return 0;
	if (size)
		memcpy(dst, src, size);
	return size;
}

static enum ob_err none_decompress(
	struct obz_work *work, const uint8_t *src, size_t src_size, uint8_t *dst, size_t dst_size)
{
	(void)work;
	if (src_size != dst_size)
		return OB_ERR_COMPRESSED;
	if (dst_size)
		memcpy(dst, src, dst_size);
	return OB_ERR_NONE;
}

/* ---- LZ4 ---- */

static size_t lz4_compress(
	struct obz_work *work, const uint8_t *src, size_t size, uint8_t *dst, size_t capacity)
{
	int n;

	if (!work->lz4 && !(work->lz4 = malloc((size_t)LZ4_sizeofState())))
		return 0;
	n = LZ4_compress_fast_extState(work->lz4, (const char *)src, (char *)dst, (int)size,
		(int)ob_min(capacity, (size_t)OBZ_SIZE_MAX), LZ4_SPEED);
	return n > 0 ? (size_t)n : 0;
}

static enum ob_err lz4_decompress(
	struct obz_work *work, const uint8_t *src, size_t src_size, uint8_t *dst, size_t dst_size)
{
	int n = LZ4_decompress_safe((const char *)src, (char *)dst, (int)src_size, (int)dst_size);

	(void)work;
	return n >= 0 && (size_t)n == dst_size ? OB_ERR_NONE : OB_ERR_COMPRESSED;
}

/* ---- zstd ---- */

static void *state_alloc(void *unused, size_t size)
{
	(void)unused;
	return ob_pages_alloc(size);
}

static void state_free(void *unused, void *p)
{
	(void)unused;
	ob_pages_free(p);
}

/* The state for compression takes about a megabyte, which must not stay with malloc. */
static ZSTD_CCtx *state_new(void)
{
	return ZSTD_createCCtx_advanced(
		(ZSTD_customMem){ .customAlloc = state_alloc, .customFree = state_free });
}

static size_t zstd_compress(
	struct obz_work *work, const uint8_t *src, size_t size, uint8_t *dst, size_t capacity)
{
	size_t n;

	if (!work->zstd_in && !(work->zstd_in = state_new()))
		return 0;
	n = ZSTD_compressCCtx(work->zstd_in, dst, capacity, src, size, ZSTD_LEVEL);
	return ZSTD_isError(n) ? 0 : n;
}

static enum ob_err zstd_decompress(
	struct obz_work *work, const uint8_t *src, size_t src_size, uint8_t *dst, size_t dst_size)
{
	size_t n;

	if (!work->zstd_out && !(work->zstd_out = ZSTD_createDCtx()))
		return OB_ERR_NO_MEMORY;
	n = ZSTD_decompressDCtx(work->zstd_out, dst, dst_size, src, src_size);
	return !ZSTD_isError(n) && n == dst_size ? OB_ERR_NONE : OB_ERR_COMPRESSED;
}

/* ---- planes ---- */

static bool shuffle_room(struct obz_work *work, size_t size)
{
	uint8_t *p;

	if (work->shuffled_size >= size)
		return true;
	p = realloc(work->shuffled, size);
	if (!p)
		return false;
	work->shuffled = p;
	work->shuffled_size = size;
	return true;
}

static size_t shuffle_compress(
	struct obz_work *work, const uint8_t *src, size_t size, uint8_t *dst, size_t capacity)
{
	struct shuffle_head head = { .width = obz_shuffle_guess(src, size) };
	size_t n = size / head.width, tail = size - n * head.width, at = sizeof head;

	if (n == 0 || capacity < sizeof head || !shuffle_room(work, size))
		return 0;
	obz_shuffle(src, n, head.width, work->shuffled);
	for (unsigned k = 0; k < head.width; k++) {
		const uint8_t *plane = work->shuffled + k * n;
		/*
		 * Store a plane that saves less than a sixteenth (mantissas, usually) raw:
		 * unpacking it would only cost the peer time.
		 */
		size_t packed =
			zstd_compress(work, plane, n, dst + at, ob_min(capacity - at, n - n / 16));

		if (packed == 0 && n <= capacity - at) {
			memcpy(dst + at, plane, n);
			packed = n;
		}
		if (packed == 0)
			return 0;
		head.packed[k] = (uint32_t)packed;
		at += packed;
	}
	if (tail > capacity - at)
		return 0;
	memcpy(dst + at, src + n * head.width, tail);
	memcpy(dst, &head, sizeof head);
	return at + tail;
}

static enum ob_err shuffle_decompress(
	struct obz_work *work, const uint8_t *src, size_t src_size, uint8_t *dst, size_t dst_size)
{
	struct shuffle_head head;
	size_t n, tail, at = sizeof head;
	enum ob_err err = OB_ERR_NONE;

	if (src_size < sizeof head)
		return OB_ERR_COMPRESSED;
	memcpy(&head, src, sizeof head);
	if (head.width != 2 && head.width != 4)
		return OB_ERR_COMPRESSED;
	n = dst_size / head.width;
	tail = dst_size - n * head.width;
	if (!shuffle_room(work, dst_size ? dst_size : 1))
		return OB_ERR_NO_MEMORY;
	for (unsigned k = 0; k < head.width && !err; k++) {
		if (head.packed[k] > src_size - at || head.packed[k] > n)
			return OB_ERR_COMPRESSED;
		if (head.packed[k] == n)
			err = none_decompress(work, src + at, n, work->shuffled + k * n, n);
		else
			err = zstd_decompress(
				work, src + at, head.packed[k], work->shuffled + k * n, n);
		at += head.packed[k];
	}
	if (err || src_size - at != tail)
		return err ? err : OB_ERR_COMPRESSED;
	obz_unshuffle(work->shuffled, n, head.width, dst);
	if (tail)
		memcpy(dst + dst_size - tail, src + at, tail);
	return OB_ERR_NONE;
}

/* ---- the table ---- */

static const struct {
	const char *name;
	size_t (*compress)(struct obz_work *work, const uint8_t *src, size_t size, uint8_t *dst,
		size_t capacity);
	enum ob_err (*decompress)(struct obz_work *work, const uint8_t *src, size_t src_size,
		uint8_t *dst, size_t dst_size);
} codecs[OBZ_CODEC_COUNT] = {
	[OBZ_NONE] = { "none", none_compress, none_decompress },
	[OBZ_LZ4] = { "lz4", lz4_compress, lz4_decompress },
	[OBZ_ZSTD] = { "zstd", zstd_compress, zstd_decompress },
	[OBZ_SHUFFLE] = { "planes", shuffle_compress, shuffle_decompress },
};

const char *obz_codec_name(enum obz_codec codec)
{
	return (unsigned)codec < OBZ_CODEC_COUNT ? codecs[codec].name : NULL;
}

bool obz_codec_find(const char *name, enum obz_codec *ret)
{
	for (unsigned i = 0; i < OBZ_CODEC_COUNT; i++)
		if (strcmp(name, codecs[i].name) == 0) {
			*ret = (enum obz_codec)i;
			return true;
		}
	return false;
}

size_t obz_compress(struct obz_work *work, enum obz_codec codec, const void *src, size_t size,
	void *dst, size_t capacity)
{
	if ((unsigned)codec >= OBZ_CODEC_COUNT || size > OBZ_SIZE_MAX)
		return 0;
	return codecs[codec].compress(work, src, size, dst, capacity);
}

enum ob_err obz_decompress_with(struct obz_work *work, enum obz_codec codec, const void *src,
	size_t src_size, void *dst, size_t dst_size)
{
	struct obz_work own = { 0 };
	enum ob_err err;

	if ((unsigned)codec >= OBZ_CODEC_COUNT || src_size > INT32_MAX || dst_size > INT32_MAX)
		return OB_ERR_COMPRESSED;
	err = codecs[codec].decompress(work ? work : &own, src, src_size, dst, dst_size);
	if (!work)
		obz_work_fini(&own);
	return err;
}

enum ob_err obz_decompress(
	enum obz_codec codec, const void *src, size_t src_size, void *dst, size_t dst_size)
{
	return obz_decompress_with(NULL, codec, src, src_size, dst, dst_size);
}
