/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Wrong uses of executable graphs, memory nodes and user objects. The codes are those that cuda.h documents. */
#include "refused_graphs.h"

static CUgraphNode node;

/* ---- executable graphs ---- */

static void exec_params(void)
{
	CUDA_MEMCPY3D row, rows;
	CUDA_MEMSET_NODE_PARAMS line, box, taller;
	CUDA_KERNEL_NODE_PARAMS one, many;
	CUgraphNode copied, plane, filled, boxed, launched, foreign;
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_HOST };
	CUgraph second;
	CUgraphExec exec;
	unsigned on;

	begin();
	row = copy(64, 1);
	rows = copy(32, 2);
	line = fill(64, 1);
	box = fill(32, 2);
	one = kernel(1);
	many = kernel(1025);
	CU(cuGraphAddMemcpyNode(&copied, graph, NULL, 0, &row, context));
	CU(cuGraphAddMemcpyNode(&plane, graph, NULL, 0, &rows, context));
	CU(cuGraphAddMemsetNode(&filled, graph, NULL, 0, &line, context));
	CU(cuGraphAddMemsetNode(&boxed, graph, NULL, 0, &box, context));
	CU(cuGraphAddKernelNode(&launched, graph, NULL, 0, &one));
	CU(cuGraphCreate(&second, 0));
	CU(cuGraphAddKernelNode(&foreign, second, NULL, 0, &one));
	exec = made(graph);
	/* Only copies and fills of one row may change their size. */
	REFUSE_VALUE(cuGraphExecMemcpyNodeSetParams(exec, copied, &rows, context));
	REFUSE_VALUE(cuGraphExecMemcpyNodeSetParams(exec, plane, &row, context));
	REFUSE_VALUE(cuGraphExecMemcpyNodeSetParams(exec, filled, &row, context));
	REFUSE_VALUE(cuGraphExecMemcpyNodeSetParams(exec, copied, NULL, context));
	row.WidthInBytes = 0;
	REFUSE_VALUE(cuGraphExecMemcpyNodeSetParams(exec, copied, &row, context));
	row = copy(64, 1);
	row.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	row.srcDevice = memory + 2048;
	REFUSE_VALUE(cuGraphExecMemcpyNodeSetParams(exec, copied, &row, context));
	REFUSE_VALUE(cuGraphExecMemsetNodeSetParams(exec, filled, &box, context));
	taller = fill(32, 3);
	REFUSE_VALUE(cuGraphExecMemsetNodeSetParams(exec, boxed, &taller, context));
	taller = fill(16, 2);
	REFUSE_VALUE(cuGraphExecMemsetNodeSetParams(exec, boxed, &taller, context));
	taller = fill(0, 1);
	REFUSE_VALUE(cuGraphExecMemsetNodeSetParams(exec, filled, &taller, context));
	REFUSE_VALUE(cuGraphExecKernelNodeSetParams(exec, launched, &many));
	REFUSE_VALUE(cuGraphExecKernelNodeSetParams(exec, foreign, &one));
	REFUSE_VALUE(cuGraphExecKernelNodeSetParams(exec, empty, &one));
	REFUSE_VALUE(cuGraphExecHostNodeSetParams(exec, empty, NULL));
	REFUSE_VALUE(cuGraphExecEventRecordNodeSetEvent(exec, empty, NULL));
	REFUSE_VALUE(cuGraphExecChildGraphNodeSetParams(exec, empty, second));
	REFUSE_VALUE(cuGraphExecNodeSetParams(exec, empty, NULL));
	REFUSE_VALUE(cuGraphExecNodeSetParams(exec, empty, &params));
	REFUSE_VALUE(cuGraphNodeSetEnabled(exec, empty, 0));
	REFUSE_VALUE(cuGraphNodeSetEnabled(exec, foreign, 0));
	REFUSE_VALUE(cuGraphNodeGetEnabled(exec, launched, NULL));
	REFUSE_VALUE(cuGraphNodeGetEnabled(exec, foreign, &on));
}

static void updates(void)
{
	CUDA_KERNEL_NODE_PARAMS one;
	CUkernelNodeAttrValue yes = { .cooperative = 1 };
	CUgraphExecUpdateResultInfo info;
	CUDA_MEMSET_NODE_PARAMS box, taller;
	CUgraphNode a, b;
	CUgraph second;
	CUgraphExec exec;

	begin();
	one = kernel(1);
	box = fill(32, 2);
	CU(cuGraphAddKernelNode(&a, graph, NULL, 0, &one));
	CU(cuGraphAddMemsetNode(&b, graph, NULL, 0, &box, context));
	exec = made(graph);
	REFUSE_VALUE(cuGraphExecUpdate(NULL, graph, &info));
	REFUSE_VALUE(cuGraphExecUpdate(exec, NULL, &info));
	CU(cuGraphCreate(&second, 0));
	REFUSE(GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, second, &info));
	OK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && !info.errorNode);
	CU(cuGraphDestroy(second));
	/* A kernel becomes cooperative. */
	CU(cuGraphClone(&second, graph));
	CU(cuGraphNodeFindInClone(&node, a, second));
	CU(cuGraphKernelNodeSetAttribute(node, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &yes));
	REFUSE(GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, second, &info));
	OK(info.errorNode == node);
	CU(cuGraphDestroy(second));
	/* The box of a fill changes. */
	CU(cuGraphClone(&second, graph));
	CU(cuGraphNodeFindInClone(&node, b, second));
	taller = fill(32, 3);
	CU(cuGraphMemsetNodeSetParams(node, &taller));
	REFUSE(GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, second, &info));
	OK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED && info.errorNode == node);
	CU(cuGraphDestroy(second));
	CU(cuGraphExecDestroy(exec));
	REFUSE_VALUE(cuGraphExecUpdate(exec, graph, &info));
}

static void instantiating(void)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = { .flags = 1ull << 40 };
	const unsigned long long both = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
		CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	CUgraphNode a, b;
	CUgraphExec exec;

	begin();
	REFUSE_VALUE(cuGraphInstantiate(NULL, graph, 0));
	REFUSE_VALUE(cuGraphInstantiate(&exec, graph, both));
	REFUSE_VALUE(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD));
	REFUSE_VALUE(cuGraphInstantiateWithParams(&exec, graph, NULL));
	REFUSE_VALUE(cuGraphInstantiateWithParams(&exec, graph, &params));
	OK(params.result_out == CUDA_GRAPH_INSTANTIATE_ERROR && !params.hErrNode_out);
	params.flags = 0;
	REFUSE_VALUE(cuGraphInstantiateWithParams(&exec, NULL, &params));
	OK(params.result_out == CUDA_GRAPH_INSTANTIATE_ERROR && !params.hErrNode_out);
	/* a circle */
	CU(cuGraphAddEmptyNode(&a, graph, NULL, 0));
	CU(cuGraphAddEmptyNode(&b, graph, &a, 1));
	CU(cuGraphAddDependencies(graph, &b, &a, NULL, 1));
	REFUSE_VALUE(cuGraphInstantiateWithParams(&exec, graph, &params));
	OK(params.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
}

/* ---- memory of graphs ---- */

static void memory_nodes(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS bad = piece(0), good = piece(4096);
	CUgraphNode allocated, freed;
	CUgraph second, clone;
	CUdeviceptr plain;
	uint64_t value = 0;

	begin();
	REFUSE_VALUE(cuGraphAddMemAllocNode(&node, graph, NULL, 0, NULL));
	REFUSE_VALUE(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &bad));
	bad = piece(4096);
	bad.poolProps.location.id = 99;
	REFUSE_VALUE(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &bad));
	bad = piece(4096);
	bad.accessDescCount = 1;
	REFUSE_VALUE(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &bad));
	bad = piece(4096);
	bad.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	REFUSE(NOT_SUPPORTED, cuGraphAddMemAllocNode(&node, graph, NULL, 0, &bad));
	CU(cuGraphAddMemAllocNode(&allocated, graph, NULL, 0, &good));
	CU(cuMemAlloc(&plain, 16));
	REFUSE_VALUE(cuGraphAddMemFreeNode(&node, graph, NULL, 0, plain));
	REFUSE_VALUE(cuGraphAddMemFreeNode(&node, graph, NULL, 0, 0));
	REFUSE_VALUE(cuGraphAddMemFreeNode(&node, graph, NULL, 0, good.dptr + 256));
	CU(cuGraphAddMemFreeNode(&freed, graph, &allocated, 1, good.dptr));
	REFUSE_VALUE(cuGraphAddMemFreeNode(&node, graph, &allocated, 1, good.dptr));
	CU(cuGraphCreate(&second, 0));
	REFUSE_VALUE(cuGraphAddMemFreeNode(&node, second, NULL, 0, good.dptr));
	REFUSE_VALUE(cuMemFree(good.dptr));
	REFUSE_VALUE(cuMemFreeAsync(good.dptr, stream));
	REFUSE_VALUE(cuGraphMemAllocNodeGetParams(freed, &bad));
	REFUSE_VALUE(cuGraphMemFreeNodeGetParams(allocated, &plain));
	/* What cuda.h forbids without naming the error. */
	TRY(cuGraphDestroyNode(freed));
	TRY(cuGraphRemoveDependencies(graph, &allocated, &freed, NULL, 1));
	TRY(cuGraphClone(&clone, graph));
	TRY(cuGraphAddChildGraphNode(&node, second, NULL, 0, graph));
	REFUSE(INVALID_DEVICE, cuDeviceGraphMemTrim(99));
	REFUSE(INVALID_DEVICE,
		cuDeviceGetGraphMemAttribute(99, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
	TRY(cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)77, &value));
	TRY(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
	CU(cuGraphDestroy(second));
	CU(cuGraphDestroy(graph));
	CU(cuCtxSynchronize());
}

/* ---- user objects ---- */

static void user_objects(void)
{
	const unsigned most = 0x80000000u;
	CUuserObject object, gone;

	begin();
	REFUSE_VALUE(cuUserObjectCreate(NULL, NULL, nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	REFUSE_VALUE(cuUserObjectCreate(&object, NULL, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	REFUSE_VALUE(
		cuUserObjectCreate(&object, NULL, nothing, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	REFUSE_VALUE(cuUserObjectCreate(
		&object, NULL, nothing, most, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	REFUSE_VALUE(cuUserObjectCreate(&object, NULL, nothing, 1, 0));
	CU(cuUserObjectCreate(&object, NULL, nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	CU(cuUserObjectCreate(&gone, NULL, nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	CU(cuUserObjectRelease(gone, 1));
	REFUSE_VALUE(cuUserObjectRetain(object, 0));
	REFUSE_VALUE(cuUserObjectRetain(object, most));
	REFUSE_VALUE(cuUserObjectRetain((CUuserObject)graph, 1));
	REFUSE_VALUE(cuUserObjectRelease(object, 0));
	REFUSE_VALUE(cuGraphRetainUserObject(graph, object, 0, 0));
	REFUSE_VALUE(cuGraphRetainUserObject(graph, object, 1, 0x10));
	REFUSE_VALUE(cuGraphRetainUserObject(NULL, object, 1, 0));
	REFUSE_VALUE(cuGraphRetainUserObject(graph, gone, 1, 0));
	REFUSE_VALUE(cuGraphReleaseUserObject(graph, object, 1));
	REFUSE_VALUE(cuGraphReleaseUserObject(graph, gone, 1));
	CU(cuUserObjectRelease(object, 1));
}

/* ---- after a kernel has failed ---- */

static void after_a_failure(void)
{
	CUgraphExec exec;
	CUgraphNode copied;
	CUDA_MEMCPY3D row;
	CUgraph out;

	begin();
	row = copy(64, 1);
	CU(cuGraphAddMemcpyNode(&copied, graph, NULL, 0, &row, context));
	exec = made(graph);
	CU(cuLaunchKernel(fail, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	REFUSE(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
	REFUSE(ILLEGAL_ADDRESS, cuGraphLaunch(exec, stream));
	REFUSE(ILLEGAL_ADDRESS, cuGraphUpload(exec, stream));
	REFUSE(ILLEGAL_ADDRESS, cuGraphInstantiate(&exec, graph, 0));
	REFUSE(ILLEGAL_ADDRESS, cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	REFUSE(ILLEGAL_ADDRESS, cuStreamEndCapture(stream, &out));
}

static const struct refused_group GROUPS[] = {
	{ "parameters of executable graphs", exec_params },
	{ "updates", updates },
	{ "instantiation", instantiating },
	{ "memory nodes", memory_nodes },
	{ "user objects", user_objects },
	{ "after a kernel has failed", after_a_failure },
};

int main(void)
{
	return refused_run("refused_graph_execs", GROUPS, sizeof GROUPS / sizeof *GROUPS);
}
