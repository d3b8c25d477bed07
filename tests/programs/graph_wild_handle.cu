/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Kernels that set a condition which does not exist, or free one. CUDA leaves open what happens then;
 * the software device reports an illegal address, or does nothing. Each kernel runs in a process of its
 * own.
 */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

__global__ void set(cudaGraphConditionalHandle handle, unsigned thread)
{
	if (threadIdx.x == thread)
		cudaGraphSetConditional(handle, 1);
}

/* delta: from an address of device memory that exists. */
static int child(bool null, long long delta)
{
	cudaGraphConditionalHandle handle;
	char *memory;

	CU(cudaMalloc(&memory, 256));
	handle = null ? 0 : (cudaGraphConditionalHandle)((uintptr_t)memory + delta);
	set<<<1, 64>>>(handle, 37);
	CU(cudaGetLastError());
	EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	return check_failures != 0;
}

__global__ void release(cudaGraphConditionalHandle handle)
{
	free((void *)(uintptr_t)handle);
}

/* Memory that is allocated after the kernel is not that of the condition, which still works. */
static int child_free(void)
{
	enum { BLOCKS = 4096 };
	static unsigned *blocks[BLOCKS];
	cudaGraphConditionalHandle handle;
	cudaGraphNodeParams params = { cudaGraphNodeTypeConditional };
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int changed = 0;

	CU(cudaGraphCreate(&graph, 0));
	CU(cudaGraphConditionalHandleCreate(&handle, graph, 2, cudaGraphCondAssignDefault));
	release<<<1, 1>>>(handle);
	CU(cudaDeviceSynchronize());
	for (int i = 0; i < BLOCKS; i++) {
		CU(cudaMalloc(&blocks[i], 8));
		CU(cudaMemset(blocks[i], 7, 8));
	}
	params.conditional.handle = handle;
	params.conditional.type = cudaGraphCondTypeIf;
	params.conditional.size = 1;
	CU(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	CU(cudaGraphInstantiate(&exec, graph, 0));
	CU(cudaGraphLaunch(exec, 0));
	CU(cudaDeviceSynchronize());
	for (int i = 0; i < BLOCKS; i++) {
		unsigned value = 0;

		CU(cudaMemcpy(&value, blocks[i], 4, cudaMemcpyDeviceToHost));
		changed += value != 0x07070707;
	}
	OK(changed == 0);
	CU(cudaGraphExecDestroy(exec));
	CU(cudaGraphDestroy(graph));
	CU(cudaDeviceSynchronize());
	return check_failures != 0;
}

int main(void)
{
	static const long long deltas[] = { 0, 1ll << 45, -(1ll << 46) };

	for (int i = 0; i < 4; i++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0)
			_exit(i < 3 ? child(i == 0, deltas[i]) : child_free());
		OK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	}
	printf("no condition was set\n");
	return verdict("graph_wild_handle");
}
