/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Integer instructions on edge values and random ones: bit counts, byte permutes, funnel shifts,
 * high halves of products, division, video instructions.
 */
#include "check.h"
#include <vector>

enum { LENGTH = 512, RESULTS = 24 };

__global__ void operations(const unsigned *a, const unsigned *b, unsigned long long *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned x = a[i], y = b[i];
	int s = (int)x, t = (int)y;
	unsigned long long w = (unsigned long long)x << 32 | y, *r = out + RESULTS * i,
			   v = (unsigned long long)y << 32 | x;

	r[0] = (unsigned)__popc(x) + 100u * (unsigned)__popcll(w);
	r[1] = (unsigned)__clz(s) + 100u * (unsigned)__clzll((long long)w);
	r[2] = (unsigned)__ffs(s) + 100u * (unsigned)__ffsll((long long)w);
	r[3] = __brevll(w);
	r[4] = __byte_perm(x, y, y & 0x7777);
	r[5] = __funnelshift_l(x, y, y);
	r[6] = __funnelshift_rc(x, y, x);
	r[7] = __umulhi(x, y);
	r[8] = (unsigned)__mulhi(s, t);
	r[9] = __umul64hi(w, v);
	r[10] = (unsigned long long)__mul64hi((long long)w, (long long)v);
	r[11] = __umul24(x, y);
	r[12] = (unsigned)__mul24(s, t);
	r[13] = __usad(x, y, 3);
	r[14] = (unsigned)__sad(s, t, 3);
	r[15] = y ? x / y + (unsigned long long)(x % y) * 3 : 0;
	r[16] = t && !(s == INT32_MIN && t == -1)
		? (unsigned long long)(s / t + (long long)(s % t) * 3)
		: 0;
	r[17] = v ? w / v + w % v * 3 : 0;
	r[18] = v ? (unsigned long long)((long long)w / (long long)(v | 2)) : 0;
	r[19] = __dp4a(x, y, 7u);
	r[20] = (unsigned)__dp4a(s, t, -7);
	r[21] = w << (y & 63) ^ w >> (x & 63) ^ (unsigned long long)((long long)v >> (y & 63));
	r[22] = __hadd(s, t) + 2ull * __uhadd(x, y) + 3ull * (unsigned)__rhadd(s, t);
	r[23] = __vaddus4(x, y) + ((unsigned long long)__vabsdiffu4(x, y) << 32);
}

static unsigned popcount(unsigned long long x)
{
	return (unsigned)__builtin_popcountll(x);
}

static void host(unsigned x, unsigned y, unsigned long long *r)
{
	int s = (int)x, t = (int)y;
	unsigned long long w = (unsigned long long)x << 32 | y, v = (unsigned long long)y << 32 | x,
			   bytes = v;

	r[0] = popcount(x) + 100 * popcount(w);
	r[1] = (x ? __builtin_clz(x) : 32) + 100u * (w ? __builtin_clzll(w) : 64);
	r[2] = (unsigned)__builtin_ffs(s) + 100u * (unsigned)__builtin_ffsll((long long)w);
	r[3] = r[4] = 0;
	for (int bit = 0; bit < 64; bit++)
		r[3] |= (w >> bit & 1) << (63 - bit);
	for (int k = 0; k < 4; k++)
		r[4] |= (bytes >> 8 * (y >> 4 * k & 7) & 0xff) << 8 * k;
	r[5] = (unsigned)(v << (y & 31) >> 32);
	r[6] = (unsigned)(x > 31 ? y : x ? v >> x : x);
	r[7] = (unsigned)((unsigned long long)x * y >> 32);
	r[8] = (unsigned)((long long)s * t >> 32);
	r[9] = (unsigned long long)((unsigned __int128)w * v >> 64);
	r[10] = (unsigned long long)((__int128)(long long)w * (long long)v >> 64);
	r[11] = (x & 0xffffff) * (y & 0xffffff);
	r[12] = (unsigned)((s << 8 >> 8) * (long long)(t << 8 >> 8));
	r[13] = (x > y ? x - y : y - x) + 3;
	r[14] = (s > t ? x - y : y - x) + 3;
	r[15] = y ? x / y + (unsigned long long)(x % y) * 3 : 0;
	r[16] = t && !(s == INT32_MIN && t == -1)
		? (unsigned long long)(s / t + (long long)(s % t) * 3)
		: 0;
	r[17] = v ? w / v + w % v * 3 : 0;
	r[18] = v ? (unsigned long long)((long long)w / (long long)(v | 2)) : 0;
	unsigned dot = 7;
	int signed_dot = -7;
	for (int k = 0; k < 32; k += 8) {
		dot += (x >> k & 0xff) * (y >> k & 0xff);
		signed_dot += (signed char)(x >> k) * (signed char)(y >> k);
	}
	r[19] = dot;
	r[20] = (unsigned)signed_dot;
	r[21] = w << (y & 63) ^ w >> (x & 63) ^ (unsigned long long)((long long)v >> (y & 63));
	r[22] = (unsigned long long)(((long long)s + t) >> 1) +
		2 * (((unsigned long long)x + y) >> 1) +
		3ull * (unsigned)(((long long)s + t + 1) >> 1);
	r[23] = 0;
	for (int k = 0; k < 32; k += 8) {
		unsigned p = x >> k & 0xff, q = y >> k & 0xff;
		r[23] |= (unsigned long long)(p + q > 255 ? 255 : p + q) << k;
		r[23] |= (unsigned long long)(p > q ? p - q : q - p) << (32 + k);
	}
}

int main()
{
	static const unsigned EDGE[] = { 0, 1, 2, 31, 32, 0x7fffffff, 0x80000000, 0xffffffff,
		0x00ff00ff, 0x7f80ff01 };
	std::vector<unsigned> a(LENGTH), b(LENGTH);
	std::vector<unsigned long long> got(LENGTH * RESULTS);
	unsigned *device_a, *device_b;
	unsigned long long *device_out;
	uint32_t seed = 90;
	int wrong[RESULTS] = {};

	for (int i = 0; i < LENGTH; i++) {
		a[i] = i < 100 ? EDGE[i / 10] : random_next(&seed) >> (i % 32);
		b[i] = i < 100 ? EDGE[i % 10] : random_next(&seed) >> (i / 32 % 32);
	}
	CU(cudaMalloc(&device_a, LENGTH * 4));
	CU(cudaMalloc(&device_b, LENGTH * 4));
	CU(cudaMalloc(&device_out, LENGTH * RESULTS * 8));
	CU(cudaMemcpy(device_a, a.data(), LENGTH * 4, cudaMemcpyHostToDevice));
	CU(cudaMemcpy(device_b, b.data(), LENGTH * 4, cudaMemcpyHostToDevice));
	operations<<<LENGTH / 64, 64>>>(device_a, device_b, device_out);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got.data(), device_out, got.size() * 8, cudaMemcpyDeviceToHost));
	for (int i = 0; i < LENGTH; i++) {
		unsigned long long want[RESULTS];
		host(a[i], b[i], want);
		for (int k = 0; k < RESULTS; k++)
			if (got[RESULTS * i + k] != want[k] && wrong[k]++ == 0)
				fprintf(stderr, "result %d of %08x %08x: %llx, not %llx\n", k, a[i],
					b[i], got[RESULTS * i + k], want[k]);
	}
	for (int k = 0; k < RESULTS; k++)
		OK(wrong[k] == 0);
	printf("checksum %016llx\n", (unsigned long long)checksum(got.data(), got.size() * 8));
	return verdict("integer_operations");
}
