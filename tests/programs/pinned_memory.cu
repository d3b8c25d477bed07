/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Pinned memory: all calls that allocate it, asynchronous copies in both directions on several
 * streams, flags, registration.
 */
#include "check.h"

enum { LENGTH = 40000, STREAMS = 3 };

__global__ void triple(unsigned *data, int length)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < length)
		data[i] *= 3;
}

int main()
{
	unsigned *host[STREAMS], *device[STREAMS], flags = 99;
	size_t bytes = LENGTH * sizeof(unsigned);
	cudaStream_t stream[STREAMS];

	CU(cudaMallocHost(&host[0], bytes));
	CU(cudaHostAlloc(&host[1], bytes, cudaHostAllocPortable));
	OK(posix_memalign((void **)&host[2], 4096, 40 * 4096) == 0);
	CU(cudaHostRegister(host[2], 40 * 4096, cudaHostRegisterDefault));
	EXPECT(cudaErrorHostMemoryAlreadyRegistered,
		cudaHostRegister(host[2], 40 * 4096, cudaHostRegisterDefault));
	EXPECT(cudaErrorHostMemoryAlreadyRegistered, cudaGetLastError());
	CU(cudaHostGetFlags(&flags, host[1]));
	OK(flags & cudaHostAllocPortable);
	for (int s = 0; s < STREAMS; s++) {
		CU(cudaStreamCreate(&stream[s]));
		CU(cudaMalloc(&device[s], bytes));
		for (unsigned i = 0; i < LENGTH; i++)
			host[s][i] = i * (unsigned)(s + 1);
	}
	for (int round = 0; round < 2; round++)
		for (int s = 0; s < STREAMS; s++) {
			CU(cudaMemcpyAsync(
				device[s], host[s], bytes, cudaMemcpyHostToDevice, stream[s]));
			triple<<<(LENGTH + 255) / 256, 256, 0, stream[s]>>>(device[s], LENGTH);
			CU(cudaMemcpyAsync(
				host[s], device[s], bytes, cudaMemcpyDeviceToHost, stream[s]));
			CU(cudaStreamSynchronize(stream[s]));
		}
	for (int s = 0; s < STREAMS; s++) {
		int wrong = 0;
		for (unsigned i = 0; i < LENGTH; i++)
			wrong += host[s][i] != i * (unsigned)(s + 1) * 9;
		OK(wrong == 0);
		printf("stream %d %016llx\n", s, (unsigned long long)checksum(host[s], bytes));
		CU(cudaFree(device[s]));
		CU(cudaStreamDestroy(stream[s]));
	}
	CU(cudaFreeHost(host[0]));
	CU(cudaFreeHost(host[1]));
	CU(cudaHostUnregister(host[2]));
	EXPECT(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(host[2]));
	EXPECT(cudaErrorHostMemoryNotRegistered, cudaGetLastError());
	free(host[2]);
	return verdict("pinned_memory");
}
