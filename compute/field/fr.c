/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <endian.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/opt.h"
#include "compute/field/fr.h"

const struct obk_fr obk_fr_zero = { { 0 } };
const struct obk_fr obk_fr_one = { { 0x00000001fffffffe, 0x5884b7fa00034802, 0x998c4fefecbc4ff5,
	0x1824b159acc5056f } };
const struct obk_fr obk_fr_modulus = { { 0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805,
	0x73eda753299d7d48 } };
const struct obk_fr obk_fr_r2 = { { 0xc999e990f3f29c6d, 0x2b6cedcb87925c23, 0x05d314967254398f,
	0x0748d9d99f59ff11 } };

#define F(name) obk_fr_##name
#define ELT     struct obk_fr
#define OPS     struct obk_fr_ops
#define LIMBS   OBK_FR_LIMBS
#define BYTES   OBK_FR_BYTES
#define NINV    0xfffffffeffffffffu
#define NINV31  0x7fffffffu
#define R3                                                                                     \
	{                                                                                      \
		0xc62c1807439b73af, 0x1b3e0d188cf06990, 0x73d13c71c7b5f418, 0x6e2a5bb9c8db33e9 \
	}
#include "compute/field/field_body.h"

void obk_fr_root(struct obk_fr *r, unsigned log_n)
{
	static const uint64_t seven[OBK_FR_LIMBS] = { 7 };
	uint64_t e[OBK_FR_LIMBS];
	struct obk_fr g;

	/* start from 7^((r - 1) / 2^32), then square down to the requested order */
	for (unsigned i = 0; i < OBK_FR_LIMBS; i++)
		e[i] = obk_fr_modulus.l[i] >> 32 |
			(i + 1 < OBK_FR_LIMBS ? obk_fr_modulus.l[i + 1] << 32 : 0);
	obk_fr_from_plain(&g, seven);
	obk_fr_pow(&g, &g, e, OBK_FR_LIMBS);
	for (unsigned i = OBK_FR_TWO_ADICITY; i > log_n; i--)
		obk_fr_sqr(&g, &g);
	*r = g;
}
