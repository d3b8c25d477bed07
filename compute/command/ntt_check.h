/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* `outboard ntt --verify` and `outboard ntt bench`. Main thread only. */
#ifndef OBX_NTT_CHECK_H
#define OBX_NTT_CHECK_H

#include "base/options.h"
#include "compute/ntt/ntt.h"

/*
 * Checks one transform, with input and output in the orders of the job: coefficients and values
 * must belong to one polynomial. Computes its value at a random point by Horner's rule from the
 * coefficients and by the barycentric formula from the values. A wrong transform passes with a
 * probability below 2^-200. False: a message was printed.
 */
bool obx_ntt_agrees(
	const struct obk_ntt_job *job, const struct obk_fr *in, const struct obk_fr *out);

extern const struct ob_command obx_ntt_bench_command;

#endif
