/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The calls about graphs and captures as programs built with CUDA 10 to 12 make them, and memory
 * nodes.
 */
#include "graphs.h"

/* The function of the library under exactly this name. */
#define OLD(name, ...) ((CUresult(*)(__VA_ARGS__))driver_entry(#name))

static void nodes(void)
{
	CUDA_MEMSET_NODE_PARAMS fill_params = filled(a, 3);
	void *args[] = { &a };
	CUDA_KERNEL_NODE_PARAMS_v1 kernel = { bounded, 1, 1, 1, LENGTH, 1, 1, 0, args, NULL };
	CUDA_KERNEL_NODE_PARAMS_v1 read;
	CUgraphNode fill, node, any_node, list[4], to[4], failed = NULL;
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	CUgraphExecUpdateResult result;
	CUgraphExec exec, second;
	CUgraph graph;
	char log[64] = "x";
	size_t n = 4;

	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &fill_params, context));
	CU(OLD(cuGraphAddKernelNode, CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
		const CUDA_KERNEL_NODE_PARAMS_v1 *)(&node, graph, NULL, 0, &kernel));
	CU(OLD(cuGraphAddDependencies, CUgraph, const CUgraphNode *, const CUgraphNode *, size_t)(
		graph, &fill, &node, 1));
	CU(OLD(cuGraphAddNode, CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
		CUgraphNodeParams *)(&any_node, graph, &node, 1, &any));
	CU(OLD(cuGraphGetEdges, CUgraph, CUgraphNode *, CUgraphNode *, size_t *)(
		graph, list, to, &n));
	OK(n == 2 && list[0] == fill && to[0] == node && to[1] == any_node);
	n = 4;
	CU(OLD(cuGraphNodeGetDependencies, CUgraphNode, CUgraphNode *, size_t *)(node, list, &n));
	OK(n == 1 && list[0] == fill);
	n = 4;
	CU(OLD(cuGraphNodeGetDependentNodes, CUgraphNode, CUgraphNode *, size_t *)(node, list, &n));
	OK(n == 1 && list[0] == any_node);
	CU(OLD(cuGraphRemoveDependencies, CUgraph, const CUgraphNode *, const CUgraphNode *,
		size_t)(graph, &node, &any_node, 1));
	CU(OLD(cuGraphKernelNodeGetParams, CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v1 *)(node, &read));
	OK(read.func == bounded && read.blockDimX == LENGTH);
	CU(OLD(cuGraphKernelNodeSetParams, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1 *)(
		node, &kernel));
	CU(OLD(cuGraphInstantiate, CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t)(
		&exec, graph, &failed, log, sizeof(log)));
	OK(log[0] == 0 && failed == NULL);
	CU(OLD(cuGraphInstantiate_v2, CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t)(
		&second, graph, NULL, NULL, 0));
	CU(OLD(cuGraphExecKernelNodeSetParams, CUgraphExec, CUgraphNode,
		const CUDA_KERNEL_NODE_PARAMS_v1 *)(exec, node, &kernel));
	CU(OLD(cuGraphExecUpdate, CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *)(
		exec, graph, &failed, &result));
	OK(result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
	CU(cuGraphLaunch(exec, stream));
	CU(cuGraphLaunch(second, stream));
	CU(cuStreamSynchronize(stream));
	OK(is_all(a, 4));
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphExecDestroy(second));
	CU(cuGraphDestroy(graph));
	printf("nodes\n");
}

static void captures(void)
{
	CUstreamCaptureStatus status;
	const CUgraphNode *deps;
	void *args[] = { &a };
	CUgraph graph, now;
	CUgraphExec exec;
	cuuint64_t id = 0, same = 0;
	CUgraphNode node;
	size_t n = 9;

	CU(OLD(cuStreamBeginCapture, CUstream)(stream));
	CU(cuMemsetD32Async(a, 5, LENGTH, stream));
	CU(OLD(cuStreamGetCaptureInfo, CUstream, CUstreamCaptureStatus *, cuuint64_t *)(
		stream, &status, &id));
	CU(OLD(cuStreamGetCaptureInfo_v2, CUstream, CUstreamCaptureStatus *, cuuint64_t *,
		CUgraph *, const CUgraphNode **,
		size_t *)(stream, &status, &same, &now, &deps, &n));
	OK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id && id == same && n == 1);
	CU(cuGraphAddEmptyNode(&node, now, deps, n));
	CU(OLD(cuStreamUpdateCaptureDependencies, CUstream, CUgraphNode *, size_t, unsigned)(
		stream, &node, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	CU(cuLaunchKernel(bounded, 1, 1, 1, LENGTH, 1, 1, 0, stream, args, NULL));
	CU(cuStreamEndCapture(stream, &graph));
	OK(graph == now);
	EXPECT(CUDA_ERROR_ILLEGAL_STATE,
		cuStreamUpdateCaptureDependencies(stream, &node, NULL, 1, 0));
	n = 0;
	CU(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	OK(n == 3);
	CU(cuGraphInstantiate(&exec, graph, 0));
	CU(cuGraphLaunch(exec, stream));
	CU(cuStreamSynchronize(stream));
	OK(is_all(a, 6));
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	printf("captures\n");
}

static void memory(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
		.bytesize = BYTES,
	};
	CUDA_MEM_ALLOC_NODE_PARAMS read;
	CUDA_MEMSET_NODE_PARAMS fill = filled(0, 8);
	CUDA_MEMCPY3D copy = copied(a, 0);
	CUgraphNode made, filled, copied, freed;
	CUdeviceptr addr = 0;
	CUgraphExec exec;
	CUgraph graph;

	CU(cuGraphCreate(&graph, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&freed, graph, NULL, 0, a));
	CU(cuGraphAddMemAllocNode(&made, graph, NULL, 0, &alloc));
	fill.dst = copy.srcDevice = alloc.dptr;
	CU(cuGraphAddMemsetNode(&filled, graph, &made, 1, &fill, context));
	CU(cuGraphAddMemcpyNode(&copied, graph, &filled, 1, &copy, context));
	CU(cuGraphAddMemFreeNode(&freed, graph, &copied, 1, alloc.dptr));
	CU(cuGraphMemAllocNodeGetParams(made, &read));
	CU(cuGraphMemFreeNodeGetParams(freed, &addr));
	OK(read.dptr == alloc.dptr && read.bytesize == BYTES && addr == alloc.dptr);
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(filled));
	CU(cuGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		CU(cuGraphLaunch(exec, stream));
	CU(cuStreamSynchronize(stream));
	OK(is_all(a, 8));
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(alloc.dptr));
	printf("memory nodes\n");
}

int main(void)
{
	graphs_begin();
	nodes();
	captures();
	memory();
	return graphs_end("graph_versions");
}
