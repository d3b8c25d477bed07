/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <endian.h>
#include <string.h>

#include "base/opt.h"
#include "base/sha256.h"

/* clang-format off */
static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};
/* clang-format on */

static inline uint32_t turn(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

/*
 * Round i + j of sixteen. The caller rotates the names instead of the values. w[j] becomes word i +
 * 16 + j of the schedule.
 */
#define ROUND(a, b, c, d, e, f, g, h, j)                                                           \
	do {                                                                                       \
		uint32_t t = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + \
			k[i + (j)] + w[j];                                                         \
		d += t;                                                                            \
		h = t + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) | (c & (a | b)));      \
		if (i < 48)                                                                        \
			w[j] += (turn(w[((j) + 1) & 15], 7) ^ turn(w[((j) + 1) & 15], 18) ^        \
					w[((j) + 1) & 15] >> 3) +                                  \
				w[((j) + 9) & 15] +                                                \
				(turn(w[((j) + 14) & 15], 17) ^ turn(w[((j) + 14) & 15], 19) ^     \
					w[((j) + 14) & 15] >> 10);                                 \
	} while (0)

static inline __attribute__((always_inline)) void blocks(
	uint32_t state[8], const uint8_t *data, size_t n)
{
	for (; n > 0; n--, data += 64) {
		uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4],
			 f = state[5], g = state[6], h = state[7], w[16];

		for (unsigned i = 0; i < 16; i++) {
			memcpy(&w[i], data + 4 * i, 4);
			w[i] = be32toh(w[i]);
		}
		for (unsigned i = 0; i < 64; i += 16) {
			ROUND(a, b, c, d, e, f, g, h, 0);
			ROUND(h, a, b, c, d, e, f, g, 1);
			ROUND(g, h, a, b, c, d, e, f, 2);
			ROUND(f, g, h, a, b, c, d, e, 3);
			ROUND(e, f, g, h, a, b, c, d, 4);
			ROUND(d, e, f, g, h, a, b, c, 5);
			ROUND(c, d, e, f, g, h, a, b, 6);
			ROUND(b, c, d, e, f, g, h, a, 7);
			ROUND(a, b, c, d, e, f, g, h, 8);
			ROUND(h, a, b, c, d, e, f, g, 9);
			ROUND(g, h, a, b, c, d, e, f, 10);
			ROUND(f, g, h, a, b, c, d, e, 11);
			ROUND(e, f, g, h, a, b, c, d, 12);
			ROUND(d, e, f, g, h, a, b, c, 13);
			ROUND(c, d, e, f, g, h, a, b, 14);
			ROUND(b, c, d, e, f, g, h, a, 15);
		}
		state[0] += a;
		state[1] += b;
		state[2] += c;
		state[3] += d;
		state[4] += e;
		state[5] += f;
		state[6] += g;
		state[7] += h;
	}
}

#if defined(__x86_64__)
/* uses rorx and andn: a fifth fewer instructions */
static __attribute__((target("bmi,bmi2"))) void blocks_bmi2(
	uint32_t state[8], const uint8_t *data, size_t n)
{
	blocks(state, data, n);
}
#endif

static void take_blocks(uint32_t state[8], const uint8_t *data, size_t n)
{
#if defined(__x86_64__)
	if (ob_opt_on(OB_OPT_SIMD) && __builtin_cpu_supports("bmi2") &&
		__builtin_cpu_supports("bmi")) {
		blocks_bmi2(state, data, n);
		return;
	}
#endif
	blocks(state, data, n);
}

void ob_sha256_init(struct ob_sha256 *s)
{
	static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->h, start, sizeof(start));
	s->length = 0;
}

void ob_sha256_update(struct ob_sha256 *s, const void *data, size_t n)
{
	const uint8_t *p = data;
	size_t used = s->length % 64;

	if (n == 0)
		return; /* data may be NULL */
	s->length += n;
	if (used) {
		size_t take = n < 64 - used ? n : 64 - used;

		memcpy(s->block + used, p, take);
		p += take;
		n -= take;
		if (used + take < 64)
			return;
		take_blocks(s->h, s->block, 1);
	}
	take_blocks(s->h, p, n / 64);
	if (n % 64)
		memcpy(s->block, p + n / 64 * 64, n % 64);
}

void ob_sha256_final(struct ob_sha256 *s, uint8_t out[OB_SHA256_BYTES])
{
	static const uint8_t pad[64] = { 0x80 };
	uint64_t bits = htobe64(s->length * 8);

	ob_sha256_update(s, pad, (119 - s->length % 64) % 64 + 1);
	ob_sha256_update(s, &bits, 8);
	for (unsigned i = 0; i < 8; i++) {
		uint32_t word = htobe32(s->h[i]);

		memcpy(out + 4 * i, &word, 4);
	}
}

/* One of the two hashes: of the key with each byte changed by `with`, then of the data. */
static void keyed(const uint8_t key[OB_SHA256_BLOCK], uint8_t with, const void *data, size_t n,
	uint8_t out[OB_SHA256_BYTES])
{
	uint8_t block[OB_SHA256_BLOCK];
	struct ob_sha256 s;

	for (unsigned i = 0; i < OB_SHA256_BLOCK; i++)
		block[i] = key[i] ^ with;
	ob_sha256_init(&s);
	ob_sha256_update(&s, block, sizeof(block));
	ob_sha256_update(&s, data, n);
	ob_sha256_final(&s, out);
	explicit_bzero(block, sizeof(block));
	explicit_bzero(&s, sizeof(s));
}

void ob_hmac_sha256(
	const void *key, size_t key_size, const void *data, size_t n, uint8_t out[OB_SHA256_BYTES])
{
	uint8_t whole[OB_SHA256_BLOCK] = { 0 }, inner[OB_SHA256_BYTES];
	struct ob_sha256 s;

	if (key_size > sizeof(whole)) {
		ob_sha256_init(&s);
		ob_sha256_update(&s, key, key_size);
		ob_sha256_final(&s, whole);
	} else if (key_size) {
		memcpy(whole, key, key_size);
	}
	keyed(whole, 0x36, data, n, inner);
	keyed(whole, 0x5c, inner, sizeof(inner), out);
	explicit_bzero(whole, sizeof(whole));
}
