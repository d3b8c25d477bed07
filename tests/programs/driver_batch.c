/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Batches of copies: rows between host and device memory with several sets of attributes, and 3D
 * copies. A refused batch returns the index of the wrong copy and makes none of its copies.
 */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define N    1000
#define SIZE 256

typedef CUresult (*boxes_12080)(
	size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long, CUstream);
typedef CUresult (*batch_12080)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t,
	CUmemcpyAttributes *, size_t *, size_t, size_t *, CUstream);

static CUdeviceptr dsts[N], srcs[N];
static size_t sizes[N];
static unsigned char host[N * SIZE], back[N * SIZE];
static CUmemcpyAttributes attrs[2] = {
	{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL },
	{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
		.flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE },
};
static size_t firsts[2] = { 0, N / 2 };

static void rows(CUdeviceptr memory, CUstream stream)
{
	for (size_t i = 0; i < sizeof host; i++)
		host[i] = (unsigned char)(i * 7 + i / 251);
	for (size_t i = 0; i < N; i++) {
		dsts[i] = memory + i * SIZE;
		srcs[i] = (CUdeviceptr)(uintptr_t)(host + (N - 1 - i) * SIZE);
		sizes[i] = 1 + i % SIZE;
	}
	CU(cuMemsetD8Async(memory, 0, N * SIZE, stream));
	CU(cuMemcpyBatchAsync(dsts, srcs, sizes, N, attrs, firsts, 2, stream));
	CU(cuStreamSynchronize(stream));
	CU(cuMemcpyDtoH(back, memory, sizeof back));
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < SIZE; k++)
			if (back[i * SIZE + k] !=
				(k < sizes[i] ? host[(N - 1 - i) * SIZE + k] : 0)) {
				printf("row %zu, byte %zu is wrong\n", i, k);
				exit(1);
			}
}

/* Device to host and device to device in one batch. */
static void both_ways(CUdeviceptr memory, CUstream stream)
{
	CUdeviceptr to[2] = { (CUdeviceptr)(uintptr_t)back, memory + SIZE };
	CUdeviceptr from[2] = { memory, memory + 2 * SIZE };
	size_t size[2] = { SIZE, SIZE }, first = 0;
	CUmemcpyAttributes attr = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY };
	unsigned char third[SIZE];

	CU(cuMemcpyBatchAsync(to, from, size, 2, &attr, &first, 1, stream));
	CU(cuStreamSynchronize(stream));
	CU(cuMemcpyDtoH(third, memory + SIZE, SIZE));
	printf("both ways %d %d\n", memcmp(back, host + (N - 1) * SIZE, sizes[0]),
		third[0] == host[(N - 3) * SIZE]);
}

static void boxes(CUdeviceptr memory, CUstream stream)
{
	CUDA_MEMCPY3D_BATCH_OP op[2] = { 0 };
	CUdriverProcAddressQueryResult found;
	boxes_12080 batch;
	size_t index = 7;

	for (int i = 0; i < 2; i++) {
		op[i].src.type = op[i].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
		op[i].src.op.ptr.ptr = (CUdeviceptr)(uintptr_t)(host + i * 4096);
		op[i].src.op.ptr.rowLength = 64;
		op[i].dst.op.ptr.ptr = memory + (CUdeviceptr)i * 4096;
		op[i].dst.op.ptr.rowLength = 128;
		op[i].dst.op.ptr.layerHeight = 8;
		op[i].extent = (CUextent3D){ 64, 4, 2 };
		op[i].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	}
	CU(cuMemsetD8Async(memory, 0, 8192, stream));
	CU(cuMemcpy3DBatchAsync(2, op, 0, stream));
	CU(cuStreamSynchronize(stream));
	CU(cuMemcpyDtoH(back, memory, 8192));
	for (int i = 0; i < 2; i++)
		for (int z = 0; z < 2; z++)
			for (int y = 0; y < 4; y++)
				if (memcmp(back + i * 4096 + z * 1024 + y * 128,
					    host + i * 4096 + z * 256 + y * 64, 64)) {
					printf("box %d, slice %d, row %d is wrong\n", i, z, y);
					exit(1);
				}
	op[1].extent.depth = 0;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(2, op, 0, stream));
	CU(cuGetProcAddress("cuMemcpy3DBatchAsync", (void **)&batch, 12080, 0, &found));
	EXPECT(CUDA_ERROR_INVALID_VALUE, batch(2, op, &index, 0, stream));
	OK(index == 1);
	op[1].extent.depth = 2;
	op[1].dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(2, op, 0, stream)); /* not an array */
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(1, op, 1, stream));
}

static void refused(CUstream stream)
{
	CUdriverProcAddressQueryResult found;
	size_t zero_firsts[2] = { 0, 0 }, index = 7;
	batch_12080 batch;

	CU(cuGetProcAddress("cuMemcpyBatchAsync", (void **)&batch, 12080, 0, &found));
	sizes[5] = 0;
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		batch(dsts, srcs, sizes, N, attrs, firsts, 2, &index, stream));
	OK(index == 5);
	sizes[5] = 6;
	sizes[9] = N * SIZE; /* beyond the end */
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		batch(dsts, srcs, sizes, N, attrs, firsts, 2, &index, stream));
	OK(index == 9);
	sizes[9] = 10;
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		batch(dsts, srcs, sizes, N, attrs, firsts, 0, &index, stream));
	OK(index == SIZE_MAX); /* no copy caused the error */
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		batch(dsts, srcs, sizes, N, attrs, zero_firsts, 2, &index, stream));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		batch(dsts, srcs, sizes, N, attrs, firsts, 2, &index, NULL));
	attrs[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		batch(dsts, srcs, sizes, N, attrs, firsts, 2, &index, stream));
	attrs[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		batch(dsts, srcs, sizes, 0, attrs, firsts, 1, NULL, stream));
	EXPECT(CUDA_SUCCESS, batch(dsts, srcs, sizes, N, attrs, firsts, 2, &index, stream));
	CU(cuStreamSynchronize(stream));
}

int main(void)
{
	CUdeviceptr memory;
	CUcontext context;
	CUstream stream;

	CU(cuInit(0));
	CU(cuDevicePrimaryCtxRetain(&context, 0));
	CU(cuCtxSetCurrent(context));
	CU(cuMemAlloc(&memory, N * SIZE));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	rows(memory, stream);
	both_ways(memory, stream);
	boxes(memory, stream);
	refused(stream);
	CU(cuStreamDestroy(stream));
	CU(cuMemFree(memory));
	return verdict("driver_batch");
}
