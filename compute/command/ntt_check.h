/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* `outboard ntt --verify` and `outboard ntt bench`. Main thread only. */
#ifndef OBX_NTT_CHECK_H
#define OBX_NTT_CHECK_H

#include "compute/ntt/ntt.h"

/*
 * One transform, in and out in the orders of the job: coefficients and values must be of one
 * polynomial. Its value at a random point by Horner's rule from the coefficients and by the
 * barycentric formula from the values; a transform with any mistake passes with a chance below
 * 2^-200. False: said so.
 */
bool obx_ntt_agrees(
	const struct obk_ntt_job *job, const struct obk_fr *in, const struct obk_fr *out);

int obx_ntt_bench(int argc, char **argv);

#endif
