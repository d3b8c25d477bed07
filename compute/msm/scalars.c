/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <endian.h>
#include <string.h>

#include "compute/msm/scalars.h"

__extension__ typedef unsigned __int128 u128;

/* lambda = x^2 - 1, a root of l^2 + l + 1 modulo r */
static const uint64_t lambda[2] = { 0x00000000ffffffff, 0xac45a4010001a402 };
/* floor(2^256 / lambda) - 2^128 */
static const uint64_t inverse[2] = { 0x63f6e522f6cfee30, 0x7c6becf1e01faadd };

void obk_scalar_read(uint64_t plain[4], const void *scalar, enum obk_scalar_format format)
{
	if (format == OBK_SCALAR_MONT) {
		struct obk_fr k;

		memcpy(&k, scalar, sizeof(k));
		obk_fr_to_plain(plain, &k);
		return;
	}
	memcpy(plain, scalar, OBK_SCALAR_BYTES);
	if (format == OBK_SCALAR_LE) {
		for (unsigned i = 0; i < 4; i++)
			plain[i] = le64toh(plain[i]);
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		uint64_t t = be64toh(plain[i]);

		plain[i] = be64toh(plain[3 - i]);
		plain[3 - i] = t;
	}
}

static void subtract(uint64_t *r, const uint64_t *a, const uint64_t *b, unsigned limbs)
{
	uint64_t borrow = 0;

	for (unsigned i = 0; i < limbs; i++) {
		u128 d = (u128)a[i] - b[i] - borrow;

		r[i] = (uint64_t)d;
		borrow = (uint64_t)(d >> 64) & 1;
	}
}

void obk_scalar_reduce(uint64_t plain[4])
{
	while (!obk_fr_plain_is_canonical(plain))
		subtract(plain, plain, obk_fr_modulus.l, 4);
}

static bool above(const uint64_t *a, const uint64_t *b, unsigned limbs)
{
	for (unsigned i = limbs; i-- > 0;) {
		if (a[i] != b[i])
			return a[i] > b[i];
	}
	return false;
}

/* floor(k / lambda) or up to two less: (k >> 64) (2^128 + inverse) >> 192. */
static void quotient(uint64_t q[2], const uint64_t k[4])
{
	uint64_t t[5] = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		uint64_t carry = 0;

		for (unsigned j = 0; j < 3; j++) {
			u128 s = (u128)k[j + 1] * inverse[i] + t[i + j] + carry;

			t[i + j] = (uint64_t)s;
			carry = (uint64_t)(s >> 64);
		}
		t[i + 3] = carry;
	}
	{
		u128 s = (u128)t[2] + k[1];

		s = (s >> 64) + t[3] + k[2];
		q[0] = (uint64_t)s;
		q[1] = (uint64_t)(s >> 64) + t[4] + k[3];
	}
}

void obk_scalar_split(struct obk_half *k1, struct obk_half *k2, const uint64_t k[4])
{
	static const uint64_t half_r[4] = { 0x7fffffff80000000, 0xa9ded2017fff2dff,
		0x199cec0404d0ec02, 0x39f6d3a994cebea4 };
	static const uint64_t half_lambda[3] = { 0x000000007fffffff, 0x5622d2008000d201, 0 };
	static const uint64_t lambda3[3] = { 0x00000000ffffffff, 0xac45a4010001a402, 0 };
	uint64_t a[4], q[2], rest[3], sign = 0, sign1;
	u128 s;

	memcpy(a, k, sizeof(a));
	if (above(a, half_r, 4)) { /* -(r - k) */
		subtract(a, obk_fr_modulus.l, a, 4);
		sign = OBK_HALF_SIGN;
	}
	quotient(q, a);
	/* rest = a - q lambda has at most 130 bits, so three limbs are enough */
	s = (u128)q[0] * lambda[0];
	rest[0] = (uint64_t)s;
	s >>= 64;
	rest[2] = (uint64_t)(((u128)q[0] * lambda[1]) >> 64) +
		(uint64_t)(((u128)q[1] * lambda[0]) >> 64) + q[1] * lambda[1];
	s += q[0] * lambda[1];
	s += q[1] * lambda[0];
	rest[1] = (uint64_t)s;
	rest[2] += (uint64_t)(s >> 64);
	subtract(rest, a, rest, 3);
	while (!above(lambda3, rest, 3)) {
		subtract(rest, rest, lambda3, 3);
		q[1] += ++q[0] == 0;
	}
	sign1 = sign;
	if (above(rest, half_lambda, 3)) { /* round to the nearer multiple of lambda */
		subtract(rest, lambda3, rest, 3);
		q[1] += ++q[0] == 0;
		sign1 ^= OBK_HALF_SIGN;
	}
	*k1 = (struct obk_half){ { rest[0], rest[1] | sign1 } };
	*k2 = (struct obk_half){ { q[0], q[1] | sign } };
}
