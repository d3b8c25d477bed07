/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Wrong uses of graphs, their nodes and their edges. The codes are those that cuda.h documents. */
#include "refused_graphs.h"

static CUgraphNode node;

/* ---- handles ---- */

static void handles(void)
{
	const uintptr_t forged[] = { 1, (uintptr_t)-1, (uintptr_t)1 << 63 };
	CUgraphExec exec;
	CUgraph gone, clone;
	CUgraphNode inside;
	CUgraphNodeType type;
	cuuint64_t flags;
	size_t n;

	begin();
	exec = made(graph);
	CU(cuGraphCreate(&gone, 0));
	CU(cuGraphAddEmptyNode(&inside, gone, NULL, 0));
	CU(cuGraphDestroy(gone));
	REFUSE_VALUE(cuGraphDestroy(gone));
	REFUSE_VALUE(cuGraphAddEmptyNode(&node, gone, NULL, 0));
	REFUSE_VALUE(cuGraphGetNodes(gone, NULL, &n));
	REFUSE_VALUE(cuGraphGetEdges(gone, NULL, NULL, NULL, &n));
	REFUSE_VALUE(cuGraphClone(&clone, gone));
	REFUSE_VALUE(cuGraphInstantiate(&exec, gone, 0));
	REFUSE_VALUE(cuGraphAddChildGraphNode(&node, graph, NULL, 0, gone));
	REFUSE_VALUE(cuGraphNodeGetType(inside, &type));
	REFUSE_VALUE(cuGraphDestroyNode(inside));
	REFUSE_VALUE(cuGraphAddEmptyNode(&node, graph, &inside, 1));
	REFUSE_VALUE(cuGraphNodeFindInClone(&node, empty, graph));
	/* of another kind */
	REFUSE_VALUE(cuGraphDestroy((CUgraph)empty));
	REFUSE_VALUE(cuGraphDestroy((CUgraph)exec));
	REFUSE_VALUE(cuGraphNodeGetType((CUgraphNode)graph, &type));
	REFUSE_VALUE(cuGraphLaunch((CUgraphExec)graph, stream));
	REFUSE_VALUE(cuGraphUpload((CUgraphExec)empty, stream));
	REFUSE_VALUE(cuGraphExecDestroy((CUgraphExec)stream));
	REFUSE_VALUE(cuGraphClone(&clone, (CUgraph)context));
	/* forged */
	for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
		REFUSE_VALUE(cuGraphDestroy((CUgraph)forged[i]));
		REFUSE_VALUE(cuGraphDestroyNode((CUgraphNode)forged[i]));
		REFUSE_VALUE(cuGraphExecDestroy((CUgraphExec)forged[i]));
	}
	REFUSE_VALUE(cuGraphExecGetFlags(exec, NULL));
	REFUSE(INVALID_HANDLE, cuGraphLaunch(exec, (CUstream)graph));
	CU(cuGraphExecDestroy(exec));
	REFUSE_VALUE(cuGraphExecDestroy(exec));
	REFUSE_VALUE(cuGraphLaunch(exec, stream));
	REFUSE_VALUE(cuGraphUpload(exec, stream));
	REFUSE_VALUE(cuGraphExecGetFlags(exec, &flags));
	REFUSE_VALUE(cuGraphNodeSetEnabled(exec, empty, 0));
}

/* ---- parameters ---- */

static void kernels(void)
{
	CUDA_KERNEL_NODE_PARAMS good = kernel(1), bad = good;
	CUkernelNodeAttrValue value = { .priority = 0 };
	CUgraphNode other;
	CUmodule second;
	void *extra[] = { CU_LAUNCH_PARAM_END };

	begin();
	good = bad = kernel(1);
	CU(cuGraphAddKernelNode(&other, graph, NULL, 0, &good));
	REFUSE_VALUE(cuGraphAddKernelNode(&node, graph, NULL, 0, NULL));
	REFUSE_VALUE(cuGraphAddKernelNode(NULL, graph, NULL, 0, &good));
	bad.func = NULL;
	REFUSE_VALUE(cuGraphAddKernelNode(&node, graph, NULL, 0, &bad));
	bad = kernel(0);
	REFUSE_VALUE(cuGraphAddKernelNode(&node, graph, NULL, 0, &bad));
	bad = kernel(1025);
	REFUSE_VALUE(cuGraphAddKernelNode(&node, graph, NULL, 0, &bad));
	bad = good;
	bad.gridDimY = 70000;
	REFUSE_VALUE(cuGraphAddKernelNode(&node, graph, NULL, 0, &bad));
	bad = good;
	bad.extra = extra;
	REFUSE_VALUE(cuGraphAddKernelNode(&node, graph, NULL, 0, &bad));
	bad = good;
	bad.kernelParams = NULL;
	REFUSE_VALUE(cuGraphAddKernelNode(&node, graph, NULL, 0, &bad));
	REFUSE_VALUE(cuGraphKernelNodeGetParams(other, NULL));
	REFUSE_VALUE(cuGraphKernelNodeGetParams(empty, &bad));
	REFUSE_VALUE(cuGraphKernelNodeSetParams(empty, &good));
	REFUSE_VALUE(cuGraphKernelNodeSetParams(other, NULL));
	REFUSE_VALUE(cuGraphKernelNodeGetAttribute(other, (CUkernelNodeAttrID)999, &value));
	REFUSE_VALUE(cuGraphKernelNodeSetAttribute(other, (CUkernelNodeAttrID)999, &value));
	REFUSE_VALUE(cuGraphKernelNodeSetAttribute(other, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, NULL));
	REFUSE_VALUE(
		cuGraphKernelNodeSetAttribute(empty, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value));
	REFUSE_VALUE(cuGraphKernelNodeCopyAttributes(other, empty));
	REFUSE_VALUE(cuGraphKernelNodeCopyAttributes(NULL, other));
	/* a function whose module is gone */
	CU(cuModuleLoadData(&second, PTX));
	CU(cuModuleGetFunction(&good.func, second, "add"));
	CU(cuModuleUnload(second));
	TRY(cuGraphAddKernelNode(&node, graph, NULL, 0, &good));
}

static void copies(void)
{
	CUDA_MEMCPY3D good, bad;
	CUDA_ARRAY_DESCRIPTOR desc = { 16, 16, CU_AD_FORMAT_UNSIGNED_INT8, 1 };
	CUgraphNode other;
	CUarray array;

	begin();
	good = bad = copy(64, 2);
	CU(cuGraphAddMemcpyNode(&other, graph, NULL, 0, &good, context));
	REFUSE_VALUE(cuGraphAddMemcpyNode(&node, graph, NULL, 0, NULL, context));
	bad.srcMemoryType = 0;
	REFUSE_VALUE(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
	bad = good;
	bad.dstMemoryType = 77;
	REFUSE_VALUE(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
	bad = good;
	bad.srcPitch = 63;
	REFUSE_VALUE(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
	bad = copy(64, 65);
	REFUSE_VALUE(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
	bad = good;
	bad.dstPitch = (size_t)1 << 63;
	REFUSE_VALUE(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
	bad = good;
	bad.dstZ = (size_t)-1;
	REFUSE_VALUE(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
	bad = good;
	bad.dstXInBytes = (size_t)-64;
	REFUSE_VALUE(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
	bad = good;
	bad.srcHost = NULL;
	REFUSE_VALUE(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
	CU(cuArrayCreate(&array, &desc));
	CU(cuArrayDestroy(array));
	bad = good;
	bad.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	bad.dstArray = array;
	REFUSE_VALUE(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &bad, context));
	REFUSE_VALUE(cuGraphMemcpyNodeSetParams(other, &bad));
	REFUSE_VALUE(cuGraphMemcpyNodeSetParams(empty, &good));
	REFUSE_VALUE(cuGraphMemcpyNodeGetParams(empty, &bad));
}

static void fills(void)
{
	CUDA_MEMSET_NODE_PARAMS good, bad;
	CUgraphNode other;

	begin();
	good = bad = fill(64, 2);
	CU(cuGraphAddMemsetNode(&other, graph, NULL, 0, &good, context));
	REFUSE_VALUE(cuGraphAddMemsetNode(&node, graph, NULL, 0, NULL, context));
	REFUSE(INVALID_CONTEXT,
		cuGraphAddMemsetNode(&node, graph, NULL, 0, &good, (CUcontext)(uintptr_t)3));
	bad.elementSize = 3;
	REFUSE_VALUE(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
	bad.elementSize = 0;
	REFUSE_VALUE(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
	bad = good;
	bad.elementSize = 4;
	bad.dst = memory + 2;
	REFUSE_VALUE(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
	bad = fill(65, 2);
	REFUSE_VALUE(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
	bad = fill(64, 65);
	REFUSE_VALUE(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
	bad = fill(64, (size_t)1 << 60);
	REFUSE_VALUE(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
	bad = fill((size_t)1 << 62, 1);
	bad.elementSize = 4;
	REFUSE_VALUE(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
	bad = good;
	bad.dst = 0;
	REFUSE_VALUE(cuGraphAddMemsetNode(&node, graph, NULL, 0, &bad, context));
	REFUSE_VALUE(cuGraphMemsetNodeSetParams(empty, &good));
	REFUSE_VALUE(cuGraphMemsetNodeGetParams(other, NULL));
}

static void other_nodes(void)
{
	CUDA_HOST_NODE_PARAMS no_function = { .fn = NULL };
	CUstreamBatchMemOpParams op = { .writeValue = {
						.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32 } };
	CUDA_BATCH_MEM_OP_NODE_PARAMS batch;
	CUevent event;
	CUgraph child;

	begin();
	REFUSE_VALUE(cuGraphAddHostNode(&node, graph, NULL, 0, NULL));
	REFUSE_VALUE(cuGraphAddHostNode(&node, graph, NULL, 0, &no_function));
	REFUSE_VALUE(cuGraphAddEventRecordNode(&node, graph, NULL, 0, NULL));
	REFUSE_VALUE(cuGraphAddEventRecordNode(&node, graph, NULL, 0, (CUevent)stream));
	CU(cuEventCreate(&event, 0));
	CU(cuEventDestroy(event));
	REFUSE_VALUE(cuGraphAddEventRecordNode(&node, graph, NULL, 0, event));
	REFUSE_VALUE(cuGraphAddEventWaitNode(&node, graph, NULL, 0, event));
	REFUSE_VALUE(cuGraphEventRecordNodeGetEvent(empty, &event));
	REFUSE_VALUE(cuGraphChildGraphNodeGetGraph(empty, &child));
	REFUSE_VALUE(cuGraphAddChildGraphNode(&node, graph, NULL, 0, NULL));
	op.writeValue.address = memory;
	batch = (CUDA_BATCH_MEM_OP_NODE_PARAMS){ context, 1, &op, 0 };
	REFUSE_VALUE(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, NULL));
	batch.flags = 1;
	REFUSE_VALUE(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch));
	batch.flags = 0;
	batch.count = 256;
	REFUSE_VALUE(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch));
	batch.count = 1;
	batch.paramArray = NULL;
	REFUSE_VALUE(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch));
	batch.paramArray = &op;
	op.writeValue.address = memory + 2;
	REFUSE_VALUE(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch));
	op.operation = 77;
	REFUSE_VALUE(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch));
	REFUSE_VALUE(cuGraphDebugDotPrint(graph, NULL, 0));
	REFUSE_VALUE(cuGraphDebugDotPrint(NULL, "/dev/null", 0));
	REFUSE(OPERATING_SYSTEM, cuGraphDebugDotPrint(graph, "/no/such/folder/x.dot", 0));
}

/* The parameters of cuGraphAddNode: all bytes that a type does not use must be zero. */
static void any_node(void)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	CUgraphNode child, ring;
	CUgraph inner, inside;

	begin();
	REFUSE_VALUE(cuGraphAddNode(&node, graph, NULL, NULL, 0, NULL));
	params.reserved0[1] = 1;
	REFUSE_VALUE(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	params.reserved0[1] = 0;
	params.reserved2 = 1;
	REFUSE_VALUE(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	params.reserved2 = 0;
	params.reserved1[28] = 1;
	REFUSE_VALUE(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	params = (CUgraphNodeParams){ .type = (CUgraphNodeType)77 };
	REFUSE_VALUE(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	params = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_HOST };
	params.host.fn = nothing;
	params.reserved1[20] = 1;
	REFUSE_VALUE(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	params = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_MEMCPY };
	params.memcpy.copyCtx = context;
	params.memcpy.copyParams = copy(64, 1);
	params.memcpy.flags = 1;
	REFUSE_VALUE(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	/* The graph moves into itself, or into a graph that it contains. */
	params = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_GRAPH };
	params.graph.graph = graph;
	params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	REFUSE_VALUE(cuGraphAddNode(&ring, graph, NULL, NULL, 0, &params));
	CU(cuGraphCreate(&inner, 0));
	CU(cuGraphAddChildGraphNode(&child, graph, NULL, 0, inner));
	CU(cuGraphChildGraphNodeGetGraph(child, &inside));
	REFUSE_VALUE(cuGraphAddNode(&ring, inside, NULL, NULL, 0, &params));
	/* A child of one graph cannot move, and a refused move leaves the graph to the program. */
	params.graph.graph = inside;
	REFUSE_VALUE(cuGraphAddNode(&ring, inner, NULL, NULL, 0, &params));
	params.graph.graph = inner;
	REFUSE_VALUE(cuGraphAddNode(&ring, graph, NULL, NULL, 1, &params));
	REFUSE_VALUE(cuGraphAddNode(NULL, graph, NULL, NULL, 0, &params));
	params.graph.ownership = (CUgraphChildGraphNodeOwnership)7;
	REFUSE_VALUE(cuGraphAddNode(&ring, graph, NULL, NULL, 0, &params));
	TRY(cuGraphDestroy(inner));
	CU(cuGraphDestroy(graph));
}

/* The number of levels of child graphs is limited, wherever the next one is added. */
static void levels(void)
{
	CUgraph at, inner;
	CUgraphExec exec;
	unsigned n = 0;
	CUresult result;

	begin();
	CU(cuGraphCreate(&inner, 0));
	at = graph;
	do {
		result = cuGraphAddChildGraphNode(&node, at, NULL, 0, inner);
		if (result == CUDA_SUCCESS)
			CU(cuGraphChildGraphNodeGetGraph(node, &at));
		n++;
	} while (result == CUDA_SUCCESS && n < 100);
	OK(n < 100);
	REFUSE_VALUE(result);
	CU(cuGraphInstantiate(&exec, graph, 0));
	CU(cuGraphClone(&inner, graph));
	REFUSE_VALUE(cuGraphAddChildGraphNode(&node, at, NULL, 0, graph));
	CU(cuGraphDestroy(graph));
}

/* ---- edges ---- */

static void edges(void)
{
	CUgraphEdgeData wrong = { .type = 9 }, reserved = { .reserved = { 0, 1 } };
	CUgraphNode a, b, c, foreign;
	CUgraphExec exec;
	CUgraph second;
	size_t n;

	begin();
	CU(cuGraphCreate(&second, 0));
	CU(cuGraphAddEmptyNode(&foreign, second, NULL, 0));
	CU(cuGraphAddEmptyNode(&a, graph, NULL, 0));
	CU(cuGraphAddEmptyNode(&b, graph, &a, 1));
	CU(cuGraphAddEmptyNode(&c, graph, &b, 1));
	REFUSE_VALUE(cuGraphAddDependencies(graph, &a, &b, NULL, 1)); /* is there */
	REFUSE_VALUE(cuGraphAddDependencies(graph, &a, &foreign, NULL, 1));
	REFUSE_VALUE(cuGraphAddDependencies(second, &a, &b, NULL, 1));
	REFUSE_VALUE(cuGraphAddDependencies(graph, NULL, &b, NULL, 1));
	REFUSE_VALUE(cuGraphAddDependencies(graph, &a, &c, &wrong, 1));
	REFUSE_VALUE(cuGraphAddDependencies(graph, &a, &c, &reserved, 1));
	REFUSE_VALUE(cuGraphAddEmptyNode(&node, graph, &foreign, 1));
	REFUSE_VALUE(cuGraphRemoveDependencies(graph, &a, &c, NULL, 1));
	REFUSE_VALUE(cuGraphRemoveDependencies(second, &a, &b, NULL, 1));
	REFUSE_VALUE(cuGraphGetNodes(graph, NULL, NULL));
	REFUSE_VALUE(cuGraphGetEdges(graph, &a, NULL, NULL, &n));
	REFUSE_VALUE(cuGraphNodeGetDependencies(a, NULL, &wrong, &n));
	REFUSE_VALUE(cuGraphNodeGetDependentNodes(NULL, NULL, NULL, &n));
	/* a circle */
	CU(cuGraphAddDependencies(graph, &c, &a, NULL, 1));
	REFUSE_VALUE(cuGraphInstantiate(&exec, graph, 0));
}

static const struct refused_group GROUPS[] = {
	{ "handles", handles },
	{ "kernel nodes", kernels },
	{ "copy nodes", copies },
	{ "fill nodes", fills },
	{ "other nodes", other_nodes },
	{ "cuGraphAddNode", any_node },
	{ "levels", levels },
	{ "edges", edges },
};

int main(void)
{
	return refused_run("refused_graphs", GROUPS, sizeof GROUPS / sizeof *GROUPS);
}
