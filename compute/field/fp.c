/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <endian.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/opt.h"
#include "compute/field/fp.h"

const struct obk_fp obk_fp_zero = { { 0 } };
const struct obk_fp obk_fp_one = { { 0x760900000002fffd, 0xebf4000bc40c0002, 0x5f48985753c758ba,
	0x77ce585370525745, 0x5c071a97a256ec6d, 0x15f65ec3fa80e493 } };
const struct obk_fp obk_fp_modulus = { { 0xb9feffffffffaaab, 0x1eabfffeb153ffff, 0x6730d2a0f6b0f624,
	0x64774b84f38512bf, 0x4b1ba7b6434bacd7, 0x1a0111ea397fe69a } };
const struct obk_fp obk_fp_r2 = { { 0xf4df1f341c341746, 0x0a76e6a609d104f1, 0x8de5476c4c95b6d5,
	0x67eb88a9939d83c0, 0x9a793e85b519952d, 0x11988fe592cae3aa } };

#define F(name) obk_fp_##name
#define ELT     struct obk_fp
#define OPS     struct obk_fp_ops
#define LIMBS   OBK_FP_LIMBS
#define BYTES   OBK_FP_BYTES
#define NINV    0x89f3fffcfffcfffdu
#define NINV31  0x7ffcfffdu
#define R3                                                                                      \
	{                                                                                       \
		0xed48ac6bd94ca1e0, 0x315f831e03a7adf8, 0x9a53352a615e29dd, 0x34c04e5e921e1761, \
			0x2512d43565724728, 0x0aa6346091755d4d                                  \
	}
#include "compute/field/field_body.h"

/* p = 3 mod 4, so a^((p + 1) / 4) is a root if there is one. */
bool obk_fp_sqrt(struct obk_fp *ret, const struct obk_fp *a)
{
	static const uint64_t e[OBK_FP_LIMBS] = { 0xee7fbfffffffeaab, 0x07aaffffac54ffff,
		0xd9cc34a83dac3d89, 0xd91dd2e13ce144af, 0x92c6e9ed90d2eb35, 0x0680447a8e5ff9a6 };
	struct obk_fp root, square;

	obk_fp_pow(&root, a, e, OBK_FP_LIMBS);
	obk_fp_sqr(&square, &root);
	if (!obk_fp_equal(&square, a))
		return false;
	*ret = root;
	return true;
}

bool obk_fp_is_large(const struct obk_fp *a)
{
	static const uint64_t half[OBK_FP_LIMBS] = { 0xdcff7fffffffd555, 0x0f55ffff58a9ffff,
		0xb39869507b587b12, 0xb23ba5c279c2895f, 0x258dd3db21a5d66b, 0x0d0088f51cbff34d };
	uint64_t plain[OBK_FP_LIMBS];

	obk_fp_to_plain(plain, a);
	for (unsigned i = OBK_FP_LIMBS; i-- > 0;) {
		if (plain[i] != half[i])
			return plain[i] > half[i];
	}
	return false;
}
