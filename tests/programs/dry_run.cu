// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
//
// For dry runs (tests/e2e/dryrun.py): machine code without PTX. What a dry run does truly (memory,
// copies, order, initial values, checks of launches) and what it does not (kernels).
#include <cstdio>
#include <cstring>

__device__ int answer = 42;
__device__ int zeros[4];
__constant__ float table[3] = { 1.5f, 2.5f, 3.5f };

__global__ void change(int *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = answer + (int)table[i % 3];
	answer = 0;
}

__global__ void stop(cudaGraphConditionalHandle loop)
{
	cudaGraphSetConditional(loop, 0);
}

#define TRY(call)                                                           \
	do {                                                                \
		cudaError_t error = call;                                   \
		if (error)                                                  \
			printf("%s: %s\n", #call, cudaGetErrorName(error)); \
	} while (0)

static void CUDART_CB note(void *user)
{
	*(int *)user = 7;
}

static cudaGraph_t body_of(cudaGraph_t graph, cudaGraphConditionalNodeType type, unsigned value,
	cudaGraphConditionalHandle *handle)
{
	cudaGraphNodeParams params = { cudaGraphNodeTypeConditional };
	cudaGraphNode_t node;

	TRY(cudaGraphConditionalHandleCreate(handle, graph, value, cudaGraphCondAssignDefault));
	params.conditional.handle = *handle;
	params.conditional.type = type;
	params.conditional.size = 1;
#if CUDART_VERSION >= 13000
	TRY(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
#else
	TRY(cudaGraphAddNode(&node, graph, NULL, 0, &params));
#endif
	return params.conditional.phGraph_out[0];
}

/* One number moves up by one place in each turn of the loop. */
static void graph_run(int *p)
{
	static const int start[4] = { 5, 0, 0, 1 };
	cudaGraphNode_t stopped, higher, lower;
	cudaGraphConditionalHandle handle;
	cudaKernelNodeParams stopping = {};
	void *args[] = { &handle };
	cudaGraph_t graph, body;
	cudaGraphExec_t exec;
	int end[4] = { 0 };

	TRY(cudaMemcpy(p, start, sizeof start, cudaMemcpyHostToDevice));
	TRY(cudaGraphCreate(&graph, 0));
	body = body_of(graph, cudaGraphCondTypeWhile, 1, &handle);
	stopping.func = (void *)stop;
	stopping.gridDim = stopping.blockDim = dim3(1);
	stopping.kernelParams = args;
	if (cudaGraphAddKernelNode(&stopped, body, NULL, 0, &stopping))
		return; /* no code for this device: nothing would end the loop */
	TRY(cudaGraphAddMemcpyNode1D(
		&higher, body, &stopped, 1, p + 2, p + 1, 4, cudaMemcpyDeviceToDevice));
	TRY(cudaGraphAddMemcpyNode1D(
		&lower, body, &higher, 1, p + 1, p, 4, cudaMemcpyDeviceToDevice));
	body = body_of(graph, cudaGraphCondTypeIf, 0, &handle);
	TRY(cudaGraphAddMemcpyNode1D(&lower, body, NULL, 0, p + 3, p, 4, cudaMemcpyDeviceToDevice));
	TRY(cudaGraphInstantiate(&exec, graph, 0));
	TRY(cudaGraphLaunch(exec, 0));
	TRY(cudaMemcpy(end, p, sizeof end, cudaMemcpyDeviceToHost));
	printf("loop and branch: %d %d %d, %d\n", end[0], end[1], end[2], end[3]);
	TRY(cudaGraphExecDestroy(exec));
	TRY(cudaGraphDestroy(graph));
}

int main(void)
{
	const int n = 1 << 20;
	int *p, noted = 0, first = 0, z[4] = { 1, 1, 1, 1 };
	float t[3] = { 0 };
	cudaFuncAttributes attributes;
	cudaDeviceProp properties = {};
	static int host[1 << 20];

	TRY(cudaGetDeviceProperties(&properties, 0));
	printf("%s, %d.%d, %d multiprocessors\n", properties.name, properties.major,
		properties.minor, properties.multiProcessorCount);
	TRY(cudaMalloc(&p, sizeof host));
	for (int i = 0; i < n; i++)
		host[i] = i;
	TRY(cudaMemcpy(p, host, sizeof host, cudaMemcpyHostToDevice));
	TRY(cudaMemset(p + 10, 0xff, 40));
	change<<<n / 256, 256>>>(p, n);
	TRY(cudaGetLastError());
	TRY(cudaLaunchHostFunc(0, note, &noted));
	memset(host, 0, sizeof host);
	TRY(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
	printf("copied: %d %d %d %d, noted %d\n", host[9], host[10], host[19], host[n - 1], noted);
	TRY(cudaMemcpyFromSymbol(&first, answer, sizeof first));
	TRY(cudaMemcpyFromSymbol(z, zeros, sizeof z));
	TRY(cudaMemcpyFromSymbol(t, table, sizeof t));
	printf("variables: %d, %d %d, %.1f %.1f %.1f\n", first, z[0], z[3], t[0], t[1], t[2]);
	TRY(cudaFuncGetAttributes(&attributes, change));
	printf("kernel: %d threads at most, registers %s\n", attributes.maxThreadsPerBlock,
		attributes.numRegs > 0 ? "known" : "unknown");
	change<<<1, 2048>>>(p, n);
	printf("a block too large: %s\n", cudaGetErrorName(cudaGetLastError()));
	graph_run(p);
	TRY(cudaFree(p));
	return 0;
}
