/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Tests arithmetic in a 16-bit float type. The host computes in double and rounds. Included by
 * half_arithmetic.cu and bfloat16_arithmetic.cu, which define the type. The expected results are
 * exact, so every bit is compared.
 */
#ifndef TESTS_PROGRAMS_SMALL_FLOAT_H
#define TESTS_PROGRAMS_SMALL_FLOAT_H

#include "check.h"
#include <cmath>
#include <vector>

enum { LENGTH = 2048, OPERATIONS = 8 };
static const char *const OPERATION_NAME[OPERATIONS] = { "add", "sub", "mul", "fma", "div", "sqrt",
	"compare", "pair fma" };

/*
 * Rounds to nearest even, to a mantissa of the given number of bits, with subnormals down to the
 * given exponent.
 */
static double round_to(double x, int mantissa, int least_exponent, double largest)
{
	int exponent;

	if (x == 0 || !std::isfinite(x))
		return x;
	frexp(x, &exponent);
	exponent = exponent - 1 > least_exponent ? exponent - 1 : least_exponent;
	double unit = ldexp(1, exponent - mantissa), rounded = nearbyint(x / unit) * unit;
	return fabs(rounded) > largest ? copysign(INFINITY, x) : rounded;
}

/* Expected results of each operation before rounding. */
static double reference(int operation, double a, double b, double c)
{
	switch (operation) {
	case 0:
		return a + b;
	case 1:
		return a - b;
	case 2:
		return a * b;
	case 3:
		return a * b + c;
	case 4:
		return a / b;
	case 5:
		return sqrt(fabs(a));
	case 6:
		return (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != c);
	default:
		return b * c + a;
	}
}

template <typename T, typename T2> __device__ void operate(T a, T b, T c, T *out)
{
	out[0] = __hadd(a, b);
	out[1] = __hsub(a, b);
	out[2] = __hmul(a, b);
	out[3] = __hfma(a, b, c);
	out[4] = __hdiv(a, b);
	out[5] = hsqrt(__habs(a));
	out[6] = (T)(float)(__hlt(a, b) + 2 * __hle(a, b) + 4 * __heq(a, b) + 8 * __hne(a, c));
	T2 pair = __hfma2(T2(b, a), T2(c, a), T2(a, b));
	out[7] = pair.x;
}

template <typename T, typename T2>
__global__ void kernel(const T *a, const T *b, const T *c, T *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < LENGTH)
		operate<T, T2>(a[i], b[i], c[i], out + OPERATIONS * i);
}

template <typename T, typename T2>
static int run(const char *program, int mantissa, int least_exponent, double largest,
	T (*make)(double), double (*read)(T))
{
	std::vector<T> in[3], got(LENGTH * OPERATIONS);
	int wrong[OPERATIONS] = {};
	T *device[4];
	uint32_t seed = 16;

	/*
	 * Both signs and about ten binades. One value in eight is a multiple of 1/4, so that equal
	 * and exact results occur.
	 */
	for (std::vector<T> &v : in)
		for (int i = 0; i < LENGTH; i++) {
			uint32_t bits = random_next(&seed);
			double x = ldexp(1 + (bits & 1023) / 1024.0, (int)(bits >> 10 & 7) - 4);
			x = bits >> 13 & 7 ? x : (bits >> 16 & 15) * 0.25 + 0.25;
			v.push_back(make(bits >> 31 ? -x : x));
		}
	for (int k = 0; k < 4; k++)
		CU(cudaMalloc(&device[k], sizeof(T) * LENGTH * OPERATIONS));
	for (int k = 0; k < 3; k++)
		CU(cudaMemcpy(device[k], in[k].data(), sizeof(T) * LENGTH, cudaMemcpyHostToDevice));
	kernel<T, T2><<<LENGTH / 128, 128>>>(device[0], device[1], device[2], device[3]);
	CU(cudaGetLastError());
	CU(cudaMemcpy(
		got.data(), device[3], sizeof(T) * LENGTH * OPERATIONS, cudaMemcpyDeviceToHost));
	for (int i = 0; i < LENGTH; i++)
		for (int op = 0; op < OPERATIONS; op++) {
			double a = read(in[0][i]), b = read(in[1][i]), c = read(in[2][i]),
			       result = read(got[OPERATIONS * i + op]);
			double want =
				round_to(reference(op, a, b, c), mantissa, least_exponent, largest);
			/*
			 * Division and square root use approximations in float with an error of at
			 * most one unit in the last place.
			 */
			double slack = op == 4 || op == 5 ? fabs(want) * ldexp(1, -mantissa) : 0;
			if (!(fabs(result - want) <= slack) && wrong[op]++ == 0)
				fprintf(stderr, "%s %a %a %a: %a, not %a\n", OPERATION_NAME[op], a,
					b, c, result, want);
		}
	for (int op = 0; op < OPERATIONS; op++) {
		OK(wrong[op] == 0);
		printf("%s of number 5: %g\n", OPERATION_NAME[op], read(got[OPERATIONS * 5 + op]));
	}
	return verdict(program);
}

#endif
