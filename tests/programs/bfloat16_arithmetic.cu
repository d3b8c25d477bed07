/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Arithmetic in bfloat16, scalar and in pairs. Needs compute capability 8.0: for older devices the
 * header computes in float.
 */
#include <cuda_bf16.h>
#include "small_float.h"

static __nv_bfloat16 make(double x)
{
	return __float2bfloat16_rn((float)x);
}

static double read(__nv_bfloat16 x)
{
	return (double)__bfloat162float(x);
}

int main()
{
	return run<__nv_bfloat16, __nv_bfloat162>(
		"bfloat16_arithmetic", 7, -126, 3.3895313892515355e38, make, read);
}
