/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by the tests of the library's public header: points (i + 1) G, and the expected sums of
 * their products with scalars.
 */
#ifndef OUTBOARD_TEST_API_H
#define OUTBOARD_TEST_API_H

#include "outboard.h"
#include "../../test.h"

#define N         2000
#define TIMEOUT_S 200 /* takes seconds on an idle machine, a minute on a busy one */

/* The generator of G1, compressed (ZCash). */
static const uint8_t generator[48] = { 0x97, 0xf1, 0xd3, 0xa7, 0x31, 0x97, 0xd7, 0x94, 0x26, 0x95,
	0x63, 0x8c, 0x4f, 0xa9, 0xac, 0x0f, 0xc3, 0x68, 0x8c, 0x4f, 0x97, 0x74, 0xb9, 0x05, 0xa1,
	0x4e, 0x3a, 0x3f, 0x17, 0x1b, 0xac, 0x58, 0x6c, 0x55, 0xe8, 0x3f, 0xf9, 0x7a, 0x1a, 0xef,
	0xfb, 0x3a, 0xf0, 0x0a, 0xdb, 0x22, 0xc6, 0xbb };
/* 5 G: the fifth of the compressed multiples published with zkcrypto/bls12_381. */
static const uint8_t five[48] = { 0xb0, 0xe7, 0x79, 0x1f, 0xb9, 0x72, 0xfe, 0x01, 0x41, 0x59, 0xaa,
	0x33, 0xa9, 0x86, 0x22, 0xda, 0x3c, 0xdc, 0x98, 0xff, 0x70, 0x79, 0x65, 0xe5, 0x36, 0xd8,
	0x63, 0x6b, 0x5f, 0xcc, 0x5a, 0xc7, 0xa9, 0x1a, 0x8c, 0x46, 0xe5, 0x9a, 0x00, 0xdc, 0xa5,
	0x75, 0xaf, 0x0f, 0x18, 0xfb, 0x13, 0xdc };

static uint8_t points[N][48], scalars[N][32];

static inline struct outboard *open_list(const char *devices)
{
	struct outboard_options o = { .devices = devices, .profile = "" };
	struct outboard_error error = { 0 };
	struct outboard *ob = NULL;

	if (outboard_open(&o, &ob, &error) != OUTBOARD_OK)
		fprintf(stderr, "%s\n", error.text);
	CHECK(ob != NULL);
	return ob;
}

static inline struct outboard_bases *upload(
	struct outboard *ob, const void *p, uint64_t n, uint32_t format)
{
	struct outboard_points args = { .points = p, .count = n, .format = format };
	struct outboard_bases *bases = NULL;

	CHECK_INT(outboard_bases_new(ob, &args, &bases, NULL), OUTBOARD_OK);
	return bases;
}

static inline void put(uint8_t *scalar, uint64_t value)
{
	memset(scalar, 0, 32);
	for (unsigned i = 0; i < 8; i++)
		scalar[i] = (uint8_t)(value >> 8 * i);
}

/* points[i] = (i + 1) G */
static inline void make_points(struct outboard *ob)
{
	struct outboard_bases *bases = upload(ob, generator, 1, OUTBOARD_POINT_COMPRESSED);
	struct outboard_msm m = { .scalars = scalars, .count = 1, .batch = N, .result = points };

	for (unsigned i = 0; i < N; i++)
		put(scalars[i], i + 1);
	CHECK_INT(outboard_msm_run(bases, &m, NULL, NULL), OUTBOARD_OK);
	outboard_bases_free(bases);
	CHECK(memcmp(points[0], generator, 48) == 0 && memcmp(points[4], five, 48) == 0);
	for (unsigned i = 0; i < N; i++)
		put(scalars[i], 0x9e3779b97f4a7c15u * (i + 1) >> 20);
}

/* (sum of s_i (first + i + 1)) G */
static inline void expected(struct outboard *ob, uint64_t first, uint64_t n, uint8_t *want)
{
	struct outboard_points g = { .points = generator, .count = 1 };
	unsigned __int128 sum = 0;
	uint8_t s[32] = { 0 };
	struct outboard_msm m = { .scalars = s, .count = 1, .result = want };

	for (uint64_t i = first; i < first + n; i++) {
		uint64_t k;

		memcpy(&k, scalars[i], 8);
		sum += (unsigned __int128)k * (i + 1);
	}
	memcpy(s, &sum, 16);
	CHECK_INT(outboard_msm_once(ob, &g, &m, NULL), OUTBOARD_OK);
}

#endif
