/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Double and float arithmetic in all four rounding modes, compared with the host's; conversions;
 * the functions of math.h.
 */
#include "check.h"
#include <cfenv>
#include <cmath>
#include <vector>

enum { LENGTH = 1024, EXACT = 16, FUNCTIONS = 10 };

__global__ void exact(const double *a, const double *b, double *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double x = a[i], y = b[i], *r = out + EXACT * i;
	float f = (float)x, g = (float)y;

	r[0] = __dadd_rn(x, y);
	r[1] = __dadd_rz(x, y);
	r[2] = __dadd_ru(x, y);
	r[3] = __dadd_rd(x, y);
	r[4] = __dmul_rn(x, y);
	r[5] = __dmul_rz(x, y);
	r[6] = __dmul_ru(x, y);
	r[7] = __dmul_rd(x, y);
	r[8] = fma(x, y, x);
	r[9] = x / y;
	r[10] = sqrt(fabs(x));
	r[11] = __fadd_ru(f, g);
	r[12] = __fmul_rd(f, g);
	r[13] = (double)__double2ll_rn(x * 1000) + (double)__double2int_rz(y);
	r[14] = floor(x) + 16 * ceil(y) + 256 * rint(x) + 4096 * trunc(y);
	r[15] = fmin(x, y) + 8 * fmax(x, y);
}

__global__ void functions(const double *a, double *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double x = a[i], *r = out + FUNCTIONS * i;
	float f = (float)x;

	r[0] = sin(x);
	r[1] = exp(x);
	r[2] = log(fabs(x) + 1);
	r[3] = pow(fabs(x) + 0.5, 1.75);
	r[4] = atan2(x, 2.0);
	r[5] = erf(x);
	r[6] = (double)sinf(f);
	r[7] = (double)expf(f);
	r[8] = (double)powf(fabsf(f) + 0.5f, 1.75f);
	r[9] = (double)tanhf(f);
}

static void host_exact(double a, double b, double *r)
{
	static const int MODES[] = { FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD };
	volatile double x = a, y = b;
	volatile float f = (float)a, g = (float)b;

	for (int mode = 0; mode < 4; mode++) {
		fesetround(MODES[mode]);
		r[mode] = x + y;
		r[4 + mode] = x * y;
		if (MODES[mode] == FE_UPWARD)
			r[11] = (double)(f + g);
		if (MODES[mode] == FE_DOWNWARD)
			r[12] = (double)(f * g);
	}
	fesetround(FE_TONEAREST);
	r[8] = fma(a, b, a);
	r[9] = a / b;
	r[10] = sqrt(fabs(a));
	r[13] = nearbyint(a * 1000) + trunc(b);
	r[14] = floor(a) + 16 * ceil(b) + 256 * rint(a) + 4096 * trunc(b);
	r[15] = fmin(a, b) + 8 * fmax(a, b);
}

int main()
{
	std::vector<double> a(LENGTH), b(LENGTH), got(LENGTH * EXACT), rough(LENGTH * FUNCTIONS);
	double *device_a, *device_b, *device_out;
	uint32_t seed = 64;

	for (int i = 0; i < LENGTH; i++) {
		a[i] = ((double)random_next(&seed) * 4294967296.0 + random_next(&seed)) /
				2305843009213693952.0 -
			4;
		b[i] = ((double)random_next(&seed) * 4294967296.0 + random_next(&seed)) /
				2305843009213693952.0 -
			4;
		/* Integers plus 0.5, to test ties in rint. */
		a[i] = i % 16 ? a[i] : rint(a[i]) + 0.5;
	}
	CU(cudaMalloc(&device_a, LENGTH * 8));
	CU(cudaMalloc(&device_b, LENGTH * 8));
	CU(cudaMalloc(&device_out, LENGTH * EXACT * 8));
	CU(cudaMemcpy(device_a, a.data(), LENGTH * 8, cudaMemcpyHostToDevice));
	CU(cudaMemcpy(device_b, b.data(), LENGTH * 8, cudaMemcpyHostToDevice));
	exact<<<LENGTH / 128, 128>>>(device_a, device_b, device_out);
	CU(cudaMemcpy(got.data(), device_out, got.size() * 8, cudaMemcpyDeviceToHost));
	int wrong[EXACT] = {};
	for (int i = 0; i < LENGTH; i++) {
		double want[EXACT];
		host_exact(a[i], b[i], want);
		for (int k = 0; k < EXACT; k++)
			if (got[EXACT * i + k] != want[k] && wrong[k]++ == 0)
				fprintf(stderr, "exact %d of %a %a: %a, not %a\n", k, a[i], b[i],
					got[EXACT * i + k], want[k]);
	}
	for (int count : wrong)
		OK(count == 0);
	printf("exact %016llx\n", (unsigned long long)checksum(got.data(), got.size() * 8));

	functions<<<LENGTH / 128, 128>>>(device_a, device_out);
	CU(cudaMemcpy(rough.data(), device_out, rough.size() * 8, cudaMemcpyDeviceToHost));
	int far[FUNCTIONS] = {};
	for (int i = 0; i < LENGTH; i++) {
		double x = a[i], f = (double)(float)x;
		double want[FUNCTIONS] = { sin(x), exp(x), log(fabs(x) + 1),
			pow(fabs(x) + 0.5, 1.75), atan2(x, 2.0), erf(x), sin(f), exp(f),
			pow(fabs(f) + 0.5, 1.75), tanh(f) };
		for (int k = 0; k < FUNCTIONS; k++)
			if (!near(rough[FUNCTIONS * i + k], want[k], k < 6 ? 1e-14 : 1e-6) &&
				far[k]++ == 0)
				fprintf(stderr, "function %d of %a: %a, not %a\n", k, x,
					rough[FUNCTIONS * i + k], want[k]);
	}
	for (int k = 0; k < FUNCTIONS; k++) {
		OK(far[k] == 0);
		printf("function %d: %.4f\n", k, rough[FUNCTIONS * 9 + k]);
	}
	return verdict("double_arithmetic");
}
