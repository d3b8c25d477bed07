/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * 384-bit Montgomery products and inverses (BLS12-381 base field), with 32-bit carry chains in PTX
 * and with 128-bit integers in C++. The expected values were computed with Python's integers.
 */
#include "check.h"
#include "montgomery_cases.h"

__constant__ uint32_t prime[LIMBS] = PRIME_LIMBS;
__constant__ uint32_t one[LIMBS] = ONE_LIMBS;
__constant__ uint32_t exponent[LIMBS] = EXPONENT_LIMBS;

/*
 * t += a * b for a 14-limb t: one chain for the low halves of the products, one for the high
 * halves.
 */
__device__ void multiply_add(uint32_t (&t)[LIMBS + 2], const uint32_t (&a)[LIMBS], uint32_t b)
{
	asm("mad.lo.cc.u32 %0, %14, %26, %0;\n\t"
	    "madc.lo.cc.u32 %1, %15, %26, %1;\n\t"
	    "madc.lo.cc.u32 %2, %16, %26, %2;\n\t"
	    "madc.lo.cc.u32 %3, %17, %26, %3;\n\t"
	    "madc.lo.cc.u32 %4, %18, %26, %4;\n\t"
	    "madc.lo.cc.u32 %5, %19, %26, %5;\n\t"
	    "madc.lo.cc.u32 %6, %20, %26, %6;\n\t"
	    "madc.lo.cc.u32 %7, %21, %26, %7;\n\t"
	    "madc.lo.cc.u32 %8, %22, %26, %8;\n\t"
	    "madc.lo.cc.u32 %9, %23, %26, %9;\n\t"
	    "madc.lo.cc.u32 %10, %24, %26, %10;\n\t"
	    "madc.lo.cc.u32 %11, %25, %26, %11;\n\t"
	    "addc.cc.u32 %12, %12, 0;\n\t"
	    "addc.u32 %13, %13, 0;\n\t"
	    "mad.hi.cc.u32 %1, %14, %26, %1;\n\t"
	    "madc.hi.cc.u32 %2, %15, %26, %2;\n\t"
	    "madc.hi.cc.u32 %3, %16, %26, %3;\n\t"
	    "madc.hi.cc.u32 %4, %17, %26, %4;\n\t"
	    "madc.hi.cc.u32 %5, %18, %26, %5;\n\t"
	    "madc.hi.cc.u32 %6, %19, %26, %6;\n\t"
	    "madc.hi.cc.u32 %7, %20, %26, %7;\n\t"
	    "madc.hi.cc.u32 %8, %21, %26, %8;\n\t"
	    "madc.hi.cc.u32 %9, %22, %26, %9;\n\t"
	    "madc.hi.cc.u32 %10, %23, %26, %10;\n\t"
	    "madc.hi.cc.u32 %11, %24, %26, %11;\n\t"
	    "madc.hi.cc.u32 %12, %25, %26, %12;\n\t"
	    "addc.u32 %13, %13, 0;"
		: "+r"(t[0]), "+r"(t[1]), "+r"(t[2]), "+r"(t[3]), "+r"(t[4]), "+r"(t[5]),
		"+r"(t[6]), "+r"(t[7]), "+r"(t[8]), "+r"(t[9]), "+r"(t[10]), "+r"(t[11]),
		"+r"(t[12]), "+r"(t[13])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]),
		"r"(a[7]), "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(b));
}

/* r = t - prime if that is not negative, else t, by the borrow of a sub.cc chain. */
__device__ void reduce_once(uint32_t (&r)[LIMBS], const uint32_t *t, const uint32_t (&p)[LIMBS])
{
	uint32_t d[LIMBS], borrow;

	asm("sub.cc.u32 %0, %13, %25;\n\t"
	    "subc.cc.u32 %1, %14, %26;\n\t"
	    "subc.cc.u32 %2, %15, %27;\n\t"
	    "subc.cc.u32 %3, %16, %28;\n\t"
	    "subc.cc.u32 %4, %17, %29;\n\t"
	    "subc.cc.u32 %5, %18, %30;\n\t"
	    "subc.cc.u32 %6, %19, %31;\n\t"
	    "subc.cc.u32 %7, %20, %32;\n\t"
	    "subc.cc.u32 %8, %21, %33;\n\t"
	    "subc.cc.u32 %9, %22, %34;\n\t"
	    "subc.cc.u32 %10, %23, %35;\n\t"
	    "subc.cc.u32 %11, %24, %36;\n\t"
	    "subc.u32 %12, 0, 0;"
		: "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]), "=r"(d[4]), "=r"(d[5]),
		"=r"(d[6]), "=r"(d[7]), "=r"(d[8]), "=r"(d[9]), "=r"(d[10]), "=r"(d[11]),
		"=r"(borrow)
		: "r"(t[0]), "r"(t[1]), "r"(t[2]), "r"(t[3]), "r"(t[4]), "r"(t[5]), "r"(t[6]),
		"r"(t[7]), "r"(t[8]), "r"(t[9]), "r"(t[10]), "r"(t[11]), "r"(p[0]), "r"(p[1]),
		"r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]), "r"(p[6]), "r"(p[7]), "r"(p[8]),
		"r"(p[9]), "r"(p[10]), "r"(p[11]));
	for (int i = 0; i < LIMBS; i++)
		r[i] = borrow ? t[i] : d[i];
}

struct chains {
	static __device__ void multiply(
		uint32_t (&r)[LIMBS], const uint32_t (&a)[LIMBS], const uint32_t (&b)[LIMBS])
	{
		uint32_t t[LIMBS + 2] = {}, p[LIMBS];

		for (int i = 0; i < LIMBS; i++)
			p[i] = prime[i];
#pragma unroll
		for (int i = 0; i < LIMBS; i++) {
			multiply_add(t, a, b[i]);
			multiply_add(t, p, t[0] * (uint32_t)PRIME_INVERSE);
			for (int k = 0; k < LIMBS + 1; k++)
				t[k] = t[k + 1];
			t[LIMBS + 1] = 0;
		}
		reduce_once(r, t, p);
	}
};

struct wide {
	static __device__ void multiply(
		uint32_t (&r)[LIMBS], const uint32_t (&a)[LIMBS], const uint32_t (&b)[LIMBS])
	{
		enum { WORDS = LIMBS / 2 };
		unsigned long long t[WORDS + 2] = {}, x[WORDS], y[WORDS], p[WORDS];

		for (int i = 0; i < WORDS; i++) {
			x[i] = a[2 * i] | (unsigned long long)a[2 * i + 1] << 32;
			y[i] = b[2 * i] | (unsigned long long)b[2 * i + 1] << 32;
			p[i] = prime[2 * i] | (unsigned long long)prime[2 * i + 1] << 32;
		}
		for (int i = 0; i < WORDS; i++) {
			unsigned __int128 carry = 0;
			for (int k = 0; k < WORDS; k++) {
				carry += (unsigned __int128)x[k] * y[i] + t[k];
				t[k] = (unsigned long long)carry;
				carry >>= 64;
			}
			carry += t[WORDS];
			t[WORDS] = (unsigned long long)carry;
			t[WORDS + 1] = (unsigned long long)(carry >> 64);
			unsigned long long m = t[0] * PRIME_INVERSE;
			carry = (unsigned __int128)m * p[0] + t[0];
			carry >>= 64;
			for (int k = 1; k < WORDS; k++) {
				carry += (unsigned __int128)m * p[k] + t[k];
				t[k - 1] = (unsigned long long)carry;
				carry >>= 64;
			}
			carry += t[WORDS];
			t[WORDS - 1] = (unsigned long long)carry;
			t[WORDS] = t[WORDS + 1] + (unsigned long long)(carry >> 64);
		}
		bool smaller = false;
		for (int k = WORDS - 1; k >= 0; k--)
			if (t[k] != p[k]) {
				smaller = t[k] < p[k];
				break;
			}
		unsigned __int128 borrow = 0;
		for (int k = 0; k < WORDS; k++) {
			unsigned __int128 d =
				(unsigned __int128)t[k] - (smaller ? 0 : p[k]) - borrow;
			r[2 * k] = (uint32_t)d;
			r[2 * k + 1] = (uint32_t)(d >> 32);
			borrow = d >> 64 & 1;
		}
	}
};

template <typename Field>
__global__ void products(
	const uint32_t (*a)[LIMBS], const uint32_t (*b)[LIMBS], uint32_t (*out)[LIMBS])
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t x[LIMBS], y[LIMBS], r[LIMBS];

	if (i >= CASES)
		return;
	for (int k = 0; k < LIMBS; k++) {
		x[k] = a[i][k];
		y[k] = b[i][k];
	}
	Field::multiply(r, x, y);
	for (int k = 0; k < LIMBS; k++)
		out[i][k] = r[k];
}

/* Fermat's little theorem: x^(p-2), by 381 squarings and a product for each set bit. */
template <typename Field>
__global__ void inverses(const uint32_t (*a)[LIMBS], uint32_t (*out)[LIMBS])
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t x[LIMBS], r[LIMBS];

	if (i >= CASES)
		return;
	for (int k = 0; k < LIMBS; k++) {
		x[k] = a[i][k];
		r[k] = one[k];
	}
#pragma unroll 1
	for (int bit = 32 * LIMBS - 1; bit >= 0; bit--) {
		Field::multiply(r, r, r);
		if (exponent[bit / 32] >> (bit % 32) & 1)
			Field::multiply(r, r, x);
	}
	for (int k = 0; k < LIMBS; k++)
		out[i][k] = r[k];
}

static void show(const char *what, const uint32_t (*got)[LIMBS], const uint32_t (*want)[LIMBS])
{
	OK(!memcmp(got, want, sizeof(uint32_t) * CASES * LIMBS));
	printf("%s %08x%08x... checksum %016llx\n", what, got[CASES - 1][LIMBS - 1],
		got[CASES - 1][LIMBS - 2],
		(unsigned long long)checksum(got, sizeof(uint32_t) * CASES * LIMBS));
}

int main()
{
	static uint32_t got[CASES][LIMBS];
	uint32_t(*a)[LIMBS], (*b)[LIMBS], (*out)[LIMBS];

	CU(cudaMalloc(&a, sizeof(got)));
	CU(cudaMalloc(&b, sizeof(got)));
	CU(cudaMalloc(&out, sizeof(got)));
	CU(cudaMemcpy(a, CASE_A, sizeof(got), cudaMemcpyHostToDevice));
	CU(cudaMemcpy(b, CASE_B, sizeof(got), cudaMemcpyHostToDevice));
	products<chains><<<(CASES + 31) / 32, 32>>>(a, b, out);
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	show("products, chains ", got, CASE_PRODUCT);
	products<wide><<<(CASES + 31) / 32, 32>>>(a, b, out);
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	show("products, 128 bit", got, CASE_PRODUCT);
	inverses<chains><<<(CASES + 31) / 32, 32>>>(a, out);
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	show("inverses, chains ", got, CASE_INVERSE);
	return verdict("montgomery384");
}
