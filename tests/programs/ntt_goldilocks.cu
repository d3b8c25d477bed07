/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Number-theoretic transform modulo the Goldilocks prime 2^64 - 2^32 + 1, forward and inverse, and
 * a product of polynomials.
 */
#include "check.h"
#include <vector>

enum { LOG = 11, LENGTH = 1 << LOG };
typedef unsigned long long word;
#define PRIME 0xffffffff00000001ull

static __host__ __device__ word add(word a, word b)
{
	word sum = a + b;

	return sum < a || sum >= PRIME ? sum - PRIME : sum;
}

static __device__ word subtract(word a, word b)
{
	return a >= b ? a - b : a + (PRIME - b);
}

/* Modulo the prime, 2^64 = 2^32 - 1 and 2^96 = -1: two additions reduce a 128-bit product. */
static __host__ __device__ word multiply(word a, word b)
{
#ifdef __CUDA_ARCH__
	word low = a * b, high = __umul64hi(a, b);
#else
	unsigned __int128 product = (unsigned __int128)a * b;
	word low = (word)product, high = (word)(product >> 64);
#endif
	word top = high >> 32, middle = high & 0xffffffff;
	word r = low - top;

	if (low < top)
		r -= 0xffffffffull;
	word m = (middle << 32) - middle, sum = r + m;
	if (sum < r)
		sum += 0xffffffffull;
	return sum >= PRIME ? sum - PRIME : sum;
}

static __host__ word power(word x, word n)
{
	word r = 1;

	for (; n; n >>= 1, x = multiply(x, x))
		if (n & 1)
			r = multiply(r, x);
	return r;
}

__global__ void butterflies(word *data, const word *roots, int half)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x, k = t % half, i = t / half * 2 * half + k;
	word a = data[i], b = multiply(data[i + half], roots[k * (LENGTH / 2 / half)]);

	data[i] = add(a, b);
	data[i + half] = subtract(a, b);
}

__global__ void reverse(const word *in, word *out)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	out[__brev(i) >> (32 - LOG)] = in[i];
}

__global__ void pointwise(word *a, const word *b, word factor)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	a[i] = multiply(multiply(a[i], b ? b[i] : 1), factor);
}

static void transform(word *data, word *scratch, const word *roots)
{
	reverse<<<LENGTH / 128, 128>>>(data, scratch);
	CU(cudaMemcpyAsync(data, scratch, LENGTH * 8, cudaMemcpyDeviceToDevice));
	for (int half = 1; half < LENGTH; half *= 2)
		butterflies<<<LENGTH / 2 / 128, 128>>>(data, roots, half);
	CU(cudaGetLastError());
}

int main()
{
	std::vector<word> a(LENGTH), b(LENGTH), got(LENGTH), want(LENGTH), roots(LENGTH / 2),
		inverse(LENGTH / 2);
	word *device_a, *device_b, *scratch, *device_roots, *device_inverse;
	/* 7 generates the multiplicative group. */
	word root = power(7, (PRIME - 1) / LENGTH), back = power(root, PRIME - 2),
	     scale = power(LENGTH, PRIME - 2);
	uint32_t seed = 64;

	OK(power(root, LENGTH / 2) == PRIME - 1);
	for (int i = 0; i < LENGTH; i++) {
		a[i] = i < LENGTH / 2
			? ((word)random_next(&seed) << 32 | random_next(&seed)) % PRIME
			: 0;
		b[i] = i < LENGTH / 2
			? ((word)random_next(&seed) << 32 | random_next(&seed)) % PRIME
			: 0;
	}
	roots[0] = inverse[0] = 1;
	for (int i = 1; i < LENGTH / 2; i++) {
		roots[i] = multiply(roots[i - 1], root);
		inverse[i] = multiply(inverse[i - 1], back);
	}
	for (word **p : { &device_a, &device_b, &scratch, &device_roots, &device_inverse })
		CU(cudaMalloc(p, LENGTH * 8));
	CU(cudaMemcpy(device_a, a.data(), LENGTH * 8, cudaMemcpyHostToDevice));
	CU(cudaMemcpy(device_b, b.data(), LENGTH * 8, cudaMemcpyHostToDevice));
	CU(cudaMemcpy(device_roots, roots.data(), LENGTH * 4, cudaMemcpyHostToDevice));
	CU(cudaMemcpy(device_inverse, inverse.data(), LENGTH * 4, cudaMemcpyHostToDevice));

	transform(device_a, scratch, device_roots);
	CU(cudaMemcpy(got.data(), device_a, LENGTH * 8, cudaMemcpyDeviceToHost));
	word first = 0;
	for (int i = 0; i < LENGTH; i++)
		first = add(first, a[i]);
	OK(got[0] == first);
	printf("forward %016llx\n", (unsigned long long)checksum(got.data(), LENGTH * 8));
	transform(device_a, scratch, device_inverse);
	pointwise<<<LENGTH / 128, 128>>>(device_a, nullptr, scale);
	CU(cudaMemcpy(got.data(), device_a, LENGTH * 8, cudaMemcpyDeviceToHost));
	OK(got == a);

	transform(device_a, scratch, device_roots);
	transform(device_b, scratch, device_roots);
	pointwise<<<LENGTH / 128, 128>>>(device_a, device_b, scale);
	transform(device_a, scratch, device_inverse);
	CU(cudaMemcpy(got.data(), device_a, LENGTH * 8, cudaMemcpyDeviceToHost));
	for (int i = 0; i < LENGTH / 2; i++)
		for (int j = 0; j < LENGTH / 2; j++)
			want[i + j] = add(want[i + j], multiply(a[i], b[j]));
	OK(got == want);
	printf("product %016llx\n", (unsigned long long)checksum(got.data(), LENGTH * 8));
	return verdict("ntt_goldilocks");
}
