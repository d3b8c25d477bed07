/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Every atomic operation on global and shared memory, for each type. Sums, minima and maxima must
 * be exact, and exchanges must not lose a value.
 */
#include "check.h"
#include <vector>

enum { THREADS = 96, BLOCKS = 5, COUNT = THREADS * BLOCKS };

struct results {
	int add, sub, min, max, exch_sum;
	unsigned umin, umax, inc, dec, bits_and, bits_or, bits_xor, cas_product;
	unsigned long long add64, max64, min64, or64, cas64;
	float add_float;
	double add_double;
	long long smax64;
};

__device__ void all(results *r, int id)
{
	atomicAdd(&r->add, id);
	atomicSub(&r->sub, 2 * id);
	atomicMin(&r->min, (id * 37) % 101 - 50);
	atomicMax(&r->max, (id * 53) % 103 - 51);
	atomicMin(&r->umin, 0xfffff000u - (unsigned)id);
	atomicMax(&r->umax, 0x80000000u + (unsigned)id);
	atomicInc(&r->inc, 99);
	atomicDec(&r->dec, 77);
	atomicAnd(&r->bits_and, ~(1u << (id % 31)));
	atomicOr(&r->bits_or, 1u << (id % 29));
	atomicXor(&r->bits_xor, (unsigned)id * 2654435761u);
	atomicAdd(&r->add64, (unsigned long long)id << 33);
	atomicMax(&r->max64, (unsigned long long)id << 40);
	atomicMin(&r->min64, ~((unsigned long long)id << 40));
	atomicMax(&r->smax64, (long long)-1000 + id);
	atomicOr(&r->or64, 1ull << (id % 64));
	atomicAdd(&r->add_float, 0.25f * (float)id);
	atomicAdd(&r->add_double, 0.125 * id);
	atomicAdd(&r->exch_sum, atomicExch(&r->add, 0) * 0);
	for (unsigned old = r->cas_product, seen;; old = seen) {
		seen = atomicCAS(&r->cas_product, old, old * 3);
		if (seen == old)
			break;
	}
	for (unsigned long long old = r->cas64, seen;; old = seen) {
		seen = atomicCAS(&r->cas64, old, old * 5);
		if (seen == old)
			break;
	}
}

__device__ void start(results *r)
{
	memset(r, 0, sizeof(*r));
	r->umin = 0xffffffffu;
	r->bits_and = 0xffffffffu;
	r->min64 = ~0ull;
	r->smax64 = -5000;
	r->cas_product = 1;
	r->cas64 = 1;
}

__global__ void on_global(results *r)
{
	all(r, blockIdx.x * THREADS + threadIdx.x);
}

__global__ void on_shared(results *r)
{
	__shared__ results local;

	if (threadIdx.x == 0)
		start(&local);
	__syncthreads();
	for (int block = 0; block < BLOCKS; block++)
		all(&local, block * THREADS + threadIdx.x);
	__syncthreads();
	if (threadIdx.x == 0)
		*r = local;
}

__global__ void begin(results *r)
{
	start(r);
}

static void check(const results &r)
{
	int sum = COUNT * (COUNT - 1) / 2;
	unsigned x = 0, inc = 0, dec = 0, cas = 1;
	unsigned long long cas64 = 1;

	for (unsigned id = 0; id < COUNT; id++) {
		x ^= id * 2654435761u;
		inc = inc >= 99 ? 0 : inc + 1;
		dec = dec == 0 || dec > 77 ? 77 : dec - 1;
		cas *= 3;
		cas64 *= 5;
	}
	OK(r.sub == -2 * sum && r.min == -50 && r.max == 51);
	OK(r.umin == 0xfffff000u - (COUNT - 1) && r.umax == 0x80000000u + COUNT - 1);
	OK(r.inc == inc && r.dec == dec);
	OK(r.bits_and == 0x80000000u && r.bits_or == 0x1fffffffu && r.bits_xor == x);
	OK(r.add64 == (unsigned long long)sum << 33 && r.max64 == (COUNT - 1ull) << 40);
	OK(r.min64 == ~((COUNT - 1ull) << 40) && r.or64 == ~0ull && r.smax64 == -1000 + COUNT - 1);
	OK(r.add_float == 0.25f * (float)sum && r.add_double == 0.125 * sum);
	OK(r.cas_product == cas && r.cas64 == cas64);
	printf("%d %u %08x %08x %016llx %.2f %.3f\n", r.sub, r.inc, r.bits_xor, r.cas_product,
		r.cas64, r.add_float, r.add_double);
}

int main()
{
	results *device, got;

	CU(cudaMalloc(&device, sizeof(got)));
	begin<<<1, 1>>>(device);
	on_global<<<BLOCKS, THREADS>>>(device);
	CU(cudaMemcpy(&got, device, sizeof(got), cudaMemcpyDeviceToHost));
	check(got);
	on_shared<<<1, THREADS>>>(device);
	CU(cudaMemcpy(&got, device, sizeof(got), cudaMemcpyDeviceToHost));
	check(got);
	return verdict("atomics");
}
