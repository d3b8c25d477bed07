/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/opt.h"
#include "compute/field/fp.h"
#include "compute/field/fr.h"
#include "tests/compute/kernels/oracle.h"
#include "tests/test.h"

/* TEST pastes its argument, so a macro in it must be expanded first. */
#define EXPANDED_TEST(name) TEST(name)

#define F(name) obk_fp_##name
#define T(name) fp_##name
#define ELT     struct obk_fp
#define OPS     struct obk_fp_ops
#define LIMBS   OBK_FP_LIMBS
#define BYTES   OBK_FP_BYTES
#include "tests/compute/kernels/field_tests.h"
#undef F
#undef T
#undef ELT
#undef OPS
#undef LIMBS
#undef BYTES

#define F(name) obk_fr_##name
#define T(name) fr_##name
#define ELT     struct obk_fr
#define OPS     struct obk_fr_ops
#define LIMBS   OBK_FR_LIMBS
#define BYTES   OBK_FR_BYTES
#include "tests/compute/kernels/field_tests.h"

TEST(fp_square_roots)
{
	uint64_t state = 4;
	unsigned roots = 0;

	for (unsigned i = 0; i < 200; i++) {
		struct obk_fp a, s, t;

		fp_element(&a, i, &state);
		obk_fp_sqr(&s, &a);
		CHECK(obk_fp_sqrt(&t, &s));
		CHECK(obk_fp_equal(&t, &a) || (obk_fp_neg(&t, &t), obk_fp_equal(&t, &a)));
		if (!obk_fp_is_zero(&a)) {
			obk_fp_neg(&t, &a);
			CHECK(obk_fp_is_large(&a) != obk_fp_is_large(&t));
		}
		roots += obk_fp_sqrt(&t, &a);
	}
	CHECK(roots > 60 && roots < 140);
}

TEST(fr_roots_of_unity)
{
	struct obk_fr w, t;

	for (unsigned log_n = 0; log_n <= OBK_FR_TWO_ADICITY; log_n++) {
		obk_fr_root(&w, log_n);
		t = w;
		for (unsigned i = 0; i < log_n; i++) {
			CHECK(!obk_fr_equal(&t, &obk_fr_one));
			obk_fr_sqr(&t, &t);
		}
		CHECK(obk_fr_equal(&t, &obk_fr_one));
	}
}

TEST(the_switch_returns_to_the_reference)
{
	ob_opt_set(OB_OPT_ADX, false);
	obk_fp_choose();
	CHECK_STR(obk_fp_now.name, "reference");
	ob_opt_set(OB_OPT_ADX, true);
	obk_fp_choose();
	CHECK(obk_fp_now.usable());
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
