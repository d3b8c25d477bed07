/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * malloc, free, new and delete on the device: threads build linked lists in parallel, which remain
 * from one launch to the next.
 */
#include "check.h"

enum { LISTS = 96, LENGTH = 20 };

struct node {
	node *next;
	unsigned value;
};

__device__ node *list[LISTS];

__global__ void grow(int *failed)
{
	int id = blockIdx.x * blockDim.x + threadIdx.x;

	for (int i = 0; i < LENGTH; i++) {
		node *n = (node *)malloc(sizeof(node));
		if (!n || ((unsigned long long)n & 15)) {
			atomicAdd(failed, 1);
			return;
		}
		n->next = list[id];
		n->value = (unsigned)(id * 1000 + i);
		list[id] = n;
	}
}

__global__ void sum_and_free(unsigned *sum)
{
	int id = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned total = 0, place = 1;

	/* A different thread than the one that made a list frees it. */
	for (node *n = list[(id + 33) % LISTS]; n;) {
		node *next = n->next;
		total += n->value * place++;
		free(n);
		n = next;
	}
	sum[(id + 33) % LISTS] = total;
}

__global__ void others(int *out)
{
	int *array = new int[100];
	char *zero = (char *)malloc(64), *text = (char *)malloc(64);

	for (int i = 0; i < 100; i++)
		array[i] = i;
	memset(zero, 0, 64);
	memset(text, 'x', 63);
	memcpy(zero, text, 10);
	out[0] = array[99] + zero[9] + zero[10];
	delete[] array;
	free(zero);
	free(text);
	free(nullptr);
	out[1] = malloc((size_t)1 << 50) == nullptr;
}

int main()
{
	unsigned sum[LISTS], *device_sum;
	int out[2], failed, *device_failed, *device_out;
	size_t heap = 0;

	CU(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
	CU(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
	OK(heap >= 16 << 20);
	CU(cudaMalloc(&device_sum, sizeof(sum)));
	CU(cudaMalloc(&device_failed, sizeof(int)));
	CU(cudaMalloc(&device_out, sizeof(out)));
	CU(cudaMemset(device_failed, 0, sizeof(int)));
	grow<<<3, LISTS / 3>>>(device_failed);
	CU(cudaMemcpy(&failed, device_failed, sizeof(int), cudaMemcpyDeviceToHost));
	OK(failed == 0);
	sum_and_free<<<1, LISTS>>>(device_sum);
	CU(cudaMemcpy(sum, device_sum, sizeof(sum), cudaMemcpyDeviceToHost));
	for (int id = 0; id < LISTS; id++) {
		unsigned want = 0;
		for (int i = 0; i < LENGTH; i++)
			want += (unsigned)((id * 1000 + LENGTH - 1 - i) * (i + 1));
		OK(sum[id] == want);
	}
	printf("lists %016llx\n", (unsigned long long)checksum(sum, sizeof(sum)));
	others<<<1, 1>>>(device_out);
	CU(cudaMemcpy(out, device_out, sizeof(out), cudaMemcpyDeviceToHost));
	OK(out[0] == 99 + 'x' && out[1] == 1);
	return verdict("device_malloc");
}
