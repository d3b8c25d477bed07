/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/compute/kernels/oracle.h"

static BN_CTX *ctx;
static EC_GROUP *group;

static BIGNUM *from_hex(const char *hex)
{
	BIGNUM *n = NULL;

	if (!BN_hex2bn(&n, hex))
		abort();
	return n;
}

static void start(void)
{
	BIGNUM *p, *a, *b, *r, *h, *x, *y;
	EC_POINT *g;

	if (group)
		return;
	ctx = BN_CTX_new();
	p = from_hex("1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153f"
		     "fffb9feffffffffaaab");
	a = from_hex("0");
	b = from_hex("4");
	r = from_hex("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001");
	h = from_hex("396c8c005555e1568c00aaab0000aaab");
	x = from_hex("17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1"
		     "aeffb3af00adb22c6bb");
	y = from_hex("08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888"
		     "ae40caa232946c5e7e1");
	group = EC_GROUP_new_curve_GFp(p, a, b, ctx);
	g = group ? EC_POINT_new(group) : NULL;
	if (!g || !EC_POINT_set_affine_coordinates(group, g, x, y, ctx) ||
		!EC_GROUP_set_generator(group, g, r, h))
		abort();
	EC_POINT_free(g);
	BN_free(p);
	BN_free(a);
	BN_free(b);
	BN_free(r);
	BN_free(h);
	BN_free(x);
	BN_free(y);
}

static EC_POINT *read_point(const uint8_t bytes[96])
{
	EC_POINT *p = EC_POINT_new(group);
	BIGNUM *x, *y;

	if (bytes[0] & 0x40) {
		EC_POINT_set_to_infinity(group, p);
		return p;
	}
	x = BN_bin2bn(bytes, 48, NULL);
	y = BN_bin2bn(bytes + 48, 48, NULL);
	if (!EC_POINT_set_affine_coordinates(group, p, x, y, ctx))
		abort();
	BN_free(x);
	BN_free(y);
	return p;
}

static void write_point(uint8_t bytes[96], const EC_POINT *p)
{
	BIGNUM *x = BN_new(), *y = BN_new();

	memset(bytes, 0, 96);
	if (EC_POINT_is_at_infinity(group, p)) {
		bytes[0] = 0x40;
	} else {
		if (!EC_POINT_get_affine_coordinates(group, p, x, y, ctx))
			abort();
		BN_bn2binpad(x, bytes, 48);
		BN_bn2binpad(y, bytes + 48, 48);
	}
	BN_free(x);
	BN_free(y);
}

void oracle_msm(uint8_t out[96], const uint8_t *points, const uint8_t *scalars, size_t n)
{
	EC_POINT *sum, *t;

	start();
	sum = EC_POINT_new(group);
	t = EC_POINT_new(group);
	EC_POINT_set_to_infinity(group, sum);
	for (size_t i = 0; i < n; i++) {
		EC_POINT *p = read_point(points + 96 * i);
		BIGNUM *k = BN_bin2bn(scalars + 32 * i, 32, NULL);

		if (!EC_POINT_mul(group, t, NULL, p, k, ctx) ||
			!EC_POINT_add(group, sum, sum, t, ctx))
			abort();
		EC_POINT_free(p);
		BN_free(k);
	}
	write_point(out, sum);
	EC_POINT_free(t);
	EC_POINT_free(sum);
}

void oracle_mul(uint8_t out[96], const uint8_t point[96], const uint8_t k[32])
{
	uint8_t generator[96];

	start();
	if (!point)
		write_point(generator, EC_GROUP_get0_generator(group));
	oracle_msm(out, point ? point : generator, k, 1);
}

void oracle_add(uint8_t out[96], const uint8_t p[96], const uint8_t q[96])
{
	EC_POINT *a, *b;

	start();
	a = read_point(p);
	b = read_point(q);
	if (!EC_POINT_add(group, a, a, b, ctx))
		abort();
	write_point(out, a);
	EC_POINT_free(a);
	EC_POINT_free(b);
}

static void modular(uint8_t *out, const uint8_t *a, const uint8_t *b, const uint8_t *m, size_t n)
{
	BIGNUM *x, *y, *z;

	start();
	x = BN_bin2bn(a, (int)n, NULL);
	y = b ? BN_bin2bn(b, (int)n, NULL) : NULL;
	z = BN_bin2bn(m, (int)n, NULL);
	if (!(y ? BN_mod_mul(x, x, y, z, ctx) : BN_mod_inverse(x, x, z, ctx) != NULL))
		abort();
	BN_bn2binpad(x, out, (int)n);
	BN_free(x);
	BN_free(y);
	BN_free(z);
}

void oracle_mul_mod(uint8_t *out, const uint8_t *a, const uint8_t *b, const uint8_t *m, size_t n)
{
	modular(out, a, b, m, n);
}

void oracle_inv_mod(uint8_t *out, const uint8_t *a, const uint8_t *m, size_t n)
{
	modular(out, a, NULL, m, n);
}

uint64_t oracle_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}
