/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Computes 1 G + 2 G + ... + 8 G with G the generator of G1 of BLS12-381, on all available devices.
 * compute/docs/SERVICE.md explains it.
 *
 *     cc -o msm msm.c $(pkg-config --cflags --libs outboard) && ./msm
 */
#include <outboard.h>
#include <stdio.h>
#include <string.h>

static const unsigned char generator[48] = { 0x97, 0xf1, 0xd3, 0xa7, 0x31, 0x97, 0xd7, 0x94, 0x26,
	0x95, 0x63, 0x8c, 0x4f, 0xa9, 0xac, 0x0f, 0xc3, 0x68, 0x8c, 0x4f, 0x97, 0x74, 0xb9, 0x05,
	0xa1, 0x4e, 0x3a, 0x3f, 0x17, 0x1b, 0xac, 0x58, 0x6c, 0x55, 0xe8, 0x3f, 0xf9, 0x7a, 0x1a,
	0xef, 0xfb, 0x3a, 0xf0, 0x0a, 0xdb, 0x22, 0xc6, 0xbb };

int main(void)
{
	unsigned char points[8][48], scalars[8][32], sum[48];
	struct outboard *ob = NULL;
	struct outboard_bases *bases = NULL;
	struct outboard_points p;
	struct outboard_msm m;
	struct outboard_error error;
	int i;

	memset(scalars, 0, sizeof(scalars));
	for (i = 0; i < 8; i++) {
		memcpy(points[i], generator, 48);
		scalars[i][0] = (unsigned char)(i + 1);
	}
	memset(&p, 0, sizeof(p));
	p.points = points;
	p.count = 8;
	memset(&m, 0, sizeof(m));
	m.scalars = scalars;
	m.count = 8;
	m.result = sum;
	if (outboard_open(NULL, &ob, &error) || outboard_bases_new(ob, &p, &bases, &error) ||
		outboard_msm_run(bases, &m, NULL, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	for (i = 0; i < 48; i++)
		printf("%02x", sum[i]);
	printf("\n");
	outboard_bases_free(bases);
	outboard_close(ob);
	return 0;
}
