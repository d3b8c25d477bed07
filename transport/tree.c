/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/tree.h"

#include <string.h>

#include "base/check.h"
#include "base/opt.h"

/*
 * The first 32 bits of the fractional parts of the cube roots of the first 64 primes, and of the
 * square roots of the first 8 (FIPS 180-4, 4.2.2 and 5.3.3).
 */
static const uint32_t round_constants[64] = {
	0x428a2f98,
	0x71374491,
	0xb5c0fbcf,
	0xe9b5dba5,
	0x3956c25b,
	0x59f111f1,
	0x923f82a4,
	0xab1c5ed5,
	0xd807aa98,
	0x12835b01,
	0x243185be,
	0x550c7dc3,
	0x72be5d74,
	0x80deb1fe,
	0x9bdc06a7,
	0xc19bf174,
	0xe49b69c1,
	0xefbe4786,
	0x0fc19dc6,
	0x240ca1cc,
	0x2de92c6f,
	0x4a7484aa,
	0x5cb0a9dc,
	0x76f988da,
	0x983e5152,
	0xa831c66d,
	0xb00327c8,
	0xbf597fc7,
	0xc6e00bf3,
	0xd5a79147,
	0x06ca6351,
	0x14292967,
	0x27b70a85,
	0x2e1b2138,
	0x4d2c6dfc,
	0x53380d13,
	0x650a7354,
	0x766a0abb,
	0x81c2c92e,
	0x92722c85,
	0xa2bfe8a1,
	0xa81a664b,
	0xc24b8b70,
	0xc76c51a3,
	0xd192e819,
	0xd6990624,
	0xf40e3585,
	0x106aa070,
	0x19a4c116,
	0x1e376c08,
	0x2748774c,
	0x34b0bcb5,
	0x391c0cb3,
	0x4ed8aa4a,
	0x5b9cca4f,
	0x682e6ff3,
	0x748f82ee,
	0x78a5636f,
	0x84c87814,
	0x8cc70208,
	0x90befffa,
	0xa4506ceb,
	0xbef9a3f7,
	0xc67178f2,
};
static const uint32_t initial_state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

struct lanes {
	_Alignas(64) uint32_t state[8][OBT_TREE_LANES];
};

#define ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))
#define ROUND(k, word)                                                                           \
	do {                                                                                     \
		t1 = h + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + ((e & f) ^ (~e & g)) + \
			(k) + (word);                                                            \
		t2 = (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) +                            \
			((a & b) ^ (a & c) ^ (b & c));                                           \
		h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;               \
	} while (0)

/*
 * One function for each width: WIDTH SIMD lanes of blocks * OBT_TREE_BLOCK bytes, from lane `first`
 * on. The arithmetic uses vector types of C.
 */
#define DEFINE_LANES(name, attribute, WIDTH)                                                      \
	attribute static void name(                                                               \
		struct lanes *lanes, unsigned first, const uint8_t *data, size_t blocks)          \
	{                                                                                         \
		typedef uint32_t vector __attribute__((vector_size(4 * (WIDTH)), aligned(4)));    \
		vector a, b, c, d, e, f, g, h, t1, t2, w[16];                                     \
		vector *state[8];                                                                 \
                                                                                                  \
		for (unsigned i = 0; i < 8; i++)                                                  \
			state[i] = (vector *)(void *)&lanes->state[i][first];                     \
		for (; blocks > 0; blocks--, data += OBT_TREE_BLOCK) {                            \
			a = *state[0], b = *state[1], c = *state[2], d = *state[3];               \
			e = *state[4], f = *state[5], g = *state[6], h = *state[7];               \
			_Pragma("GCC unroll 16") for (unsigned t = 0; t < 16; t++)                \
			{                                                                         \
				memcpy(&w[t], data + 4 * (OBT_TREE_LANES * t + first),            \
					sizeof w[t]);                                             \
				ROUND(round_constants[t], w[t]);                                  \
			}                                                                         \
			for (unsigned r = 16; r < 64; r += 16) {                                  \
				_Pragma("GCC unroll 16") for (unsigned t = 0; t < 16; t++)        \
				{                                                                 \
					vector before = w[(t + 1) % 16], last = w[(t + 14) % 16]; \
                                                                                                  \
					w[t] += w[(t + 9) % 16] +                                 \
						(ROTATE(before, 7) ^ ROTATE(before, 18) ^         \
							before >> 3) +                            \
						(ROTATE(last, 17) ^ ROTATE(last, 19) ^            \
							last >> 10);                              \
					ROUND(round_constants[r + t], w[t]);                      \
				}                                                                 \
			}                                                                         \
			*state[0] += a, *state[1] += b, *state[2] += c, *state[3] += d;           \
			*state[4] += e, *state[5] += f, *state[6] += g, *state[7] += h;           \
		}                                                                                 \
	}

DEFINE_LANES(lanes_plain, , 4)
#if defined(__x86_64__)
DEFINE_LANES(lanes_avx2, __attribute__((target("avx2"))), 8)
DEFINE_LANES(lanes_avx512, __attribute__((target("avx512f"))), 16)
#endif

static const struct {
	void (*run)(struct lanes *lanes, unsigned first, const uint8_t *data, size_t blocks);
	unsigned width;
} isas[OBT_TREE_ISAS] = {
	[OBT_TREE_PLAIN] = { lanes_plain, 4 },
#if defined(__x86_64__)
	[OBT_TREE_AVX2] = { lanes_avx2, 8 },
	[OBT_TREE_AVX512] = { lanes_avx512, 16 },
#endif
};

bool obt_tree_can(enum obt_tree_isa isa)
{
#if defined(__x86_64__)
	if (isa == OBT_TREE_AVX512)
		return __builtin_cpu_supports("avx512f");
	if (isa == OBT_TREE_AVX2)
		return __builtin_cpu_supports("avx2");
#endif
	return isa == OBT_TREE_PLAIN;
}

static void blocks_run(
	enum obt_tree_isa isa, struct lanes *lanes, const uint8_t *data, size_t blocks)
{
	for (unsigned first = 0; first < OBT_TREE_LANES; first += isas[isa].width)
		isas[isa].run(lanes, first, data, blocks);
}

void obt_tree_digest_by(
	enum obt_tree_isa isa, const void *data, size_t size, uint8_t ret_name[OBT_SHA256_BYTES])
{
	const uint8_t *p = data;
	size_t blocks = size / OBT_TREE_BLOCK, rest = size % OBT_TREE_BLOCK;
	uint8_t tail[OBT_TREE_BLOCK];
	struct {
		struct lanes lanes;
		uint64_t size, zero[7];
	} last = { .size = size };

	for (unsigned i = 0; i < 8; i++)
		for (unsigned k = 0; k < OBT_TREE_LANES; k++)
			last.lanes.state[i][k] = initial_state[i];
	blocks_run(isa, &last.lanes, p, blocks);
	if (rest) {
		memcpy(tail, p + blocks * OBT_TREE_BLOCK, rest);
		memset(tail + rest, 0, sizeof tail - rest);
		blocks_run(isa, &last.lanes, tail, 1);
	}
	obt_digest_sha256(&last, sizeof last.lanes + sizeof last.size, ret_name);
}

void obt_tree_digest(const void *data, size_t size, uint8_t ret_name[OBT_SHA256_BYTES])
{
	bool simd = ob_opt_on(OB_OPT_SIMD);

	if (simd && obt_tree_can(OBT_TREE_AVX512))
		obt_tree_digest_by(OBT_TREE_AVX512, data, size, ret_name);
	else
		obt_tree_digest_by(
			simd && obt_tree_can(OBT_TREE_AVX2) ? OBT_TREE_AVX2 : OBT_TREE_PLAIN, data,
			size, ret_name);
}
