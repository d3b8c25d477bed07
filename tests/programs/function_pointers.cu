/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Function pointers: a table on the device, an address that the host reads, recursion, a dense
 * switch, divergent calls.
 */
#include "check.h"

typedef int (*operation)(int, int);

__device__ __noinline__ int add(int a, int b)
{
	return a + b;
}

__device__ __noinline__ int subtract(int a, int b)
{
	return a - b;
}

__device__ __noinline__ int multiply(int a, int b)
{
	return a * b;
}

__device__ __noinline__ int power(int a, int b)
{
	return b <= 0 ? 1 : a * power(a, b - 1);
}

__device__ operation table[4] = { add, subtract, multiply, power };
__device__ operation chosen = multiply;

__device__ __noinline__ int fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ unsigned mix(unsigned x, int kind)
{
	switch (kind) {
	case 0:
		return x + 17;
	case 1:
		return x ^ 0x55555555u;
	case 2:
		return x << 3 | x >> 29;
	case 3:
		return ~x;
	case 4:
		return x * 2654435761u;
	case 5:
		return __brev(x);
	case 6:
		return x - (x >> 3);
	case 7:
		return __byte_perm(x, 0, 0x0123);
	case 8:
		return (unsigned)__popc(x);
	default:
		return 0;
	}
}

__global__ void call(int *out, operation from_host)
{
	int i = threadIdx.x;

	out[4 * i] = table[i % 4](i, 5);
	out[4 * i + 1] = from_host(i, 3);
	out[4 * i + 2] = fibonacci(i % 12);
	out[4 * i + 3] = (int)mix((unsigned)i * 40503u, i % 10);
}

int main()
{
	int got[64 * 4], *out, wrong = 0;
	static const int FIBONACCI[] = { 0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89 };
	operation fetched;

	CU(cudaMalloc(&out, sizeof(got)));
	CU(cudaMemcpyFromSymbol(&fetched, chosen, sizeof(fetched)));
	call<<<1, 64>>>(out, fetched);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++) {
		int fifth[] = { i + 5, i - 5, 5 * i, i * i * i * i * i };
		unsigned x = (unsigned)i * 40503u, reversed = 0;
		for (int bit = 0; bit < 32; bit++)
			reversed |= (x >> bit & 1) << (31 - bit);
		unsigned mixed[] = { x + 17, x ^ 0x55555555u, x << 3 | x >> 29, ~x, x * 2654435761u,
			reversed, x - (x >> 3), __builtin_bswap32(x),
			(unsigned)__builtin_popcount(x), 0 };
		wrong += got[4 * i] != fifth[i % 4] || got[4 * i + 1] != 3 * i ||
			got[4 * i + 2] != FIBONACCI[i % 12] || got[4 * i + 3] != (int)mixed[i % 10];
	}
	OK(wrong == 0);
	printf("%d %d %d %d checksum %016llx\n", got[28], got[29], got[30], got[31],
		(unsigned long long)checksum(got, sizeof(got)));
	return verdict("function_pointers");
}
