/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Managed memory that copies have read on the device, and that the program or a host function then
 * writes: while a host function before the copies runs, and while the stream of the copies captures.
 */
#include "check.h"
#include "../waiting.h"

#define COUNT 256
#define BYTES (COUNT * sizeof(int))

static __global__ void copy(int *to, const int *from)
{
	to[threadIdx.x] = from[threadIdx.x];
}

struct work {
	int *p;
	int value;
};

static void fill(void *user)
{
	const work *w = (const work *)user;

	let_pass(50 * 1000, "the calls behind this are made meanwhile");
	for (int i = 0; i < COUNT; i++)
		w->p[i] = w->value + i;
}

static void add(void *user)
{
	const work *w = (const work *)user;

	let_pass(50 * 1000, "the calls behind this are made meanwhile");
	for (int i = 0; i < COUNT; i++)
		w->p[i] += w->value;
}

static int right(const int *device, int value)
{
	int got[COUNT], n = 0;

	CU(cudaMemcpy(got, device, sizeof got, cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		n += got[i] == value + i;
	return n;
}

int main()
{
	cudaStream_t stream, third, other;
	cudaGraph_t graph;
	int *p, *q, *out, *out2;
	size_t nodes = 0;

	CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CU(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
	CU(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CU(cudaMallocManaged(&p, 2 * BYTES));
	CU(cudaMallocManaged(&q, BYTES));
	CU(cudaMalloc(&out, BYTES));
	CU(cudaMalloc(&out2, BYTES));

	/* the copy that reads it is called before the function writes it */
	work late = { p, 1000 };
	CU(cudaLaunchHostFunc(stream, fill, &late));
	CU(cudaMemcpyAsync(out, p, BYTES, cudaMemcpyDefault, stream));
	CU(cudaStreamSynchronize(stream));
	OK(right(out, 1000) == COUNT);
	printf("a function before a copy: %d right\n", right(out, 1000));

	/* the program writes next to what copies read behind a function, which uses other memory */
	for (int streams = 1; streams <= 2; streams++) {
		copy<<<1, COUNT, 0, stream>>>(q, out);
		CU(cudaGetLastError());
		work sum = { q, 1000 * streams };
		CU(cudaLaunchHostFunc(stream, add, &sum));
		CU(cudaMemcpyAsync(out, p, BYTES, cudaMemcpyDefault, stream));
		if (streams == 2)
			CU(cudaMemcpyAsync(out2, p, BYTES, cudaMemcpyDefault, third));
		for (int i = 0; i < COUNT; i++)
			p[COUNT + i] = 7000 + streams + i;
		copy<<<1, COUNT, 0, other>>>(out2, p + COUNT);
		CU(cudaGetLastError());
		copy<<<1, COUNT, 0, stream>>>(out, q);
		CU(cudaDeviceSynchronize());
		OK(right(out, 1000 + 1000 * streams) == COUNT);
		OK(right(out2, 7000 + streams) == COUNT);
		printf("copies in %d streams: %d and %d right\n", streams,
			right(out, 1000 + 1000 * streams), right(out2, 7000 + streams));
		late.value = 1000;
		fill(&late);
		CU(cudaMemcpy(out, p, BYTES, cudaMemcpyDefault));
	}

	/* the stream of the copy captures when the bytes are uploaded */
	CU(cudaMemcpyAsync(out, p, BYTES, cudaMemcpyDefault, stream));
	CU(cudaStreamSynchronize(stream));
	for (int i = 0; i < COUNT; i++)
		p[i] = 5000 + i;
	CU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	copy<<<1, COUNT, 0, other>>>(out2, p);
	CU(cudaGetLastError());
	CU(cudaMemsetAsync(out, 0, BYTES, stream));
	CU(cudaStreamEndCapture(stream, &graph));
	CU(cudaGraphGetNodes(graph, NULL, &nodes));
	CU(cudaDeviceSynchronize());
	OK(nodes == 1 && right(out2, 5000) == COUNT);
	printf("while the stream captures: %d nodes, %d right\n", (int)nodes, right(out2, 5000));
	CU(cudaGraphDestroy(graph));
	return verdict("managed_functions");
}
