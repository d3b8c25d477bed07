/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program asks again and again whether a kernel that uses much pinned memory is complete: its
 * questions stay short, and what it wrote before is on the device when the kernel has ended.
 */
#include <time.h>

#include "check.h"

#define BYTES ((size_t)64 << 20)
#define NS    (400ull * 1000 * 1000)

static __global__ void late(const volatile int *word, int *ret)
{
	unsigned long long begun, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	while (now - begun < NS);
	*ret = *word;
}

int main()
{
	int *word, *out, got = -1, asked = 0, rounds = 0;

	CU(cudaHostAlloc(&word, BYTES, cudaHostAllocPortable));
	CU(cudaMalloc(&out, sizeof *out));
	/* On a busy machine a program does not get to ask so often in one round. */
	do {
		memset(word, 0, BYTES);
		late<<<1, 1>>>(word, out);
		CU(cudaGetLastError());
		*(volatile int *)word = 7;
		while (cudaStreamQuery(0) == cudaErrorNotReady)
			asked++;
	} while (asked <= 200 && ++rounds < 50);
	CU(cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost));
	OK(got == 7);
	OK(asked > 200);
	printf("asked often: %s, read %d\n", asked > 200 ? "yes" : "no", got);
	return verdict("pinned_asked");
}
