/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Occupancy and function attributes: checks that they agree with each other and with the limits,
 * not their values on one device.
 */
#include "check.h"

__constant__ int constants[300];

__global__ void plain(int *out)
{
	out[threadIdx.x] = constants[threadIdx.x % 300];
}

__global__ void __launch_bounds__(96) heavy(int *out)
{
	__shared__ double lines[1000];

	lines[threadIdx.x] = threadIdx.x;
	__syncthreads();
	out[threadIdx.x] = (int)lines[95 - threadIdx.x];
}

__global__ void dynamic(int *out)
{
	extern __shared__ int words[];

	words[threadIdx.x] = threadIdx.x;
	__syncthreads();
	out[threadIdx.x] = words[blockDim.x - 1 - threadIdx.x];
}

static size_t shared_for(int block)
{
	return (size_t)block * 16;
}

int main()
{
	cudaFuncAttributes p, h, d;
	cudaDeviceProp prop;
	int blocks = 0, before = 1 << 30, grid = 0, block = 0, *out, got[96];
	size_t available = 0;

	CU(cudaGetDeviceProperties(&prop, 0));
	CU(cudaFuncGetAttributes(&p, plain));
	CU(cudaFuncGetAttributes(&h, heavy));
	CU(cudaFuncGetAttributes(&d, dynamic));
	OK(p.maxThreadsPerBlock >= 32 && p.maxThreadsPerBlock <= prop.maxThreadsPerBlock);
	OK(h.maxThreadsPerBlock == 96);
	OK(p.sharedSizeBytes == 0 && h.sharedSizeBytes == 8000 && d.sharedSizeBytes == 0);
	OK(p.constSizeBytes >= 1200);
	OK(p.numRegs > 0 && p.numRegs <= 255 && p.ptxVersion > 0 && p.binaryVersion > 0);
	OK(d.maxDynamicSharedSizeBytes == 48 * 1024);

	for (int threads = 32; threads <= 1024; threads *= 2) {
		CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, threads, 0));
		OK(blocks >= 1 && blocks * threads <= prop.maxThreadsPerMultiProcessor &&
			blocks <= before);
		OK(blocks <= prop.maxBlocksPerMultiProcessor);
		before = blocks;
	}
	before = 1 << 30;
	for (size_t bytes = 0; bytes <= 48 * 1024; bytes += 8 * 1024) {
		CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic, 64, bytes));
		OK(blocks >= 1 && blocks <= before &&
			(size_t)blocks * bytes <= prop.sharedMemPerMultiprocessor);
		before = blocks;
	}
	CU(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		&blocks, heavy, 96, 0, cudaOccupancyDefault));
	OK(blocks >= 1 && (size_t)blocks * 8000 <= prop.sharedMemPerMultiprocessor);
	CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, heavy, 97, 0));
	OK(blocks == 0);
	EXPECT(cudaErrorInvalidValue,
		cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 0, 0));
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());

	CU(cudaOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 0));
	OK(block % 32 == 0 && block > 0 && block <= p.maxThreadsPerBlock &&
		grid >= prop.multiProcessorCount);
	CU(cudaOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 128));
	OK(block > 0 && block <= 128);
	CU(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, dynamic, shared_for, 0));
	OK(block > 0 && shared_for(block) <= 48 * 1024);
	CU(cudaOccupancyAvailableDynamicSMemPerBlock(&available, dynamic, 1, 128));
	OK(available > 0 && available <= prop.sharedMemPerMultiprocessor);

	CU(cudaFuncSetCacheConfig(plain, cudaFuncCachePreferL1));
	CU(cudaFuncSetAttribute(dynamic, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
	CU(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
	CU(cudaFuncGetAttributes(&d, dynamic));
	OK(d.maxDynamicSharedSizeBytes == 1024 && d.preferredShmemCarveout == 50);
	EXPECT(cudaErrorInvalidValue,
		cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());
	/*
	 * Not a kernel: a runtime that treats the pointer as a cudaKernel_t reports an invalid
	 * handle.
	 */
	cudaError_t status = cudaFuncGetAttributes(&d, (const void *)shared_for);
	code_note("not a kernel", (int)status);
	OK(status == cudaErrorInvalidDeviceFunction || status == cudaErrorInvalidResourceHandle);
	EXPECT(status, cudaGetLastError());

	CU(cudaMalloc(&out, sizeof(got)));
	heavy<<<1, 96>>>(out);
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 96; i++)
		OK(got[i] == 95 - i);
	return verdict("occupancy");
}
