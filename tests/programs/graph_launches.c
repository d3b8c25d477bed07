/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Launches a graph many times: graph_launches [COUNT]. It has ten kernels; one of them is changed
 * before each hundredth launch. Each launch must be executed exactly once.
 */
#include "graphs.h"

enum { KERNELS = 10 };

/* The stream says where a graph runs, whichever context is current: one kernel, and several. */
static void with_another_context(void)
{
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUgraphNode node = NULL, next;
	CUcontext other;
	CUgraphExec exec;
	CUgraph graph;
	void *args[1];

	CU(cuMemsetD32(a, 0, LENGTH));
	CU(cuCtxSynchronize());
	kernel = increment(&a, args);
	CU(cuGraphCreate(&graph, 0));
	for (int n = 1; n <= 2; n++) {
		CU(cuGraphAddKernelNode(&next, graph, node ? &node : NULL, node ? 1 : 0, &kernel));
		node = next;
		CU(cuGraphInstantiate(&exec, graph, 0));
		CU(cuCtxCreate(&other, NULL, 0, 0));
		CU(cuGraphLaunch(exec, stream));
		CU(cuStreamSynchronize(stream));
		CU(cuCtxDestroy(other));
		CU(cuCtxSetCurrent(context));
		CU(cuGraphExecDestroy(exec));
	}
	CU(cuMemcpyDtoH(got, a, BYTES));
	for (int i = 0; i < LENGTH; i++)
		OK(got[i] == 3);
	CU(cuGraphDestroy(graph));
	printf("with another context\n");
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1000, changed = 0;
	void *args[1], *others[1];
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUgraphNode nodes[KERNELS];
	CUgraphExec exec;
	CUgraph graph;

	graphs_begin();
	CU(cuMemsetD32(a, 0, 2 * LENGTH));
	CU(cuGraphCreate(&graph, 0));
	others[0] = &b;
	kernel = increment(&a, args);
	for (int i = 0; i < KERNELS; i++)
		CU(cuGraphAddKernelNode(
			&nodes[i], graph, i ? &nodes[i - 1] : NULL, i ? 1 : 0, &kernel));
	CU(cuGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < count; i++) {
		if (i % 100 == 50) {
			kernel.kernelParams = i / 100 % 2 ? args : others;
			CU(cuGraphExecKernelNodeSetParams(exec, nodes[3], &kernel));
		}
		changed += kernel.kernelParams == others;
		CU(cuGraphLaunch(exec, stream));
	}
	CU(cuStreamSynchronize(stream));
	CU(cuMemcpyDtoH(got, a, sizeof(got)));
	for (int i = 0; i < LENGTH; i++)
		OK(got[i] == KERNELS * count - changed && got[LENGTH + i] == changed);
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	printf("every launch once\n");
	if (argc == 1)
		with_another_context();
	return graphs_end("graph_launches");
}
