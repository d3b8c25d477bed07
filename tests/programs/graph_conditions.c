/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Conditional nodes through the driver API: what bodies may have, queries, changes of single nodes,
 * debug output, pinned memory that is allocated again, and wrong uses.
 */
#include "graphs.h"

static const char ptx[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
	/* --*left > 0 decides whether the loop goes on */
	".visible .entry countdown(.param .u64 handle, .param .u64 left)\n"
	"{\n"
	"	.reg .b64 %h, %p;\n	.reg .b32 %n;\n	.reg .pred %more;\n"
	"	ld.param.u64 %h, [handle];\n	ld.param.u64 %p, [left];\n"
	"	ld.global.u32 %n, [%p];\n	sub.u32 %n, %n, 1;\n	st.global.u32 [%p], %n;\n"
	"	setp.gt.s32 %more, %n, 0;\n	selp.u32 %n, 1, 0, %more;\n"
	"	{\n"
	"	.param .b64 first;\n	.param .b32 second;\n"
	"	st.param.b64 [first], %h;\n	st.param.b32 [second], %n;\n"
	"	call.uni cudaGraphSetConditional, (first, second);\n"
	"	}\n"
	"	ret;\n"
	"}\n";

static CUfunction countdown;
static CUdeviceptr turns;

static CUgraphNode fill_add(CUgraph graph, CUgraphNode after, CUdeviceptr dst, unsigned value)
{
	CUDA_MEMSET_NODE_PARAMS params = filled(dst, value);
	CUgraphNode node;

	CU(cuGraphAddMemsetNode(
		&node, graph, after ? &after : NULL, after ? 1 : 0, &params, context));
	return node;
}

static CUgraphNode increment_add(CUgraph graph, CUgraphNode after, CUdeviceptr data)
{
	void *args[1];
	CUDA_KERNEL_NODE_PARAMS params = increment(&data, args);
	CUgraphNode node;

	CU(cuGraphAddKernelNode(&node, graph, after ? &after : NULL, after ? 1 : 0, &params));
	return node;
}

static CUgraphNode countdown_add(CUgraph graph, CUgraphNode after, CUgraphConditionalHandle handle)
{
	void *args[] = { &handle, &turns };
	CUDA_KERNEL_NODE_PARAMS params = { .func = countdown,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = args };
	CUgraphNode node;

	CU(cuGraphAddKernelNode(&node, graph, after ? &after : NULL, after ? 1 : 0, &params));
	return node;
}

static CUgraphNodeParams conditional(
	CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };

	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = size;
	params.conditional.ctx = context;
	return params;
}

static CUgraphNode conditional_add(CUgraph graph, CUgraphNode after,
	CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size,
	CUgraph *bodies)
{
	CUgraphNodeParams params = conditional(handle, type, size);
	CUgraphNode node;

	CU(cuGraphAddNode(&node, graph, after ? &after : NULL, NULL, after ? 1 : 0, &params));
	memcpy(bodies, params.conditional.phGraph_out, size * sizeof(*bodies));
	return node;
}

static void turns_set(unsigned n)
{
	CU(cuMemcpyHtoD(turns, &n, sizeof(n)));
}

/* A body with every type of node that CUDA allows there; its nodes are changed and switched off. */
static void bodies(void)
{
	CUgraph graph, body, child;
	CUgraphNode fill, kernel, copy, node, nodes[8];
	CUgraphConditionalHandle handle;
	CUDA_KERNEL_NODE_PARAMS params;
	CUDA_MEMSET_NODE_PARAMS other = filled(a, 40);
	CUDA_MEMCPY3D copy_params = copied(b, a);
	CUgraphNodeType type;
	CUgraphExec exec;
	CUdeviceptr sums;
	void *args[1];
	size_t n = 8;

	CU(cuMemAlloc(&sums, 50 * (size_t)BYTES));
	CU(cuGraphCreate(&child, 0));
	increment_add(child, increment_add(child, NULL, a), a);
	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphConditionalHandleCreate(
		&handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	node = conditional_add(graph, NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	CU(cuGraphNodeGetType(node, &type));
	OK(type == CU_GRAPH_NODE_TYPE_CONDITIONAL);
	fill = fill_add(body, NULL, a, 10);
	kernel = increment_add(body, fill, a);
	CU(cuGraphAddChildGraphNode(&node, body, &kernel, 1, child));
	CU(cuGraphAddMemcpyNode(&copy, body, &node, 1, &copy_params, context));
	CU(cuGraphAddEmptyNode(&node, body, &copy, 1));
	countdown_add(body, node, handle);
	CU(cuGraphGetNodes(body, nodes, &n));
	OK(n == 6 && nodes[0] == fill && nodes[6] == NULL);
	CU(cuGraphInstantiate(&exec, graph, 0));
	turns_set(3);
	run(exec);
	OK(is_all(a, 13) && is_all(b, 13));
	CU(cuGraphExecMemsetNodeSetParams(exec, fill, &other, context));
	turns_set(1);
	run(exec);
	OK(is_all(b, 43));
	/* From now on the kernel works on the copy of the turn before. */
	params = increment(&b, args);
	CU(cuGraphExecKernelNodeSetParams(exec, kernel, &params));
	CU(cuGraphNodeSetEnabled(exec, copy, 0));
	turns_set(5);
	run(exec);
	OK(is_all(a, 42) && is_all(b, 48));
	/* Launches that are queued keep the nodes that they were made with. */
	CU(cuGraphNodeSetEnabled(exec, copy, 1));
	params = increment(&a, args);
	CU(cuGraphExecKernelNodeSetParams(exec, kernel, &params));
	for (unsigned i = 0; i < 50; i++) {
		CUdeviceptr sum = sums + i * BYTES;

		other.value = i;
		CU(cuGraphExecMemsetNodeSetParams(exec, fill, &other, context));
		CU(cuMemsetD32Async(turns, 2, 1, stream));
		CU(cuGraphLaunch(exec, stream));
		CU(cuMemcpyDtoDAsync(sum, b, BYTES, stream));
	}
	CU(cuStreamSynchronize(stream));
	for (int i = 0; i < 50; i++)
		OK(is_all(sums + (CUdeviceptr)i * BYTES, i + 3));
	CU(cuMemFree(sums));
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	CU(cuGraphDestroy(child));
	printf("bodies\n");
}

/* Work that the client does, before and after. A graph with two conditional nodes in two parts. */
static void around(void)
{
	CUDA_MEMCPY3D upload = copied(a, 0), download = copied(0, a);
	CUgraphConditionalHandle first, second;
	CUgraph graph, body;
	CUgraphNode node;
	CUgraphExec exec;
	int *pinned;

	CU(cuMemHostAlloc((void **)&pinned, BYTES, 0));
	for (int i = 0; i < LENGTH; i++)
		pinned[i] = 5;
	upload.srcMemoryType = CU_MEMORYTYPE_HOST;
	upload.srcHost = pinned;
	download.dstMemoryType = CU_MEMORYTYPE_HOST;
	download.dstHost = pinned;
	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphConditionalHandleCreate(&first, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	CU(cuGraphConditionalHandleCreate(
		&second, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	CU(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &upload, context));
	node = conditional_add(graph, node, first, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
	countdown_add(body, increment_add(body, NULL, a), first);
	CU(cuGraphAddMemcpyNode(&node, graph, &node, 1, &download, context));
	node = conditional_add(graph, node, second, CU_GRAPH_COND_TYPE_IF, 1, &body);
	increment_add(body, NULL, a);
	CU(cuGraphAddMemcpyNode(&node, graph, &node, 1, &download, context));
	CU(cuGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 2; i++) {
		turns_set(4);
		run(exec);
		OK(pinned[0] == 10 + 5 * i && pinned[LENGTH - 1] == 10 + 5 * i);
	}
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	CU(cuMemFreeHost(pinned));
	printf("around\n");
}

static void printed(void)
{
	char path[] = "/tmp/outboard-dot-XXXXXX", text[4096] = "";
	CUgraphConditionalHandle handle;
	int fd = mkstemp(path);
	CUgraph graph, cases[3];
	ssize_t length;

	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphConditionalHandleCreate(&handle, graph, context, 0, 0));
	conditional_add(graph, NULL, handle, CU_GRAPH_COND_TYPE_SWITCH, 3, cases);
	increment_add(cases[1], NULL, a);
	CU(cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS));
	length = read(fd, text, sizeof(text) - 1);
	OK(length > 0 && strstr(text, "CONDITIONAL") && strstr(text, "SWITCH") &&
		strstr(text, "bounded"));
	close(fd);
	unlink(path);
	CU(cuGraphDestroy(graph));
	printf("dot\n");
}

static CUresult add(CUgraph graph, CUgraphNodeParams params)
{
	CUgraphNode node;

	return cuGraphAddNode(&node, graph, NULL, NULL, 0, &params);
}

static void wrong_handles(void)
{
	CUgraphConditionalHandle handle, inner, foreign;
	CUgraph graph, second, body, clone, child;
	CUgraphNode node;

	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphCreate(&second, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuGraphConditionalHandleCreate(NULL, graph, context, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuGraphConditionalHandleCreate(&handle, NULL, context, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuGraphConditionalHandleCreate(&handle, graph, context, 0, 2));
	CU(cuGraphConditionalHandleCreate(&handle, graph, context, 7, 0));
	CU(cuGraphConditionalHandleCreate(&foreign, second, context, 0, 0));
	OK(handle != foreign);
	EXPECT(CUDA_ERROR_INVALID_VALUE, add(graph, conditional(handle, CU_GRAPH_COND_TYPE_IF, 0)));
	EXPECT(CUDA_ERROR_INVALID_VALUE, add(graph, conditional(handle, CU_GRAPH_COND_TYPE_IF, 3)));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		add(graph, conditional(handle, CU_GRAPH_COND_TYPE_WHILE, 2)));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		add(graph, conditional(handle, CU_GRAPH_COND_TYPE_SWITCH, 0)));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		add(graph, conditional(handle, (CUgraphConditionalNodeType)3, 1)));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		add(graph, conditional(foreign, CU_GRAPH_COND_TYPE_IF, 1)));
	EXPECT(CUDA_ERROR_INVALID_VALUE, add(graph, conditional(1, CU_GRAPH_COND_TYPE_IF, 1)));
	node = conditional_add(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
	EXPECT(CUDA_ERROR_INVALID_VALUE, add(graph, conditional(handle, CU_GRAPH_COND_TYPE_IF, 1)));
	/* A handle of a body is of no use outside of it. */
	CU(cuGraphConditionalHandleCreate(&inner, body, context, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, add(graph, conditional(inner, CU_GRAPH_COND_TYPE_IF, 1)));
	conditional_add(body, NULL, inner, CU_GRAPH_COND_TYPE_SWITCH, 1, &child);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(body));
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, graph));
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&node, second, NULL, 0, graph));
	CU(cuGraphDestroy(graph));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(body));
	CU(cuGraphDestroy(second));
	printf("wrong handles\n");
}

static void wrong_instantiations(void)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS how = { .flags = 0 };
	CUDA_MEMCPY3D download = copied(0, a);
	CUgraphConditionalHandle handle;
	CUgraphExecUpdateResultInfo info;
	CUgraph graph, body, changed;
	CUgraphNodeParams params;
	CUgraphNode node, copy;
	CUgraphExec exec, second;
	int host[LENGTH];

	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphConditionalHandleCreate(&handle, graph, context, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &how));
	OK(how.result_out == CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
	node = conditional_add(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
	params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphNodeSetParams(node, &params));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, body, 0));
	download.dstMemoryType = CU_MEMORYTYPE_HOST;
	download.dstHost = host;
	CU(cuGraphAddMemcpyNode(&copy, body, NULL, 0, &download, context));
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithParams(&exec, graph, &how));
	OK(how.hErrNode_out == copy);
	CU(cuGraphDestroyNode(copy));
	CU(cuGraphInstantiate(&exec, graph, 0));
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiate(&second, graph, 0));
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphExecNodeSetParams(exec, node, &params));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(exec, node, 0));
	/* Another type of node, another default value. */
	for (int i = 0; i < 2; i++) {
		CU(cuGraphCreate(&changed, 0));
		CU(cuGraphConditionalHandleCreate(&handle, changed, context, (unsigned)i, 0));
		conditional_add(changed, NULL, handle,
			i ? CU_GRAPH_COND_TYPE_IF : CU_GRAPH_COND_TYPE_WHILE, 1, &body);
		EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
			cuGraphExecUpdate(exec, changed, &info));
		OK(info.result ==
			(i ? CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED
			   : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED));
		CU(cuGraphDestroy(changed));
	}
	run(exec);
	CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphLaunch(exec, stream));
	CU(cuStreamEndCapture(stream, &changed));
	CU(cuGraphDestroy(changed));
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	printf("wrong instantiations\n");
}

/*
 * A kernel gets a pointer to pinned memory. Other memory may have the same address later; the
 * executable graph uses that then.
 */
static void pinned_again(void)
{
	CUdeviceptr at;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;
	int *pinned;

	CU(cuMemHostAlloc((void **)&pinned, BYTES, 0));
	memset(pinned, 0, BYTES);
	at = (CUdeviceptr)(uintptr_t)pinned;
	CU(cuGraphCreate(&graph, 0));
	node = increment_add(graph, increment_add(graph, NULL, at), a);
	OK(node != NULL);
	CU(cuGraphInstantiate(&exec, graph, 0));
	run(exec);
	OK(pinned[0] == 1 && pinned[LENGTH - 1] == 1);
	for (int i = 0; i < 3; i++) {
		CU(cuMemFreeHost(pinned));
		CU(cuMemHostAlloc((void **)&pinned, BYTES, 0));
		if (at != (CUdeviceptr)(uintptr_t)pinned)
			break; /* it has another address: nothing to see */
		for (int k = 0; k < LENGTH; k++)
			pinned[k] = 100 * i;
		run(exec);
		OK(pinned[0] == 100 * i + 1 && pinned[LENGTH - 1] == 100 * i + 1);
	}
	CU(cuMemFreeHost(pinned));
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	printf("pinned memory\n");
}

int main(void)
{
	CUmodule counting;

	graphs_begin();
	CU(cuModuleLoadData(&counting, ptx));
	CU(cuModuleGetFunction(&countdown, counting, "countdown"));
	CU(cuMemAlloc(&turns, sizeof(int)));
	bodies();
	around();
	printed();
	wrong_handles();
	wrong_instantiations();
	pinned_again();
	CU(cuMemFree(turns));
	CU(cuModuleUnload(counting));
	return graphs_end("graph_conditions");
}
