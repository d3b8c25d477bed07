/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Conversions to and from floats of 4 and 6 bits and powers of two, for sm_120a: what the kernel
 * computes with instructions is compared with what CUDA's headers compute on the CPU.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include "check.h"

struct Results {
	unsigned fp4, e2m3, e3m2, powers[4], powers_bf16[2], halves[3], bf16;
};

__host__ __device__ unsigned bits(__half2_raw h)
{
	return h.x | unsigned(h.y) << 16;
}

__host__ __device__ Results convert(float x, float y, unsigned u)
{
	Results r;
	float2 v = { x, y };
	__nv_bfloat162_raw b;

	r.fp4 = __nv_cvt_float2_to_fp4x2(v, __NV_E2M1, cudaRoundNearest) & 0xff;
	r.e2m3 = __nv_cvt_float2_to_fp6x2(v, __NV_E2M3, cudaRoundNearest);
	r.e3m2 = __nv_cvt_float2_to_fp6x2(v, __NV_E3M2, cudaRoundNearest);
	for (int i = 0; i < 4; i++)
		r.powers[i] = __nv_cvt_float2_to_e8m0x2(v, i & 1 ? __NV_SATFINITE : __NV_NOSAT,
			i & 2 ? cudaRoundPosInf : cudaRoundZero);
	b.x = static_cast<unsigned short>(u);
	b.y = static_cast<unsigned short>(u >> 16);
	for (int i = 0; i < 2; i++)
		r.powers_bf16[i] = __nv_cvt_bfloat162raw_to_e8m0x2(
			b, i ? __NV_SATFINITE : __NV_NOSAT, i ? cudaRoundPosInf : cudaRoundZero);
	r.halves[0] = bits(__nv_cvt_fp4x2_to_halfraw2(u & 0xff, __NV_E2M1));
	r.halves[1] = bits(__nv_cvt_fp6x2_to_halfraw2(u & 0x3f3f, __NV_E2M3));
	r.halves[2] = bits(__nv_cvt_fp6x2_to_halfraw2(u & 0x3f3f, __NV_E3M2));
	b = __nv_cvt_e8m0x2_to_bf162raw(static_cast<unsigned short>(u));
	r.bf16 = b.x | unsigned(b.y) << 16;
	return r;
}

__global__ void kernel(const float *x, const unsigned *u, Results *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = convert(x[2 * i], x[2 * i + 1], u[i]);
}

static float number(unsigned bits)
{
	float x;

	memcpy(&x, &bits, 4);
	return x;
}

int main()
{
	/* all values of the narrow types' range with the neighbours of their middles, then any bits */
	std::vector<float> x;
	std::vector<unsigned> u;
	unsigned seed = 1;

	for (int i = -1024; i <= 1024; i++)
		for (unsigned e : { 16u, 64u }) {
			unsigned middle;
			float y = static_cast<float>(i) / static_cast<float>(e);

			memcpy(&middle, &y, 4);
			x.insert(x.end(), { y, number(middle + 1), number(middle - 1), -y });
		}
	for (unsigned special : { 0u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
		     0xffc00000u, 1u, 0x7f7fffffu, 0x00400000u, 0x00400001u, 0x003fffffu,
		     0x00800000u, 0x7f000000u, 0x7f000001u })
		x.push_back(number(special));
	while (x.size() < 100000) {
		seed = seed * 1664525 + 1013904223;
		x.push_back(number(seed ^ seed >> 15));
	}
	int n = static_cast<int>(x.size() / 2);

	for (int i = 0; i < n; i++)
		u.push_back(i < 65536 ? unsigned(i) * 65537u : seed + unsigned(i) * 2654435761u);
	std::vector<Results> got(n);
	float *dx;
	unsigned *du;
	Results *out;

	CU(cudaMalloc(&dx, x.size() * 4));
	CU(cudaMalloc(&du, u.size() * 4));
	CU(cudaMalloc(&out, n * sizeof(Results)));
	CU(cudaMemcpy(dx, x.data(), x.size() * 4, cudaMemcpyDefault));
	CU(cudaMemcpy(du, u.data(), u.size() * 4, cudaMemcpyDefault));
	kernel<<<(n + 255) / 256, 256>>>(dx, du, out, n);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got.data(), out, n * sizeof(Results), cudaMemcpyDefault));
	static const char *const names[] = { "e2m1", "e2m3", "e3m2", "ue8m0 rz",
		"ue8m0 rz satfinite", "ue8m0 rp", "ue8m0 rp satfinite", "ue8m0 of bf16 rz",
		"ue8m0 of bf16 rp satfinite", "f16 of e2m1", "f16 of e2m3", "f16 of e3m2",
		"bf16 of ue8m0" };
	unsigned wrong[sizeof(Results) / 4] = {};

	for (int i = 0; i < n; i++) {
		Results want = convert(x[2 * i], x[2 * i + 1], u[i]);
		const unsigned *a = reinterpret_cast<const unsigned *>(&got[i]),
			       *b = reinterpret_cast<const unsigned *>(&want);

		for (size_t k = 0; k < sizeof(Results) / 4; k++)
			if (a[k] != b[k] && !wrong[k]++)
				printf("%s of %a, %a, %x: %x, not %x\n", names[k], x[2 * i],
					x[2 * i + 1], u[i], a[k], b[k]);
	}
	for (size_t k = 0; k < sizeof(Results) / 4; k++)
		printf("%s: %u of %d wrong\n", names[k], wrong[k], n);
	return 0;
}
