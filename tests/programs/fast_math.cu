/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Fast functions (the approximate instructions) against double precision on the host, within the
 * bounds of CUDA's programming guide; conversions between integers and floats with each rounding,
 * bit by bit.
 */
#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>
#include "check.h"

#define COUNT 65536

enum { EXP, LOG2, SIN, COS, RSQRT, TANH, DIVIDE, FUNCTIONS };
static const char *const names[FUNCTIONS] = { "exp2", "log2", "sin", "cos", "rsqrt", "tanh",
	"divide" };

__global__ void functions(const float *in, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float x = in[i], y;

	asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
	out[EXP * COUNT + i] = y;
	out[LOG2 * COUNT + i] = __log2f(fabsf(x));
	out[SIN * COUNT + i] = __sinf(x);
	out[COS * COUNT + i] = __cosf(x);
	asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(fabsf(x)));
	out[RSQRT * COUNT + i] = y;
	asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
	out[TANH * COUNT + i] = y;
	out[DIVIDE * COUNT + i] = __fdividef(x, 3.7f);
}

/* 16 conversions of one number; the host computes the same in converted(). */
__global__ void conversions(const float *in, const long long *whole, unsigned long long *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float x = in[i] * 100.0f;
	long long n = whole[i];
	unsigned long long *o = out + i * 16;

	o[0] = (unsigned)__float2int_rn(x);
	o[1] = (unsigned)__float2int_rd(x);
	o[2] = (unsigned)__float2int_ru(x);
	o[3] = __float2uint_rz(fabsf(x));
	o[4] = (unsigned long long)__float2ll_rn(x * 1e9f);
	o[5] = __float2ull_rd(fabsf(x) * 1e9f);
	o[6] = (unsigned)__double2int_ru((double)x);
	o[7] = (unsigned long long)__double2ll_rd((double)x * 1e12);
	o[8] = (unsigned)__float_as_int(__int2float_rd((int)n));
	o[9] = (unsigned)__float_as_int(__uint2float_ru((unsigned)n));
	o[10] = (unsigned)__float_as_int(__ll2float_rn(n));
	o[11] = (unsigned)__float_as_int(__ull2float_rz((unsigned long long)n));
	o[12] = (unsigned long long)__double_as_longlong(__ull2double_rn((unsigned long long)n));
	o[13] = (unsigned)__float_as_int(__saturatef(x * 0.001f));
	o[14] = (unsigned)(int)(signed char)n;
	o[15] = (unsigned)__float_as_int(__double2float_rz((double)n / 3));
}

static unsigned long long bits(float x)
{
	unsigned b;

	memcpy(&b, &x, sizeof(b));
	return b;
}

static unsigned long long bits(double x)
{
	unsigned long long b;

	memcpy(&b, &x, sizeof(b));
	return b;
}

/* The value of a conversion with a rounding of the host, done at run time. */
template <typename To, typename From> static To rounded(int mode, From x)
{
	volatile From v = x;

	fesetround(mode);
	volatile To r = (To)v;
	fesetround(FE_TONEAREST);
	return r;
}

static void converted(float in, long long n, unsigned long long *o)
{
	float x = in * 100.0f;

	o[0] = (unsigned)(int)std::nearbyint((double)x);
	o[1] = (unsigned)(int)std::floor((double)x);
	o[2] = (unsigned)(int)std::ceil((double)x);
	o[3] = (unsigned)std::fabs(x);
	o[4] = (unsigned long long)(long long)std::nearbyint((double)(x * 1e9f));
	o[5] = (unsigned long long)(std::fabs(x) * 1e9f);
	o[6] = (unsigned)(int)std::ceil((double)x);
	o[7] = (unsigned long long)(long long)std::floor((double)x * 1e12);
	o[8] = bits(rounded<float>(FE_DOWNWARD, (int)n));
	o[9] = bits(rounded<float>(FE_UPWARD, (unsigned)n));
	o[10] = bits(rounded<float>(FE_TONEAREST, n));
	o[11] = bits(rounded<float>(FE_TOWARDZERO, (unsigned long long)n));
	o[12] = bits(rounded<double>(FE_TONEAREST, (unsigned long long)n));
	float s = x * 0.001f;

	o[13] = bits(s > 0 ? (s < 1 ? s : 1.0f) : 0.0f);
	o[14] = (unsigned)(int)(signed char)n;
	o[15] = bits(rounded<float>(FE_TOWARDZERO, (double)n / 3));
}

static double exact(int f, double x)
{
	switch (f) {
	case EXP:
		return std::exp2(x);
	case LOG2:
		return std::log2(std::fabs(x));
	case SIN:
		return std::sin(x);
	case COS:
		return std::cos(x);
	case RSQRT:
		return 1 / std::sqrt(std::fabs(x));
	case TANH:
		return std::tanh(x);
	default:
		return x / (double)3.7f;
	}
}

/* relative and absolute bounds */
static const double relative[FUNCTIONS] = { 0x1p-22, 0x1p-22, 0, 0, 0x1.2p-23, 0x1p-11, 0x1p-22 };
static const double absolute[FUNCTIONS] = { 0, 0x1p-22, 0x1.8p-21, 0x1.8p-21, 0, 0, 0 };

int main()
{
	std::vector<float> in(COUNT), out(COUNT * FUNCTIONS);
	std::vector<long long> whole(COUNT);
	std::vector<unsigned long long> got(COUNT * 16);
	unsigned long long seed = 88172645463325252ull;
	float *d_in, *d_out;
	long long *d_whole;
	unsigned long long *d_got, want[16];

	for (int i = 0; i < COUNT; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		in[i] = (float)((int)(seed >> 40) - (1 << 23)) * 0x1.9p-21f; /* within 2 pi */
		whole[i] = (long long)(seed >> (i & 63)) * (i & 64 ? -1 : 1);
	}
	CU(cudaMalloc(&d_in, COUNT * 4));
	CU(cudaMalloc(&d_out, COUNT * FUNCTIONS * 4));
	CU(cudaMalloc(&d_whole, COUNT * 8));
	CU(cudaMalloc(&d_got, COUNT * 16 * 8));
	CU(cudaMemcpy(d_in, in.data(), COUNT * 4, cudaMemcpyHostToDevice));
	CU(cudaMemcpy(d_whole, whole.data(), COUNT * 8, cudaMemcpyHostToDevice));
	functions<<<COUNT / 256, 256>>>(d_in, d_out);
	conversions<<<COUNT / 256, 256>>>(d_in, d_whole, d_got);
	CU(cudaMemcpy(out.data(), d_out, COUNT * FUNCTIONS * 4, cudaMemcpyDeviceToHost));
	CU(cudaMemcpy(got.data(), d_got, COUNT * 16 * 8, cudaMemcpyDeviceToHost));

	for (int f = 0; f < FUNCTIONS; f++) {
		int outside = 0;

		for (int i = 0; i < COUNT; i++) {
			double w = exact(f, (double)in[i]), g = (double)out[f * COUNT + i];

			outside += !(g == w ||
				std::fabs(g - w) <= relative[f] * std::fabs(w) + absolute[f]);
		}
		printf("%s: %d outside of the bound\n", names[f], outside);
		OK(outside == 0);
	}
	for (int k = 0; k < 16; k++) {
		int different = 0;

		for (int i = 0; i < COUNT; i++) {
			converted(in[i], whole[i], want);
			different += got[i * 16 + k] != want[k];
		}
		printf("conversion %d: %d different\n", k, different);
		OK(different == 0);
	}
	return verdict("fast_math");
}
