/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory runs out: cudaMalloc returns the error at the call, other calls still work, and freed
 * memory can be allocated again.
 */
#include "check.h"
#include <vector>

__global__ void touch(unsigned *first, unsigned *last)
{
	*first = 123;
	*last = 456;
}

int main()
{
	size_t free_before = 0, total = 0, free_after = 0;
	std::vector<unsigned char *> pieces;
	void *p = nullptr;
	unsigned got[2];

	CU(cudaFree(0));
	CU(cudaMemGetInfo(&free_before, &total));
	OK(free_before > 0 && free_before <= total);
	EXPECT(cudaErrorMemoryAllocation, cudaMalloc(&p, total + (1 << 30)));
	EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());
	EXPECT(cudaSuccess, cudaGetLastError());
	EXPECT(cudaErrorMemoryAllocation, cudaMalloc(&p, (size_t)1 << 60));
	EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());

	size_t piece = free_before / 8;
	piece = piece > 64 << 20 ? piece & ~(size_t)0xfffff : piece;
	while (pieces.size() < 64 && cudaMalloc(&p, piece) == cudaSuccess)
		pieces.push_back((unsigned char *)p);
	EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());
	OK(pieces.size() >= 6 && pieces.size() <= 8);

	/* Earlier allocations are still valid: checks both ends of the last one. */
	unsigned char *last = pieces.back();
	touch<<<1, 1>>>((unsigned *)last, (unsigned *)(last + piece - 4));
	CU(cudaMemcpy(&got[0], last, 4, cudaMemcpyDeviceToHost));
	CU(cudaMemcpy(&got[1], last + piece - 4, 4, cudaMemcpyDeviceToHost));
	OK(got[0] == 123 && got[1] == 456);
	for (unsigned char *q : pieces)
		CU(cudaFree(q));
	CU(cudaMemGetInfo(&free_after, &total));
	OK(free_after >= free_before / 8 * 7);
	CU(cudaMalloc(&p, 4 * piece));
	CU(cudaFree(p));

	/* Impossible sizes. */
	EXPECT(cudaSuccess, cudaMalloc(&p, 0));
	OK(p == nullptr);
	EXPECT(cudaErrorInvalidValue, cudaMalloc((void **)nullptr, 16));
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());
	size_t pitch;
	EXPECT(cudaErrorMemoryAllocation, cudaMallocPitch(&p, &pitch, 1 << 20, (size_t)1 << 32));
	EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());
	printf("ran out and recovered\n");
	return verdict("out_of_memory");
}
