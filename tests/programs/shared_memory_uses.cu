/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory that program and device share (managed, mapped, pinned) together with other parts of the
 * driver: host functions between kernels, graphs, arrays, copies in the same stream, memory that is
 * freed while a kernel uses it, green contexts that end.
 */
#include <cuda.h>

#include "check.h"

#define D(call) CU((cudaError_t)(call))

static const int COUNT = 4096; /* words; a page of ints is 1,024 of them */

__global__ void add(int *p, int by)
{
	p[0] += by;
}

__global__ void late(int *p, int loops)
{
	long x = 1;

	for (int i = 0; i < loops; i++)
		x = x * 3 + clock();
	p[0] = 77 + (x == 5);
}

static int *managed(void)
{
	int *p;

	CU(cudaMallocManaged(&p, COUNT * sizeof *p));
	memset(p, 0, COUNT * sizeof *p);
	return p;
}

static void CUDART_CB add_hundred(void *user)
{
	*(int *)user += 100;
}

static void CUDART_CB look(void *user)
{
	if (*(volatile int *)user < 0)
		abort();
}

/* The kernel behind a host function is launched before the function runs. */
static void host_functions(cudaStream_t stream)
{
	static const cudaHostFn_t fns[] = { add_hundred, look };
	int *p = managed();

	for (cudaHostFn_t fn : fns) {
		p[0] = 1;
		add<<<1, 1, 0, stream>>>(p, 1);
		CU(cudaLaunchHostFunc(stream, fn, p));
		add<<<1, 1, 0, stream>>>(p, 1);
		CU(cudaStreamSynchronize(stream));
		printf("host function: %d\n", p[0]);
	}
	CU(cudaFree(p));
}

static cudaGraphExec_t graph_end(cudaStream_t stream)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CU(cudaStreamEndCapture(stream, &graph));
	CU(cudaGraphInstantiate(&exec, graph, 0));
	CU(cudaGraphDestroy(graph));
	return exec;
}

static void graphs(cudaStream_t stream)
{
	cudaGraphExec_t exec;
	int *p = managed(), *pinned;

	CU(cudaMallocHost(&pinned, 64));
	*pinned = 10;
	CU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	add<<<1, 1, 0, stream>>>(p, 1);
	add<<<1, 1, 0, stream>>>(pinned, 1);
	CU(cudaLaunchHostFunc(stream, add_hundred, p));
	add<<<1, 1, 0, stream>>>(p, 1);
	CU(cudaMemcpyAsync(p + 1, pinned, sizeof *p, cudaMemcpyDefault, stream));
	CU(cudaMemsetAsync(p + 2, 1, sizeof *p, stream));
	exec = graph_end(stream);
	for (int round = 0; round < 3; round++) {
		p[0] += 1000;
		*pinned += 1000;
		CU(cudaGraphLaunch(exec, stream));
		CU(cudaStreamSynchronize(stream));
		printf("graph: %d %d %d %d\n", p[0], p[1], p[2], *pinned);
	}
	CU(cudaGraphExecDestroy(exec));
	CU(cudaFreeHost(pinned));
	CU(cudaFree(p));
}

static int differences(const int *p, int factor)
{
	int n = 0;

	for (int i = 0; i < COUNT; i++)
		n += p[i] != i * factor;
	return n;
}

static void arrays(void)
{
	const size_t pitch = 64 * sizeof(int);
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
	int *p = managed(), *mapped;
	cudaArray_t array;

	CU(cudaHostAlloc(&mapped, COUNT * sizeof *mapped, cudaHostAllocMapped));
	CU(cudaMallocArray(&array, &format, 64, 64));
	for (int factor = 1; factor < 4; factor++) {
		for (int i = 0; i < COUNT; i++)
			p[i] = i * factor;
		CU(cudaMemcpy2DToArray(array, 0, 0, p, pitch, pitch, 64, cudaMemcpyDefault));
		memset(p, 0xff, COUNT * sizeof *p);
		CU(cudaMemcpy2DFromArray(mapped, pitch, array, 0, 0, pitch, 64, cudaMemcpyDefault));
		CU(cudaMemcpy2DFromArray(p, pitch, array, 0, 0, pitch, 64, cudaMemcpyDefault));
		CU(cudaDeviceSynchronize());
		printf("array: %d %d\n", differences(mapped, factor), differences(p, factor));
	}
	CU(cudaFreeArray(array));
	CU(cudaFreeHost(mapped));
	CU(cudaFree(p));
}

/* Pinned memory that kernels use, read and written by copies of the same stream. */
static void copies(cudaStream_t stream)
{
	int *pinned, *device, *p = managed();

	CU(cudaMallocHost(&pinned, 64));
	CU(cudaMalloc(&device, 64));
	*pinned = 5;
	add<<<1, 1, 0, stream>>>(pinned, 1);
	CU(cudaMemcpyAsync(device, pinned, sizeof *pinned, cudaMemcpyDefault, stream));
	add<<<1, 1, 0, stream>>>(device, 10);
	CU(cudaMemcpyAsync(pinned, device, sizeof *pinned, cudaMemcpyDefault, stream));
	add<<<1, 1, 0, stream>>>(pinned, 100);
	CU(cudaMemcpyAsync(p, pinned, sizeof *pinned, cudaMemcpyDefault, stream));
	CU(cudaStreamSynchronize(stream));
	printf("copies: %d %d\n", *pinned, *p);
	CU(cudaFreeHost(pinned));
	CU(cudaFree(device));
	CU(cudaFree(p));
}

static void freed_in_use(cudaStream_t stream)
{
	int *keep = managed(), *p = managed(), *next;

	late<<<1, 1, 0, stream>>>(p, 300000);
	CU(cudaFreeAsync(p, stream));
	next = managed(); /* may get the same address */
	CU(cudaStreamSynchronize(stream));
	add<<<1, 1>>>(next, 1);
	CU(cudaDeviceSynchronize());
	printf("freed in use: %d\n", next[0]);
	CU(cudaFree(next));
	CU(cudaFree(keep));
}

/* Memory that was first used while a green context was current. */
static void green_context(void)
{
	CUdevResource all, part;
	CUcontext primary, view;
	CUdevResourceDesc desc;
	CUgreenCtx green;
	unsigned n = 1;
	int *p, *pinned;

	D(cuCtxGetCurrent(&primary));
	D(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	D(cuDevSmResourceSplitByCount(&part, &n, &all, NULL, 0, 2));
	D(cuDevResourceGenerateDesc(&desc, &part, 1));
	D(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	D(cuCtxFromGreenCtx(&view, green));
	D(cuCtxSetCurrent(view));
	p = managed();
	CU(cudaMallocHost(&pinned, 64));
	*p = *pinned = 1;
	add<<<1, 1>>>(p, 1);
	add<<<1, 1>>>(pinned, 1);
	CU(cudaDeviceSynchronize());
	printf("green: %d %d\n", *p, *pinned);
	D(cuCtxSetCurrent(primary));
	D(cuGreenCtxDestroy(green));
	*p = *pinned = 10;
	add<<<1, 1>>>(p, 1);
	add<<<1, 1>>>(pinned, 1);
	CU(cudaDeviceSynchronize());
	printf("after it: %d %d\n", *p, *pinned);
	CU(cudaFreeHost(pinned));
	CU(cudaFree(p));
}

int main(void)
{
	cudaStream_t stream;

	CU(cudaStreamCreate(&stream));
	host_functions(stream);
	graphs(stream);
	arrays();
	copies(stream);
	freed_in_use(stream);
	green_context();
	CU(cudaStreamDestroy(stream));
	return verdict("shared_memory_uses");
}
