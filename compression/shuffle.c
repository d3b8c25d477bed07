/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compression/shuffle.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define GUESS_BYTES 4096u

#ifdef __SSE2__
/* Processes 16 numbers at a time; returns how many were processed. */
static size_t split2(const uint8_t *src, size_t n, uint8_t *dst)
{
	const __m128i low = _mm_set1_epi16(0xff);
	size_t i = 0;

	for (; i + 16 <= n; i += 16) {
		__m128i a = _mm_loadu_si128((const __m128i *)(src + 2 * i)),
			b = _mm_loadu_si128((const __m128i *)(src + 2 * i + 16));

		_mm_storeu_si128((__m128i *)(dst + i),
			_mm_packus_epi16(_mm_and_si128(a, low), _mm_and_si128(b, low)));
		_mm_storeu_si128((__m128i *)(dst + n + i),
			_mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8)));
	}
	return i;
}

static size_t split4(const uint8_t *src, size_t n, uint8_t *dst)
{
	const __m128i low = _mm_set1_epi16(0xff);
	size_t i = 0;

	for (; i + 16 <= n; i += 16) {
		__m128i v[4], even[2], odd[2];

		for (int k = 0; k < 4; k++)
			v[k] = _mm_loadu_si128((const __m128i *)(src + 4 * i + 16 * k));
		for (int k = 0; k < 2; k++) { /* bytes 0 and 2 of each number; bytes 1 and 3 */
			even[k] = _mm_packus_epi16(
				_mm_and_si128(v[2 * k], low), _mm_and_si128(v[2 * k + 1], low));
			odd[k] = _mm_packus_epi16(
				_mm_srli_epi16(v[2 * k], 8), _mm_srli_epi16(v[2 * k + 1], 8));
		}
		_mm_storeu_si128((__m128i *)(dst + i),
			_mm_packus_epi16(_mm_and_si128(even[0], low), _mm_and_si128(even[1], low)));
		_mm_storeu_si128((__m128i *)(dst + n + i),
			_mm_packus_epi16(_mm_and_si128(odd[0], low), _mm_and_si128(odd[1], low)));
		_mm_storeu_si128((__m128i *)(dst + 2 * n + i),
			_mm_packus_epi16(_mm_srli_epi16(even[0], 8), _mm_srli_epi16(even[1], 8)));
		_mm_storeu_si128((__m128i *)(dst + 3 * n + i),
			_mm_packus_epi16(_mm_srli_epi16(odd[0], 8), _mm_srli_epi16(odd[1], 8)));
	}
	return i;
}

static size_t join2(const uint8_t *src, size_t n, uint8_t *dst)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16) {
		__m128i a = _mm_loadu_si128((const __m128i *)(src + i)),
			b = _mm_loadu_si128((const __m128i *)(src + n + i));

		_mm_storeu_si128((__m128i *)(dst + 2 * i), _mm_unpacklo_epi8(a, b));
		_mm_storeu_si128((__m128i *)(dst + 2 * i + 16), _mm_unpackhi_epi8(a, b));
	}
	return i;
}

static size_t join4(const uint8_t *src, size_t n, uint8_t *dst)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16) {
		__m128i a = _mm_loadu_si128((const __m128i *)(src + i)),
			b = _mm_loadu_si128((const __m128i *)(src + n + i));
		__m128i c = _mm_loadu_si128((const __m128i *)(src + 2 * n + i)),
			d = _mm_loadu_si128((const __m128i *)(src + 3 * n + i));
		__m128i ab[2] = { _mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b) },
			cd[2] = { _mm_unpacklo_epi8(c, d), _mm_unpackhi_epi8(c, d) };

		for (int k = 0; k < 2; k++) {
			_mm_storeu_si128((__m128i *)(dst + 4 * i + 32 * k),
				_mm_unpacklo_epi16(ab[k], cd[k]));
			_mm_storeu_si128((__m128i *)(dst + 4 * i + 32 * k + 16),
				_mm_unpackhi_epi16(ab[k], cd[k]));
		}
	}
	return i;
}
#else
#define split2(src, n, dst) ((size_t)0)
#define split4(src, n, dst) ((size_t)0)
#define join2(src, n, dst)  ((size_t)0)
#define join4(src, n, dst)  ((size_t)0)
#endif

void obz_shuffle(const uint8_t *src, size_t n, unsigned width, uint8_t *dst)
{
	for (size_t i = width == 4 ? split4(src, n, dst) : split2(src, n, dst); i < n; i++)
		for (unsigned k = 0; k < width; k++)
			dst[k * n + i] = src[i * width + k];
}

void obz_unshuffle(const uint8_t *src, size_t n, unsigned width, uint8_t *dst)
{
	for (size_t i = width == 4 ? join4(src, n, dst) : join2(src, n, dst); i < n; i++)
		for (unsigned k = 0; k < width; k++)
			dst[i * width + k] = src[k * n + i];
}

/*
 * Number of pairs of equal bytes in each plane, summed over the planes and scaled to the number of
 * bytes: larger means more compressible.
 */
static uint64_t likeness(const uint8_t *src, size_t size, unsigned width)
{
	uint64_t sum = 0;

	for (unsigned k = 0; k < width; k++) {
		uint32_t count[256] = { 0 };
		uint64_t squares = 0;

		for (size_t i = k; i < size; i += width)
			count[src[i]]++;
		for (unsigned b = 0; b < 256; b++)
			squares += (uint64_t)count[b] * (count[b] - (count[b] != 0));
		/* `squares` of a plane of size / width bytes is at most (size / width)^2 */
		sum += squares * width;
	}
	return sum;
}

unsigned obz_shuffle_guess(const uint8_t *src, size_t size)
{
	size_t n = size < GUESS_BYTES ? size & ~(size_t)3 : GUESS_BYTES;

	if (n < 64)
		return 4;
	/*
	 * For 2-byte numbers four planes are as good as two, so choose 4 only for a gain of more
	 * than an eighth.
	 */
	return likeness(src, n, 4) * 8 > likeness(src, n, 2) * 9 ? 4 : 2;
}
