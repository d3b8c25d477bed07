// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
/*
 * Kernels with large parameters in the legacy streams of two contexts, when the session has no block
 * of parameters left. A copy in the first context's stream is still under way while the second
 * context's kernel runs, so the two are not executed in the order of the calls.
 */
#include <cuda.h>
#include <cstdio>

enum { WORDS = 1000, STREAMS = 63, ROUNDS = 8 };
static const size_t COPY_BYTES = 64u << 20;

struct Block {
	unsigned words[WORDS];
};

__global__ void sum(Block b, unsigned long long *out)
{
	unsigned long long sum = 0;
	for (int i = 0; i < WORDS; i++)
		sum += (unsigned long long)b.words[i] * (i + 1);
	*out += sum;
}

static unsigned long long host_sum(const Block &b)
{
	unsigned long long sum = 0;
	for (int i = 0; i < WORDS; i++)
		sum += (unsigned long long)b.words[i] * (i + 1);
	return sum;
}

static CUresult (*create)(CUcontext *, unsigned, CUdevice), (*make_current)(CUcontext);

static void check(const char *what, CUcontext ctx, unsigned long long *out, unsigned long long want)
{
	unsigned long long got = 0;
	make_current(ctx);
	cudaDeviceSynchronize();
	cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost);
	printf("%s: %llu %s\n", what, got, got == want ? "right" : "WRONG");
}

int main()
{
	unsigned long long *out[3], want[3] = {};
	char *pinned, *far;
	CUcontext ctx[2];
	Block b = {};

	cudaGetDriverEntryPointByVersion("cuCtxCreate", (void **)&create, 11000, 0, NULL);
	cudaGetDriverEntryPointByVersion("cuCtxSetCurrent", (void **)&make_current, 11000, 0, NULL);
	for (int i = 0; i < 2; i++) {
		if (create(&ctx[i], 0, 0) != CUDA_SUCCESS || cudaMalloc(&out[i], 8) != cudaSuccess)
			return 1;
		cudaMemset(out[i], 0, 8);
	}
	/* All blocks but one, in other streams of the second context. */
	cudaMalloc(&out[2], 8);
	cudaMemset(out[2], 0, 8);
	for (int i = 0; i < STREAMS; i++) {
		cudaStream_t stream;
		cudaStreamCreate(&stream);
		sum<<<1, 1, 0, stream>>>(b, out[2]);
	}
	cudaDeviceSynchronize();
	make_current(ctx[0]);
	cudaMallocHost(&pinned, COPY_BYTES);
	cudaMalloc(&far, COPY_BYTES);
	for (int round = 0; round < ROUNDS; round++) {
		make_current(ctx[0]);
		cudaMemcpyAsync(far, pinned, COPY_BYTES, cudaMemcpyHostToDevice, 0);
		for (int i = 0; i < 10; i++)
			b.words[10 * i + round] += 3;
		sum<<<1, 1>>>(b, out[0]);
		want[0] += host_sum(b);
		make_current(ctx[1]);
		b.words[WORDS - 1 - round] += 7;
		sum<<<1, 1>>>(b, out[1]);
		want[1] += host_sum(b);
	}
	check("first context", ctx[0], out[0], want[0]);
	check("second context", ctx[1], out[1], want[1]);
	check("other streams", ctx[1], out[2], want[2]);
	return 0;
}
