/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What comes after what, with events, streams, graphs and threads. */
#include <pthread.h>

#include "tests/e2e/several.h"

#define THREADS 6u

static uint32_t busy_result(void)
{
	uint32_t value = 1;

	for (uint32_t i = 0; i < ROUNDS; i++)
		value = value * 1664525 + 1013904223;
	return value;
}

/* What a stream of one server does after its wait comes after the kernel of the other. */
static void order_event(unsigned from, uint32_t want)
{
	const struct side *src = &sides[from], *dst = &sides[!from];
	uint32_t got = 0;
	CUevent done;

	current(from);
	NEED(cuMemsetD8_v2(src->memory, 0, 4));
	NEED(cuEventCreate(&done, 0));
	launch(from);
	NEED(cuEventRecord(done, src->stream));
	current(!from);
	NEED(cuStreamWaitEvent(dst->stream, done, 0));
	NEED(cuMemcpyPeerAsync(
		dst->memory, dst->context, src->memory, src->context, 4, dst->stream));
	NEED(cuMemcpyDtoHAsync_v2(&got, dst->memory, 4, dst->stream));
	NEED(cuStreamSynchronize(dst->stream));
	EXPECT(got == want);
}

/* A copy in the stream of the kernel comes after the kernel, also to another server. */
static void order_stream(unsigned from, uint32_t want)
{
	const struct side *src = &sides[from], *dst = &sides[!from];
	uint32_t got = 0;

	launch(from);
	NEED(cuMemcpyPeerAsync(
		dst->memory, dst->context, src->memory, src->context, 4, src->stream));
	NEED(cuStreamSynchronize(src->stream));
	current(!from);
	NEED(cuMemcpyDtoH_v2(&got, dst->memory, 4));
	EXPECT(got == want);
	/* The blocking copy waits for the kernels of both contexts. */
	NEED(cuMemsetD8_v2(dst->memory, 0, 4));
	launch(from);
	current(!from);
	NEED(cuMemcpyPeer(dst->memory, dst->context, src->memory, src->context, 4));
	NEED(cuMemcpyDtoH_v2(&got, dst->memory, 4));
	EXPECT(got == want);
}

/* A graph whose nodes are in one context, and whose copies are between the servers. */
static void order_graph(unsigned at, uint32_t want)
{
	unsigned rounds = ROUNDS;
	void *params[] = { &sides[at].memory, &rounds };
	CUDA_KERNEL_NODE_PARAMS kernel = { .func = sides[at].busy,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params };
	CUDA_MEMCPY3D there = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = sides[at].memory,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = sides[!at].memory,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1 };
	CUDA_MEMCPY3D again = there;
	CUgraphNode nodes[3];
	CUgraphExec exec;
	CUgraph graph;
	uint32_t got[2] = { 0, 0 };

	again.srcDevice = sides[!at].memory;
	again.dstDevice = sides[at].memory + 4;
	current(at);
	NEED(cuMemsetD8_v2(sides[at].memory, 0, 8));
	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphAddKernelNode_v2(&nodes[0], graph, NULL, 0, &kernel));
	NEED(cuGraphAddMemcpyNode(&nodes[1], graph, &nodes[0], 1, &there, sides[at].context));
	NEED(cuGraphAddMemcpyNode(&nodes[2], graph, &nodes[1], 1, &again, sides[at].context));
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (unsigned i = 0; i < 2; i++)
		NEED(cuGraphLaunch(exec, sides[at].stream));
	NEED(cuStreamSynchronize(sides[at].stream));
	NEED(cuMemcpyDtoH_v2(got, sides[at].memory, 8));
	EXPECT(got[0] == want && got[1] == want);
}

void several_order(void)
{
	uint32_t want = busy_result();
	CUevent events[2], never;
	float ms;

	for (unsigned i = 0; i < 2; i++) {
		current(i);
		NEED(cuEventCreate(&events[i], 0));
		NEED(cuEventRecord(events[i], sides[i].stream));
	}
	NEED(cuEventCreate(&never, 0));
	current(0);
	NEED(cuStreamWaitEvent(sides[0].stream, never, 0)); /* not recorded: nothing to wait for */
	NEED(cuEventSynchronize(events[0]));
	NEED(cuEventSynchronize(events[1]));
	EXPECT_CODE(cuEventElapsedTime(&ms, events[0], events[1]), ERROR_INVALID_HANDLE);
	for (unsigned i = 0; i < 2; i++) {
		order_event(i, want);
		order_stream(i, want);
		order_graph(i, want);
	}
	/* A wait for one context is none for the other. */
	launch(0);
	current(1);
	NEED(cuCtxSynchronize());
	NEED(cuStreamQuery(sides[1].stream));
	EXPECT_CODE(cuStreamQuery(sides[0].stream), ERROR_NOT_READY);
	current(0);
	NEED(cuCtxSynchronize());
	NEED(cuStreamQuery(sides[0].stream));
}

/* ---- threads ---- */

static void *thread_main(void *argument)
{
	unsigned number = (unsigned)(uintptr_t)argument;
	uint32_t got, want = busy_result();
	CUdeviceptr memory[2];
	CUstream streams[2];

	for (unsigned i = 0; i < 2; i++) {
		current(i);
		NEED(cuMemAlloc_v2(&memory[i], 4));
		NEED(cuStreamCreate(&streams[i], 1));
	}
	for (unsigned round = 0; round < 20; round++) {
		unsigned side = (number + round) % 2, rounds = ROUNDS / 1000;
		void *params[] = { &memory[side], &rounds };

		current(side);
		NEED(cuMemsetD8_v2(memory[side], 0, 4));
		NEED(cuLaunchKernel(
			sides[side].busy, 1, 1, 1, 1, 1, 1, 0, streams[side], params, NULL));
		NEED(cuStreamSynchronize(streams[side]));
		NEED(cuMemcpyDtoD_v2(memory[!side], memory[side], 4));
		current(!side);
		NEED(cuMemcpyDtoH_v2(&got, memory[!side], 4));
		if (!round)
			want = got;
		EXPECT(got == want && got);
	}
	for (unsigned i = 0; i < 2; i++)
		NEED(cuStreamDestroy_v2(streams[i])); /* of both servers, whatever is current */
	return NULL;
}

void several_threads(void)
{
	pthread_t all[THREADS];

	for (unsigned round = 0; round < 3; round++) {
		for (uintptr_t i = 0; i < THREADS; i++)
			if (pthread_create(&all[i], NULL, thread_main, (void *)i))
				exit(2);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(all[i], NULL);
	}
}
