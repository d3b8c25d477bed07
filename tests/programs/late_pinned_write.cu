/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A host function fills pinned memory that a later asynchronous copy in the stream reads. The copy
 * must read what the function wrote, not the content at the time of the call.
 */
#include "check.h"
#include "../waiting.h"

enum { ROUNDS = 8, LENGTH = 256 };

struct work {
	unsigned *pinned;
	unsigned seed;
};

__global__ void mix(unsigned *sum, const unsigned *in)
{
	sum[threadIdx.x] = sum[threadIdx.x] * 31 + in[threadIdx.x];
}

static void fill(void *argument)
{
	work *w = (work *)argument;

	let_pass(5000, "the copies behind this are called meanwhile");
	for (unsigned i = 0; i < LENGTH; i++)
		w->pinned[i] = w->seed * 1000 + i;
}

int main()
{
	static work works[ROUNDS];
	unsigned *pinned, *in, *sum, got[LENGTH];
	cudaStream_t stream;

	CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CU(cudaMallocHost(&pinned, LENGTH * 4));
	CU(cudaMalloc(&in, LENGTH * 4));
	CU(cudaMalloc(&sum, LENGTH * 4));
	CU(cudaMemsetAsync(sum, 0, LENGTH * 4, stream));
	memset(pinned, 0xee, LENGTH * 4);
	for (unsigned round = 0; round < ROUNDS; round++) {
		works[round] = { pinned, round + 1 };
		CU(cudaLaunchHostFunc(stream, fill, &works[round]));
		CU(cudaMemcpyAsync(in, pinned, LENGTH * 4, cudaMemcpyHostToDevice, stream));
		mix<<<1, LENGTH, 0, stream>>>(sum, in);
	}
	CU(cudaMemcpyAsync(got, sum, sizeof(got), cudaMemcpyDeviceToHost, stream));
	CU(cudaStreamSynchronize(stream));
	for (unsigned i = 0; i < LENGTH; i++) {
		unsigned want = 0;
		for (unsigned round = 1; round <= ROUNDS; round++)
			want = want * 31 + round * 1000 + i;
		OK(got[i] == want);
	}
	printf("checksum %016llx\n", (unsigned long long)checksum(got, sizeof(got)));
	return verdict("late_pinned_write");
}
