/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Launches a graph many times: graph_launches [COUNT]. It has ten kernels; one of them is changed
 * before each hundredth launch. Each launch must be executed exactly once.
 */
#include "driver.h"

enum { LENGTH = 128, KERNELS = 10 };

int main(int argc, char **argv)
{
	int count = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1000, got[2 * LENGTH], changed = 0;
	CUgraphNode nodes[KERNELS];
	CUcontext context;
	CUmodule module;
	CUfunction bounded;
	CUdeviceptr data, second;
	CUgraphExec exec;
	CUstream stream;
	CUdevice device;
	CUgraph graph;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuModuleLoad(&module, beside("driver_kernels.ptx")));
	CU(cuModuleGetFunction(&bounded, module, "bounded"));
	CU(cuMemAlloc(&data, sizeof(got)));
	CU(cuMemsetD32(data, 0, 2 * LENGTH));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuGraphCreate(&graph, 0));
	second = data + LENGTH * 4;

	void *args[] = { &data }, *others[] = { &second };
	CUDA_KERNEL_NODE_PARAMS kernel = { .func = bounded,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = LENGTH,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = args };

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
	CU(cuMemcpyDtoH(got, data, sizeof(got)));
	for (int i = 0; i < LENGTH; i++)
		OK(got[i] == KERNELS * count - changed && got[LENGTH + i] == changed);
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	CU(cuStreamDestroy(stream));
	CU(cuMemFree(data));
	CU(cuModuleUnload(module));
	CU(cuDevicePrimaryCtxRelease(device));
	printf("every launch once\n");
	return verdict("graph_launches");
}
