/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Generic pointers, functions with struct arguments and many arguments, local arrays, and queries
 * of address spaces.
 */
#include "check.h"

enum { THREADS = 64, RESULTS = 8 };

struct wide {
	float4 f;
	char tag;
	long long l[3];
};

struct tiny {
	unsigned char r, g, b;
};

__device__ int global_words[THREADS];
__constant__ int constant_words[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };

__device__ __noinline__ int sum_of(const int *p, int count)
{
	int sum = 0;

	for (int i = 0; i < count; i++)
		sum += p[i];
	return sum;
}

__device__ __noinline__ wide change(wide w, int by, tiny t, double d, short s, wide *also)
{
	w.f.x += (float)by;
	w.f.w -= (float)d;
	w.tag = (char)(w.tag + t.b);
	w.l[by % 3] += s;
	also->l[0] = w.l[2] + t.r;
	return w;
}

__device__ __noinline__ tiny mix(tiny a, tiny b)
{
	tiny t = { (unsigned char)(a.r + b.g), (unsigned char)(a.g + b.b),
		(unsigned char)(a.b + b.r) };

	return t;
}

__device__ __noinline__ void sort(int *p, int count)
{
	for (int i = 1; i < count; i++) {
		int value = p[i], k = i;
		for (; k > 0 && p[k - 1] > value; k--)
			p[k] = p[k - 1];
		p[k] = value;
	}
}

__global__ void everywhere(const int *in, long long *out)
{
	__shared__ int shared_words[THREADS];
	int i = threadIdx.x, local_words[12];
	long long *r = out + RESULTS * i;

	shared_words[i] = 3 * i;
	global_words[i] = i * i;
	for (int k = 0; k < 12; k++)
		local_words[k] = (i * 7 + k * 5) % 23;
	__syncthreads();
	/* One function, called with pointers to four address spaces. */
	const int *place = i % 4 == 0 ? shared_words
		: i % 4 == 1          ? global_words
		: i % 4 == 2          ? local_words
				      : in;
	r[0] = sum_of(place, 12);
	sort(local_words, 12);
	r[1] = local_words[i % 12] * 100 + local_words[11];
	wide w = { { 1, 2, 3, 4 }, 'a', { i, 2 * i, 3 * i } }, also = w;
	tiny t = { (unsigned char)i, (unsigned char)(i * 5), (unsigned char)(i % 3) };
	wide changed = change(w, i % 5, t, 0.5, (short)-i, &also);
	r[2] = (long long)(changed.f.x * 8) + (long long)(changed.f.w * 2) + changed.tag;
	r[3] = changed.l[0] + 1000 * changed.l[1] + 1000000 * changed.l[2] + also.l[0];
	tiny m = mix(t, tiny{ 10, 20, 30 });
	r[4] = m.r + 1000 * m.g + 1000000 * m.b;
	r[5] = __isGlobal(in) + 2 * __isShared(shared_words) + 4 * __isLocal(local_words) +
		8 * __isShared(in) + 16 * __isGlobal(shared_words) + 32 * __isGlobal(global_words);
	r[6] = constant_words[i % 8] + sum_of(constant_words, 1 + i % 8);
	/* Reads the bytes of a word through pointers of other types. */
	unsigned word = 0x01020304u * (unsigned)(i % 50);
	const unsigned char *bytes = (const unsigned char *)&word;
	unsigned short halves[2];
	memcpy(halves, bytes, 4);
	r[7] = bytes[i % 4] * 65536 + halves[i % 2];
}

int main()
{
	static long long got[THREADS][RESULTS];
	int in[12], *device_in, wrong = 0;
	long long *out;
	static const int CONSTANT[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };

	for (int k = 0; k < 12; k++)
		in[k] = 1000 - k;
	CU(cudaMalloc(&device_in, sizeof(in)));
	CU(cudaMalloc(&out, sizeof(got)));
	CU(cudaMemcpy(device_in, in, sizeof(in), cudaMemcpyHostToDevice));
	everywhere<<<1, THREADS>>>(device_in, out);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < THREADS; i++) {
		long long want[RESULTS] = {}, l[3] = { i, 2 * i, 3 * i };
		int local[12];
		for (int k = 0; k < 12; k++) {
			local[k] = (i * 7 + k * 5) % 23;
			want[0] += i % 4 == 0 ? 3 * k
				: i % 4 == 1  ? k * k
				: i % 4 == 2  ? local[k]
					      : in[k];
		}
		for (int a = 0; a < 12; a++)
			for (int b = a + 1; b < 12; b++)
				if (local[b] < local[a]) {
					int c = local[a];
					local[a] = local[b];
					local[b] = c;
				}
		want[1] = local[i % 12] * 100 + local[11];
		want[2] = 8 * (1 + i % 5) + 7 + 'a' + i % 3;
		l[i % 5 % 3] -= i;
		want[3] = l[0] + 1000 * l[1] + 1000000 * l[2] + l[2] + i;
		want[4] = (i + 20) % 256 + 1000 * ((i * 5 % 256 + 30) % 256) +
			1000000ll * (i % 3 + 10);
		want[5] = 1 + 2 + 4 + 32;
		want[6] = CONSTANT[i % 8];
		for (int k = 0; k <= i % 8; k++)
			want[6] += CONSTANT[k];
		unsigned word = 0x01020304u * (unsigned)(i % 50);
		want[7] = (word >> 8 * (i % 4) & 0xff) * 65536 + (word >> 16 * (i % 2) & 0xffff);
		for (int k = 0; k < RESULTS; k++)
			if (got[i][k] != want[k] && wrong++ < 10)
				fprintf(stderr, "thread %d result %d: %lld, not %lld\n", i, k,
					got[i][k], want[k]);
	}
	OK(wrong == 0);
	printf("checksum %016llx\n", (unsigned long long)checksum(got, sizeof(got)));
	return verdict("address_spaces");
}
