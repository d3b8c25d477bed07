/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Arithmetic in half precision, scalar and in pairs. */
#include <cuda_fp16.h>
#include "small_float.h"

static __half make(double x)
{
	return __float2half_rn((float)x);
}

static double read(__half x)
{
	return (double)__half2float(x);
}

int main()
{
	return run<__half, __half2>("half_arithmetic", 10, -14, 65504, make, read);
}
