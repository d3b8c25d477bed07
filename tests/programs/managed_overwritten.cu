/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Managed memory that a blocking copy has read, and that the program writes when the copy has returned:
 * a kernel in another stream sees the new bytes, and the copy had the old ones, also if the device
 * was busy when the copy was called.
 */
#include "check.h"

#define SIDE  64
#define COUNT (SIDE * SIDE)

static __global__ void spin(unsigned long long ns)
{
	unsigned long long begun, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	while (now - begun < ns);
}

static __global__ void count_same(const int *p, int want, int *ret_n)
{
	for (int i = threadIdx.x; i < COUNT; i += blockDim.x)
		if (p[i] == want + i)
			atomicAdd(ret_n, 1);
}

static void fill(int *p, int value)
{
	for (int i = 0; i < COUNT; i++)
		p[i] = value + i;
}

int main()
{
	const size_t pitch = SIDE * sizeof(int);
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
	static int back[COUNT];
	cudaStream_t other;
	cudaArray_t array;
	int *p, *same, n = -1;

	CU(cudaMallocManaged(&p, COUNT * sizeof *p));
	CU(cudaMalloc(&same, sizeof *same));
	CU(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CU(cudaMallocArray(&array, &format, SIDE, SIDE));
	for (int round = 1; round < 5; round++) {
		int wrong = 0;

		CU(cudaMemset(same, 0, sizeof *same));
		CU(cudaDeviceSynchronize());
		fill(p, 1000 * round);
		spin<<<1, 1>>>(30 * 1000 * 1000);
		CU(cudaMemcpy2DToArray(array, 0, 0, p, pitch, pitch, SIDE, cudaMemcpyDefault));
		fill(p, -1000 * round);
		count_same<<<1, 256, 0, other>>>(p, -1000 * round, same);
		CU(cudaGetLastError());
		CU(cudaDeviceSynchronize());
		CU(cudaMemcpy(&n, same, sizeof n, cudaMemcpyDeviceToHost));
		CU(cudaMemcpy2DFromArray(
			back, pitch, array, 0, 0, pitch, SIDE, cudaMemcpyDeviceToHost));
		for (int i = 0; i < COUNT; i++)
			wrong += back[i] != 1000 * round + i;
		OK(wrong == 0 && n == COUNT);
		printf("round %d: %d of the copy wrong, %d of the kernel right\n", round, wrong, n);
	}
	return verdict("managed_overwritten");
}
