/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Kernel parameters of 4096 bytes, the limit before CUDA 12.1: structs by value of various sizes
 * and alignments, also unaligned.
 */
#include "check.h"

struct large {
	int head;
	double real[250];
	char tail[37];
	short last;
};

struct __attribute__((packed)) odd {
	char a;
	int b;
	char c;
	long long d;
};

struct alignas(16) aligned {
	float4 f;
	char c;
};

template <int N> struct block {
	unsigned char byte[N];
};

__global__ void mixed(large l, char c, odd o, short s, aligned a, float f, long long *out)
{
	long long sum = l.head + c + o.a + o.b + o.c + o.d + s +
		(long long)(a.f.x + a.f.y + a.f.z + a.f.w) + a.c + (long long)f;

	for (int i = threadIdx.x; i < 250; i += 32)
		out[1 + i] = (long long)(l.real[i] * 4);
	for (int i = 0; i < 37; i++)
		sum += l.tail[i] * i;
	if (threadIdx.x == 0)
		out[0] = sum * l.last;
}

/* Indexed by a run-time value, so that the compiler must access parameter memory directly. */
template <int N> __global__ void whole(const __grid_constant__ block<N> in, unsigned *out)
{
	unsigned sum = 0;

	for (int i = threadIdx.x; i < N; i += blockDim.x)
		sum = sum * 31 + in.byte[i];
	out[threadIdx.x] = sum;
}

template <int N> static void run_whole()
{
	static block<N> in;
	unsigned got[64], *out;
	uint32_t seed = N;

	for (unsigned char &byte : in.byte)
		byte = (unsigned char)random_next(&seed);
	CU(cudaMalloc(&out, sizeof(got)));
	whole<N><<<1, 64>>>(in, out);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int t = 0; t < 64; t++) {
		unsigned sum = 0;
		for (int i = t; i < N; i += 64)
			sum = sum * 31 + in.byte[i];
		OK(got[t] == sum);
	}
	printf("%d bytes %016llx\n", N, (unsigned long long)checksum(got, sizeof(got)));
	CU(cudaFree(out));
}

int main()
{
	long long got[251], *out, want;
	large l = {};
	odd o = { -3, 70000, 9, -5000000000ll };
	aligned a = { { 1.5f, 2.5f, 3.0f, -1.0f }, 'x' };

	l.head = -77;
	l.last = 3;
	for (int i = 0; i < 250; i++)
		l.real[i] = i * 0.25 - 9;
	for (int i = 0; i < 37; i++)
		l.tail[i] = (char)(i * 3);
	CU(cudaMalloc(&out, sizeof(got)));
	mixed<<<1, 32>>>(l, -4, o, -300, a, 12.9f, out);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	want = -77 - 4 - 3 + 70000 + 9 - 5000000000ll - 300 + 6 + 'x' + 12;
	for (int i = 0; i < 37; i++)
		want += l.tail[i] * i;
	OK(got[0] == want * 3);
	for (int i = 0; i < 250; i++)
		OK(got[1 + i] == i - 36);
	printf("mixed %lld %016llx\n", got[0], (unsigned long long)checksum(got, sizeof(got)));
	run_whole<1>();
	run_whole<333>();
	run_whole<4088>(); /* with the pointer: 4096 */
	return verdict("large_parameters");
}
