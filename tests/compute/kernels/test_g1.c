/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/curve/g1.h"
#include "tests/compute/kernels/oracle.h"
#include "tests/test.h"

static const char *const data_folder = OBK_TEST_DATA "/bls12-381";

static uint8_t *read_data(const char *name, size_t bytes)
{
	char path[512];
	uint8_t *data = malloc(bytes);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", data_folder, name);
	f = fopen(path, "rb");
	if (!f)
		TEST_SKIP("%s is missing", path);
	CHECK(fread(data, 1, bytes, f) == bytes && fgetc(f) == EOF);
	fclose(f);
	return data;
}

static void random_scalar(uint8_t k[32], uint64_t *state)
{
	for (unsigned i = 0; i < 4; i++) {
		uint64_t v = oracle_random(state);

		memcpy(k + 8 * i, &v, 8);
	}
}

static void scalar_limbs(uint64_t k[4], const uint8_t bytes[32])
{
	for (unsigned i = 0; i < 4; i++) {
		k[i] = 0;
		for (unsigned j = 0; j < 8; j++)
			k[i] |= (uint64_t)bytes[31 - 8 * i - j] << 8 * j;
	}
}

static void check_is(const struct obk_g1 *p, const uint8_t want[96])
{
	struct obk_g1_affine a;
	uint8_t have[96];

	obk_g1_to_affine(&a, p);
	obk_g1_encode_uncompressed(have, &a);
	CHECK(memcmp(have, want, 96) == 0);
}

TEST(a_thousand_multiples_of_the_generator)
{
	uint8_t *c = read_data("g1_compressed_valid_test_vectors.dat", 48000),
		*u = read_data("g1_uncompressed_valid_test_vectors.dat", 96000);
	uint8_t out[96];
	struct obk_g1 sum;

	obk_g1_set_infinity(&sum);
	for (unsigned i = 0; i < 1000; i++) {
		struct obk_g1_affine a, b;
		struct obk_g1 t;

		CHECK_INT(obk_g1_decode_compressed(&a, c + 48 * i, i, NULL), OB_ERR_NONE);
		CHECK_INT(obk_g1_decode_uncompressed(&b, u + 96 * i, i, NULL), OB_ERR_NONE);
		CHECK(obk_g1_affine_equal(&a, &b) && obk_g1_on_curve(&a));
		obk_g1_encode_compressed(out, &a);
		CHECK(memcmp(out, c + 48 * i, 48) == 0);
		obk_g1_encode_uncompressed(out, &a);
		CHECK(memcmp(out, u + 96 * i, 96) == 0);
		check_is(&sum, u + 96 * i);
		obk_g1_add_affine(&sum, &sum, &obk_g1_generator);
		obk_g1_mul(&t, &obk_g1_generator, &(uint64_t){ i }, 10);
		check_is(&t, u + 96 * i);
		if (i % 20 == 0)
			CHECK(obk_g1_in_subgroup(&a));
	}
	free(c);
	free(u);
}

TEST(sums_and_multiples_are_openssls)
{
	static const uint8_t one[32] = { [31] = 1 };
	uint64_t state = 5, k[4];
	uint8_t bytes[32], p[96], q[96], want[96];
	struct obk_g1 t, s, d;
	struct obk_g1_affine a, b;

	oracle_mul(q, NULL, one);
	for (unsigned i = 0; i < 40; i++) {
		random_scalar(bytes, &state);
		scalar_limbs(k, bytes);
		oracle_mul(p, NULL, bytes);
		obk_g1_mul(&t, &obk_g1_generator, k, 256);
		check_is(&t, p);
		CHECK_INT(obk_g1_decode_uncompressed(&a, p, 0, NULL), OB_ERR_NONE);
		CHECK_INT(obk_g1_decode_uncompressed(&b, q, 0, NULL), OB_ERR_NONE);
		oracle_add(want, p, q);
		obk_g1_add_affine(&s, &t, &b);
		check_is(&s, want);
		obk_g1_mul(&d, &b, (const uint64_t[]){ 7 }, 3);
		obk_g1_add(&s, &s, &d);
		obk_g1_neg(&d, &d);
		obk_g1_add(&s, &d, &s); /* other denominators, the same point */
		check_is(&s, want);
		obk_g1_double(&d, &t);
		oracle_add(want, p, p);
		check_is(&d, want);
		obk_g1_add(&d, &t, &t);
		check_is(&d, want);
		obk_g1_add_affine(&d, &t, &a);
		check_is(&d, want);
		memcpy(q, p, 96);
	}
}

TEST(the_exceptional_additions)
{
	struct obk_g1 g, n, o, r;
	struct obk_g1_affine zero = { .x = obk_fp_zero, .y = obk_fp_zero }, a, list[5];
	struct obk_fp scratch[10];
	struct obk_g1 in[5];

	obk_g1_from_affine(&g, &obk_g1_generator);
	obk_g1_from_affine(&o, &zero);
	CHECK(obk_g1_is_infinity(&o));
	obk_g1_neg(&n, &g);
	obk_g1_add(&r, &g, &n);
	CHECK(obk_g1_is_infinity(&r));
	obk_g1_add_affine(&r, &n, &obk_g1_generator);
	CHECK(obk_g1_is_infinity(&r));
	obk_g1_add(&r, &o, &g);
	CHECK(obk_g1_equal(&r, &g));
	obk_g1_add(&r, &g, &o);
	CHECK(obk_g1_equal(&r, &g) && !obk_g1_equal(&r, &n) && !obk_g1_equal(&r, &o) &&
		obk_g1_equal(&o, &o));
	obk_g1_add_affine(&r, &g, &zero);
	CHECK(obk_g1_equal(&r, &g));
	obk_g1_add_affine(&r, &o, &zero);
	CHECK(obk_g1_is_infinity(&r));
	obk_g1_double(&r, &o);
	CHECK(obk_g1_is_infinity(&r));
	obk_g1_mul(&r, &obk_g1_generator, obk_fr_modulus.l, 255);
	CHECK(obk_g1_is_infinity(&r));
	in[0] = in[4] = o;
	in[1] = g;
	in[3] = n;
	obk_g1_double(&in[2], &g);
	obk_g1_to_affine_batch(list, in, 5, scratch);
	for (unsigned i = 0; i < 5; i++) {
		obk_g1_to_affine(&a, &in[i]);
		CHECK(obk_g1_affine_equal(&a, &list[i]));
	}
	CHECK(obk_g1_affine_is_infinity(&list[0]) && obk_g1_affine_is_infinity(&list[4]));
}

TEST(wrong_encodings_are_refused)
{
	uint8_t good[48], bytes[96];
	struct obk_g1_affine p;
	struct obk_fault fault;

	obk_g1_encode_compressed(good, &obk_g1_generator);
	memcpy(bytes, good, 48);
	bytes[0] &= 0x7f;
	CHECK_INT(obk_g1_decode_compressed(&p, bytes, 17, &fault), OB_ERR_ARGUMENT);
	CHECK_INT(fault.item, 17);
	CHECK(strstr(fault.text, "17"));
	memcpy(bytes, good, 48);
	bytes[0] |= 0x40;
	CHECK_INT(obk_g1_decode_compressed(&p, bytes, 0, &fault), OB_ERR_ARGUMENT);
	memset(bytes, 0, 96);
	bytes[0] = 0xe0;
	CHECK_INT(obk_g1_decode_compressed(&p, bytes, 0, &fault), OB_ERR_ARGUMENT);
	bytes[0] = 0xc0;
	CHECK_INT(obk_g1_decode_compressed(&p, bytes, 0, &fault), OB_ERR_NONE);
	CHECK(obk_g1_affine_is_infinity(&p));
	bytes[47] = 1;
	CHECK_INT(obk_g1_decode_compressed(&p, bytes, 0, &fault), OB_ERR_ARGUMENT);
	memset(bytes, 0xff, 48);
	bytes[0] = 0x9f; /* x above p */
	CHECK_INT(obk_g1_decode_compressed(&p, bytes, 0, &fault), OB_ERR_ARGUMENT);
	memcpy(bytes, good, 48);
	do
		bytes[47]++;
	/* about half of all x belong to no point */
	while (obk_g1_decode_compressed(&p, bytes, 0, &fault) == OB_ERR_NONE);
	CHECK(strstr(fault.text, "not on the curve"));
	memset(bytes, 0, 96);
	CHECK_INT(obk_g1_decode_uncompressed(&p, bytes, 0, &fault), OB_ERR_ARGUMENT);
	bytes[0] = 0x60;
	CHECK_INT(obk_g1_decode_uncompressed(&p, bytes, 0, &fault), OB_ERR_ARGUMENT);
	obk_g1_encode_uncompressed(bytes, &obk_g1_generator);
	bytes[0] |= 0x20;
	CHECK_INT(obk_g1_decode_uncompressed(&p, bytes, 0, &fault), OB_ERR_ARGUMENT);
	bytes[0] ^= 0xa0;
	CHECK_INT(obk_g1_decode_uncompressed(&p, bytes, 0, &fault), OB_ERR_ARGUMENT);
	bytes[0] ^= 0x80;
	CHECK_INT(obk_g1_decode_uncompressed(&p, bytes, 0, &fault), OB_ERR_NONE);
	bytes[95] ^= 1;
	CHECK_INT(obk_g1_decode_uncompressed(&p, bytes, 0, &fault), OB_ERR_ARGUMENT);
}

/*
 * Points of the curve with rising x. Almost none is in G1, because the cofactor has 126 bits. P is
 * in G1 if r P is infinity.
 */
TEST(points_outside_the_subgroup_are_found)
{
	unsigned outside = 0;

	for (unsigned x = 0; x < 60; x++) {
		uint8_t bytes[48] = { 0x80 };
		struct obk_g1_affine p;
		struct obk_g1 t;

		bytes[47] = (uint8_t)x;
		if (obk_g1_decode_compressed(&p, bytes, 0, NULL) != OB_ERR_NONE)
			continue;
		obk_g1_mul(&t, &p, obk_fr_modulus.l, 255);
		CHECK_INT(obk_g1_in_subgroup(&p), obk_g1_is_infinity(&t));
		outside += !obk_g1_is_infinity(&t);
		/* h P is in G1 */
		obk_g1_mul(
			&t, &p, (const uint64_t[]){ 0x8c00aaab0000aaab, 0x396c8c005555e156 }, 128);
		obk_g1_to_affine(&p, &t);
		CHECK(obk_g1_in_subgroup(&p));
	}
	CHECK(outside > 15);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
