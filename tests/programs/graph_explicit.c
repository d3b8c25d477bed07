/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Graphs that a program builds node by node: every type of node, dependencies, queries, clones,
 * updates of the graph and of the executable graph, nodes that are switched off, and wrong uses.
 */
#include "graphs.h"

static CUstream other;
static int host_calls, host_saw;

static void CUDA_CB on_host(void *argument)
{
	host_calls++;
	host_saw = *(int *)argument;
}

static void CUDA_CB on_destroy(void *argument)
{
	++*(int *)argument;
}

/* fill a -> two kernels on a, with an empty node between -> copy to b */
static void chain(void)
{
	CUgraph graph, clone;
	CUgraphNode fill, first, gap, second, copy, found, nodes[8], from[8], to[8];
	CUgraphNodeType type;
	CUgraphExec exec;
	CUgraphExecUpdateResultInfo info;
	CUDA_KERNEL_NODE_PARAMS kernel, read;
	CUDA_MEMSET_NODE_PARAMS memset_params = filled(a, 10), memset_read;
	CUDA_MEMCPY3D copy_params = copied(b, a), copy_read;
	void *args[1];
	size_t n;
	unsigned on = 9;
	cuuint64_t flags = 99;

	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &memset_params, context));
	kernel = increment(&a, args);
	CU(cuGraphAddKernelNode(&first, graph, &fill, 1, &kernel));
	CU(cuGraphAddEmptyNode(&gap, graph, &first, 1));
	CU(cuGraphAddKernelNode(&second, graph, &gap, 1, &kernel));
	CU(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &copy_params, context));
	CU(cuGraphAddDependencies(graph, &second, &copy, NULL, 1));

	CU(cuGraphGetNodes(graph, NULL, &n));
	OK(n == 5);
	n = 8;
	CU(cuGraphGetNodes(graph, nodes, &n));
	OK(n == 5 && nodes[0] == fill && nodes[4] == copy && nodes[5] == NULL);
	n = 8;
	CU(cuGraphGetRootNodes(graph, nodes, &n));
	OK(n == 1 && nodes[0] == fill);
	n = 8;
	CU(cuGraphGetEdges(graph, from, to, NULL, &n));
	OK(n == 4 && from[0] == fill && to[0] == first && from[3] == second && to[3] == copy);
	n = 8;
	CU(cuGraphNodeGetDependencies(copy, nodes, NULL, &n));
	OK(n == 1 && nodes[0] == second);
	n = 8;
	CU(cuGraphNodeGetDependentNodes(fill, nodes, NULL, &n));
	OK(n == 1 && nodes[0] == first);
	/* An array without room, of something and of nothing. */
	n = 0;
	nodes[0] = copy;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(graph, nodes, &n));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphGetRootNodes(graph, nodes, &n));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphGetEdges(graph, nodes, to, NULL, &n));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetDependencies(copy, nodes, NULL, &n));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetDependentNodes(fill, nodes, NULL, &n));
	CU(cuGraphNodeGetDependencies(fill, nodes, NULL, &n));
	OK(n == 0 && nodes[0] == copy);
	CU(cuGraphNodeGetType(gap, &type));
	OK(type == CU_GRAPH_NODE_TYPE_EMPTY);
	CU(cuGraphKernelNodeGetParams(first, &read));
	OK(read.func == bounded && read.blockDimX == LENGTH &&
		*(CUdeviceptr *)read.kernelParams[0] == a);
	CU(cuGraphMemsetNodeGetParams(fill, &memset_read));
	OK(memset_read.dst == a && memset_read.value == 10 && memset_read.width == LENGTH);
	CU(cuGraphMemcpyNodeGetParams(copy, &copy_read));
	OK(copy_read.dstDevice == b && copy_read.WidthInBytes == BYTES);

	CU(cuGraphInstantiate(&exec, graph, 0));
	CU(cuGraphExecGetFlags(exec, &flags));
	OK(flags == 0);
	CU(cuGraphUpload(exec, stream));
	run(exec);
	OK(is_all(b, 12));
	run(exec);
	OK(is_all(b, 12));

	/* The executable graph alone. */
	memset_params.value = 20;
	CU(cuGraphExecMemsetNodeSetParams(exec, fill, &memset_params, context));
	kernel = increment(&b, args);
	CU(cuGraphExecKernelNodeSetParams(exec, second, &kernel));
	run(exec);
	OK(is_all(a, 21) && is_all(b, 21));
	CU(cuGraphNodeSetEnabled(exec, first, 0));
	CU(cuGraphNodeGetEnabled(exec, first, &on));
	OK(on == 0);
	run(exec);
	OK(is_all(b, 20));
	CU(cuGraphNodeSetEnabled(exec, first, 1));
	copy_params = copied(a, b);
	CU(cuMemsetD32(b, 5, LENGTH));
	CU(cuGraphExecMemcpyNodeSetParams(exec, copy, &copy_params, context));
	run(exec);
	OK(is_all(a, 6));

	/* The graph, then an update of the executable graph from it. */
	memset_params.value = 30;
	CU(cuGraphMemsetNodeSetParams(fill, &memset_params));
	copy_params = copied(b, a);
	CU(cuGraphMemcpyNodeSetParams(copy, &copy_params));
	/* The array of the node may be changed and passed, and is still good after that. */
	CU(cuGraphKernelNodeGetParams(second, &read));
	read.kernelParams[0] = &b;
	CU(cuGraphKernelNodeSetParams(second, &read));
	OK(*(CUdeviceptr *)read.kernelParams[0] == b);
	read.kernelParams[0] = &a;
	CU(cuGraphKernelNodeSetParams(second, &read));
	OK(*(CUdeviceptr *)read.kernelParams[0] == a);
	CU(cuGraphExecUpdate(exec, graph, &info));
	OK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
	run(exec);
	OK(is_all(b, 32));

	/* A clone is independent. */
	CU(cuGraphClone(&clone, graph));
	CU(cuGraphNodeFindInClone(&found, fill, clone));
	OK(found != fill);
	memset_params.value = 40;
	CU(cuGraphMemsetNodeSetParams(found, &memset_params));
	CU(cuGraphMemsetNodeGetParams(fill, &memset_read));
	OK(memset_read.value == 30);
	CU(cuGraphExecUpdate(exec, clone, &info));
	run(exec);
	OK(is_all(b, 42));
	CU(cuGraphRemoveDependencies(clone, NULL, NULL, NULL, 0));
	CU(cuGraphDestroyNode(found));
	EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, clone, &info));
	OK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(found));
	CU(cuGraphDestroy(clone));

	CU(cuGraphRemoveDependencies(graph, &gap, &second, NULL, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(graph, &gap, &second, NULL, 1));
	EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, graph, &info));
	CU(cuGraphDestroy(graph));
	run(exec); /* it does not need the graph */
	OK(is_all(b, 42));
	CU(cuGraphExecDestroy(exec));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream));
	printf("chain\n");
}

/* Host memory: read and written at each launch, in the order of the graph. */
static void host_memory(void)
{
	static int in[LENGTH], out[LENGTH];
	CUgraph graph;
	CUgraphNode upload, kernel_node, download, host;
	CUgraphExec exec;
	CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcHost = in,
		.dstDevice = a,
		.WidthInBytes = BYTES,
		.Height = 1,
		.Depth = 1 };
	CUDA_HOST_NODE_PARAMS host_params = { on_host, &out[7] }, host_read;
	CUDA_KERNEL_NODE_PARAMS kernel;
	void *args[1];
	int before = host_calls;

	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphAddMemcpyNode(&upload, graph, NULL, 0, &copy, context));
	kernel = increment(&a, args);
	CU(cuGraphAddKernelNode(&kernel_node, graph, &upload, 1, &kernel));
	copy = (CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.srcDevice = a,
		.dstHost = out,
		.WidthInBytes = BYTES,
		.Height = 1,
		.Depth = 1 };
	CU(cuGraphAddMemcpyNode(&download, graph, &kernel_node, 1, &copy, context));
	CU(cuGraphAddHostNode(&host, graph, &download, 1, &host_params));
	CU(cuGraphHostNodeGetParams(host, &host_read));
	OK(host_read.fn == on_host && host_read.userData == &out[7]);
	CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 5; i++) {
		for (int k = 0; k < LENGTH; k++)
			in[k] = 100 * i + k;
		run(exec);
		OK(out[0] == 100 * i + 1 && out[LENGTH - 1] == 100 * i + LENGTH);
		OK(host_calls - before == i + 1 && host_saw == 100 * i + 8);
	}
	host_params.userData = &out[8];
	CU(cuGraphExecHostNodeSetParams(exec, host, &host_params));
	run(exec);
	OK(host_saw == 409);
	CU(cuGraphHostNodeSetParams(host, &host_params));
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	printf("host memory\n");
}

static void children(void)
{
	CUgraph graph, child, inside;
	CUgraphNode fill, kernel_node, child_node, last, in_child[2];
	CUgraphExec exec;
	CUDA_MEMSET_NODE_PARAMS memset_params = filled(a, 1);
	CUDA_MEMCPY3D copy = copied(b, a);
	CUDA_KERNEL_NODE_PARAMS kernel;
	void *args[1];
	size_t n = 2;

	CU(cuGraphCreate(&child, 0));
	kernel = increment(&a, args);
	CU(cuGraphAddKernelNode(&kernel_node, child, NULL, 0, &kernel));
	CU(cuGraphAddKernelNode(&last, child, &kernel_node, 1, &kernel));
	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &memset_params, context));
	CU(cuGraphAddChildGraphNode(&child_node, graph, &fill, 1, child));
	CU(cuGraphAddMemcpyNode(&last, graph, &child_node, 1, &copy, context));
	CU(cuGraphChildGraphNodeGetGraph(child_node, &inside));
	OK(inside != child);
	CU(cuGraphGetNodes(inside, in_child, &n));
	OK(n == 2);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(inside));
	CU(cuGraphInstantiate(&exec, graph, 0));
	run(exec);
	OK(is_all(b, 3));
	/* A node inside of it. */
	kernel = increment(&b, args);
	CU(cuGraphExecKernelNodeSetParams(exec, in_child[1], &kernel));
	run(exec);
	OK(is_all(b, 2) && is_all(a, 2));
	CU(cuGraphExecChildGraphNodeSetParams(exec, child_node, child));
	run(exec);
	OK(is_all(b, 3));
	CU(cuGraphDestroyNode(kernel_node));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuGraphExecChildGraphNodeSetParams(exec, child_node, child));
	CU(cuGraphDestroy(child));
	CU(cuGraphDestroy(graph));
	CU(cuGraphExecDestroy(exec));
	printf("child graphs\n");
}

static void events(void)
{
	CUgraph graph;
	CUgraphNode wait, kernel_node, record, batch_node;
	CUgraphExec exec;
	CUevent before, after, spare, read;
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUstreamBatchMemOpParams ops[2] = { { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32 },
		{ .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32 } };
	CUDA_BATCH_MEM_OP_NODE_PARAMS batch = { context, 2, ops, 0 }, batch_read;
	void *args[1];

	CU(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING));
	CU(cuEventCreate(&after, CU_EVENT_DEFAULT));
	CU(cuEventCreate(&spare, CU_EVENT_DEFAULT));
	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, before));
	kernel = increment(&a, args);
	CU(cuGraphAddKernelNode(&kernel_node, graph, &wait, 1, &kernel));
	ops[0].writeValue.address = ops[1].waitValue.address = b;
	ops[0].writeValue.value = ops[1].waitValue.value = 77;
	ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	CU(cuGraphAddBatchMemOpNode(&batch_node, graph, &kernel_node, 1, &batch));
	CU(cuGraphAddEventRecordNode(&record, graph, &batch_node, 1, spare));
	CU(cuGraphEventRecordNodeSetEvent(record, after));
	CU(cuGraphEventRecordNodeGetEvent(record, &read));
	OK(read == after);
	CU(cuGraphEventWaitNodeGetEvent(wait, &read));
	OK(read == before);
	CU(cuGraphEventWaitNodeSetEvent(wait, before));
	CU(cuGraphBatchMemOpNodeGetParams(batch_node, &batch_read));
	OK(batch_read.count == 2 && batch_read.paramArray[0].writeValue.value == 77);
	CU(cuGraphInstantiate(&exec, graph, 0));

	CU(cuMemsetD32Async(a, 8, LENGTH, other));
	CU(cuEventRecord(before, other));
	CU(cuGraphLaunch(exec, stream));
	CU(cuEventSynchronize(after));
	OK(is_all(a, 9));
	CU(cuMemcpyDtoH(got, b, 4));
	OK(got[0] == 77);

	ops[0].writeValue.value = ops[1].waitValue.value = 78;
	CU(cuGraphExecBatchMemOpNodeSetParams(exec, batch_node, &batch));
	CU(cuGraphBatchMemOpNodeSetParams(batch_node, &batch));
	CU(cuGraphExecEventRecordNodeSetEvent(exec, record, spare));
	CU(cuGraphExecEventWaitNodeSetEvent(exec, wait, after));
	CU(cuGraphLaunch(exec, stream));
	CU(cuEventSynchronize(spare));
	CU(cuMemcpyDtoH(got, b, 4));
	OK(got[0] == 78);
	/* Launches of one executable graph never overlap, also from two streams. */
	CU(cuMemsetD32(a, 0, LENGTH));
	for (int i = 0; i < 10; i++)
		CU(cuGraphLaunch(exec, i % 2 ? stream : other));
	CU(cuStreamSynchronize(stream));
	CU(cuStreamSynchronize(other));
	OK(is_all(a, 10));
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	CU(cuEventDestroy(before));
	CU(cuEventDestroy(after));
	CU(cuEventDestroy(spare));
	printf("events\n");
}

/* A kernel that waits for many nodes. */
static void wide(void)
{
	enum { NODES = 1300 };
	static CUgraphNode deps[NODES];
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;
	void *args[1];
	size_t n = 0;

	CU(cuGraphCreate(&graph, 0));
	for (int i = 0; i < NODES; i++) {
		CUDA_MEMSET_NODE_PARAMS word = filled(a + i % LENGTH * 4, 1);

		word.width = 1;
		CU(cuGraphAddMemsetNode(&deps[i], graph, NULL, 0, &word, context));
	}
	kernel = increment(&a, args);
	CU(cuGraphAddKernelNode(&node, graph, deps, NODES, &kernel));
	CU(cuGraphNodeGetDependencies(node, NULL, NULL, &n));
	OK(n == NODES);
	CU(cuGraphInstantiate(&exec, graph, 0));
	CU(cuGraphDestroy(graph));
	run(exec);
	OK(is_all(a, 2));
	CU(cuGraphExecDestroy(exec));
	printf("many dependencies\n");
}

/* The calls for nodes of any type, and the attributes of kernels. */
static void generic(void)
{
	CUgraph graph;
	CUgraphNode fill, kernel_node, second, host, deps[2];
	CUgraphExec exec;
	CUgraphEdgeData edges[4];
	CUgraphNode from[4], to[4];
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_MEMSET };
	CUDA_GRAPH_INSTANTIATE_PARAMS how = { .flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
			CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY };
	CUkernelNodeAttrValue value = { .priority = -2 };
	void *args[1] = { &a };
	size_t n = 4;
	int before = host_calls;

	CU(cuGraphCreate(&graph, 0));
	any.memset.dst = a;
	any.memset.value = 3;
	any.memset.elementSize = 4;
	any.memset.width = LENGTH;
	any.memset.height = 1;
	any.memset.ctx = context;
	CU(cuGraphAddNode(&fill, graph, NULL, NULL, 0, &any));
	any.memset.value = 4;
	CU(cuGraphNodeSetParams(fill, &any));
	any = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_KERNEL };
	any.kernel.func = bounded;
	any.kernel.gridDimX = any.kernel.gridDimY = any.kernel.gridDimZ = 1;
	any.kernel.blockDimX = LENGTH;
	any.kernel.blockDimY = any.kernel.blockDimZ = 1;
	any.kernel.kernelParams = args;
	CU(cuGraphAddNode(&kernel_node, graph, &fill, NULL, 1, &any));
	memset(edges, 0, sizeof(edges));
	edges[0].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
	edges[0].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
	CU(cuGraphAddNode(&second, graph, &kernel_node, edges, 1, &any));
	any = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_HOST };
	any.host.fn = on_host;
	any.host.userData = &before;
	deps[0] = second;
	CU(cuGraphAddNode(&host, graph, deps, NULL, 1, &any));

	memset(edges, 0, sizeof(edges));
	CU(cuGraphGetEdges(graph, from, to, edges, &n));
	OK(n == 3 && edges[1].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
		from[1] == kernel_node && to[1] == second);
	EXPECT(CUDA_ERROR_LOSSY_QUERY, cuGraphGetEdges(graph, from, to, NULL, &n));
	CU(cuGraphKernelNodeSetAttribute(kernel_node, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value));
	CU(cuGraphKernelNodeCopyAttributes(second, kernel_node));
	value.priority = 0;
	CU(cuGraphKernelNodeGetAttribute(second, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value));
	OK(value.priority == -2);

	how.hUploadStream = stream;
	CU(cuGraphInstantiateWithParams(&exec, graph, &how));
	OK(how.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
	run(exec);
	OK(is_all(a, 6) && host_calls == before + 1);
	any = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_HOST };
	any.host.fn = on_host;
	any.host.userData = &got[3];
	CU(cuGraphExecNodeSetParams(exec, host, &any));
	got[3] = 1234;
	run(exec);
	OK(host_saw == 1234);
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	printf("generic nodes\n");
}

static void user_objects(void)
{
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode node;
	CUuserObject object;
	int destroyed = 0;

	CU(cuUserObjectCreate(
		&object, &destroyed, on_destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	CU(cuUserObjectRetain(object, 2));
	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	CU(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	CU(cuUserObjectRelease(object, 2));
	OK(destroyed == 0);
	CU(cuGraphInstantiate(&exec, graph, 0));
	run(exec);
	CU(cuGraphRetainUserObject(graph, object, 1, 0));
	CU(cuGraphReleaseUserObject(graph, object, 2));
	OK(destroyed == 0);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphReleaseUserObject(graph, object, 1));
	CU(cuGraphExecDestroy(exec));
	OK(destroyed == 1);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 1));
	CU(cuGraphDestroy(graph));
	printf("user objects\n");
}

static void printed(void)
{
	char text[4096], path[] = "/tmp/graph_dot_XXXXXX";
	int file = mkstemp(path);
	CUgraph graph;
	CUgraphNode fill, kernel_node;
	CUDA_MEMSET_NODE_PARAMS memset_params = filled(a, 10);
	CUDA_KERNEL_NODE_PARAMS kernel;
	void *args[1];
	FILE *in;

	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &memset_params, context));
	kernel = increment(&a, args);
	CU(cuGraphAddKernelNode(&kernel_node, graph, &fill, 1, &kernel));
	CU(cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
	in = fopen(path, "r");
	OK(in != NULL);
	text[in ? fread(text, 1, sizeof(text) - 1, in) : 0] = 0;
	OK(strstr(text, "digraph dot {") == text && strstr(text, "bounded") && strstr(text, "->") &&
		strstr(text, "MEMSET"));
	if (in)
		fclose(in);
	close(file);
	unlink(path);
	CU(cuGraphDestroy(graph));
	printf("dot\n");
}

static void wrong(void)
{
	CUgraph graph, second;
	CUgraphNode node, away, nodes[2];
	CUgraphExec exec;
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUDA_MEMSET_NODE_PARAMS memset_params = filled(a, 1);
	CUDA_MEMCPY3D copy = copied(b, a);
	CUdeviceptr nothing = 0;
	void *args[1];

	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphCreate(&second, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(&graph, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(NULL, 0));
	CU(cuGraphAddEmptyNode(&away, second, NULL, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&node, graph, &away, 1));
	CU(cuGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
	nodes[1] = nodes[0];
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&node, graph, nodes, 2));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&node, graph, NULL, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, nodes, nodes, NULL, 1));
	kernel = increment(&a, args);
	kernel.blockDimX = 129;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
	kernel.blockDimX = 0;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
	kernel.blockDimX = LENGTH;
	kernel.kernelParams = NULL;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
	memset_params.elementSize = 3;
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuGraphAddMemsetNode(&node, graph, NULL, 0, &memset_params, context));
	copy.dstDevice = nothing;
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphMemcpyNodeGetParams(nodes[0], &copy));
	EXPECT(CUDA_ERROR_NOT_SUPPORTED,
		cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, graph, 1 << 20));
	/* A circle. */
	CU(cuGraphAddEmptyNode(&node, graph, nodes, 1));
	CU(cuGraphAddDependencies(graph, &node, nodes, NULL, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, graph, 0));
	CU(cuGraphDestroy(graph));
	CU(cuGraphDestroy(second));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph));
	printf("wrong uses\n");
}

int main(void)
{
	graphs_begin();
	CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	chain();
	host_memory();
	children();
	events();
	wide();
	generic();
	user_objects();
	printed();
	wrong();
	CU(cuStreamDestroy(other));
	return graphs_end("graph_explicit");
}
