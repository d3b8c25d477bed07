/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Executable graphs as the backend gets them: parts, records of a launch, updates; captures. */
#include "base/opt.h"
#include "front.h"

enum { LENGTH = 4 };

static CUstream stream;
static CUdeviceptr a, b;
static CUgraph graph;

static void start(void)
{
	begin();
	ob_opt_set(OB_OPT_GRAPHS, true); /* one test turns it off */
	OK(obf_cuMemAlloc_v2(&a, LENGTH * 4));
	OK(obf_cuMemAlloc_v2(&b, LENGTH * 4));
	OK(obf_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(obf_cuGraphCreate(&graph, 0));
}

static void stop(void)
{
	OK(obf_cuGraphDestroy(graph));
}

static CUDA_MEMSET_NODE_PARAMS filled(CUdeviceptr dst, unsigned value)
{
	return (CUDA_MEMSET_NODE_PARAMS){
		.dst = dst, .value = value, .elementSize = 4, .width = LENGTH, .height = 1
	};
}

static CUgraphNode fill_add(CUgraph to, CUgraphNode dep, unsigned value)
{
	const CUDA_MEMSET_NODE_PARAMS params = filled(a, value);
	CUgraphNode node = NULL;

	OK(obf_cuGraphAddMemsetNode(&node, to, &dep, dep != NULL, &params, NULL));
	return node;
}

static CUgraphNode copy_add(CUgraphNode dep, void *host)
{
	const CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.srcDevice = b,
		.dstHost = host,
		.WidthInBytes = LENGTH * 4,
		.Height = 1,
		.Depth = 1 };
	CUgraphNode node = NULL;

	OK(obf_cuGraphAddMemcpyNode(&node, graph, &dep, dep != NULL, &copy, NULL));
	return node;
}

TEST(a_graph_that_needs_only_the_device_is_one_part)
{
	CUgraphExec exec;
	CUgraphNode last = NULL;

	start();
	for (unsigned i = 0; i < 10; i++)
		last = fill_add(graph, i % 2 ? last : NULL, i);
	OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_INT(fake.graphs, 1);
	CHECK_INT(fake.graph_nodes, 10);
	CHECK_INT(fake.bad_deps, 0);
	for (int i = 0; i < 100; i++)
		OK(obf_cuGraphLaunch(exec, stream));
	CHECK_INT(fake.graph_launches, 100);
	CHECK_INT(fake.records, 0);
	OK(obf_cuGraphExecDestroy(exec));
	CHECK_INT(fake.graphs, 0);
	stop();
}

/* Edges may lead from younger nodes to older ones. */
TEST(parts_are_in_the_order_of_the_dependencies)
{
	CUgraphNode first, second, host, alone;
	uint32_t out[LENGTH] = { 0 }, at_b[LENGTH] = { 1, 2, 3, 4 };
	CUgraphExec exec;

	start();
	OK(obf_cuMemcpyHtoD_v2(b, at_b, sizeof at_b, NULL));
	second = fill_add(graph, NULL, 2);
	first = fill_add(graph, NULL, 1);
	alone = fill_add(graph, NULL, 3);
	host = copy_add(first, out);
	OK(obf_cuGraphAddDependencies(graph, &host, &second, 1));
	OK(obf_cuGraphAddDependencies(graph, &second, &alone, 1));
	OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
	/* fill 1, copy to the host, and as a part: fill 2, fill 3 */
	CHECK_INT(fake.graphs, 1);
	CHECK_INT(fake.graph_nodes, 2);
	OK(obf_cuGraphLaunch(exec, stream));
	CHECK_INT(fake.graph_launches, 1);
	CHECK_INT(out[3], 4);
	CHECK_INT(*(uint32_t *)(uintptr_t)a, 1);
	OK(obf_cuGraphExecDestroy(exec));
	stop();
}

TEST(an_update_sends_only_what_differs)
{
	CUgraphExecUpdateResultInfo info;
	CUDA_MEMSET_NODE_PARAMS params;
	CUgraphNode nodes[5] = { NULL };
	CUgraphExec exec;
	unsigned on = 7;

	start();
	params = filled(b, 9);
	for (unsigned i = 0; i < 5; i++)
		nodes[i] = fill_add(graph, i ? nodes[i - 1] : NULL, i);
	OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(obf_cuGraphExecUpdate_v2(exec, graph, &info));
	CHECK_INT(fake.graph_sets, 0);
	OK(obf_cuGraphMemsetNodeSetParams(nodes[3], &params));
	OK(obf_cuGraphExecUpdate_v2(exec, graph, &info));
	CHECK_INT(fake.graph_sets, 1);
	CHECK_INT(fake.last_node, 3);
	CHECK_INT(fake.last_fill.value, 9);
	OK(obf_cuGraphNodeSetEnabled(exec, nodes[1], 0));
	CHECK_INT(fake.graph_sets, 2);
	CHECK_INT(fake.last_node, 1);
	OK(obf_cuGraphNodeGetEnabled(exec, nodes[1], &on));
	CHECK_INT(on, 0);
	OK(obf_cuGraphNodeSetEnabled(exec, nodes[1], 0));
	CHECK_INT(fake.graph_sets, 2);
	OK(obf_cuGraphDestroyNode(nodes[4]));
	CHECK_INT(
		obf_cuGraphExecUpdate_v2(exec, graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	CHECK_INT(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(obf_cuGraphExecDestroy(exec));
	stop();
}

TEST(a_driver_that_refuses_is_told_at_the_instantiation)
{
	CUgraphExec exec;

	start();
	fill_add(graph, fill_add(graph, NULL, 1), 2);
	fake.graph_result = CUDA_ERROR_NOT_SUPPORTED;
	CHECK_INT(obf_cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	fake.graph_result = CUDA_SUCCESS;
	OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(obf_cuGraphExecDestroy(exec));
	CHECK_INT(fake.graphs, 0);
	stop();
}

TEST(a_captured_launch_keeps_its_arguments)
{
	uint64_t p0 = 0x1122334455667788, p2 = 5;
	uint32_t p1 = 77;
	void *args[] = { &p0, &p1, &p2 };
	CUfunction first;
	CUgraphExec exec;
	CUmodule module;
	CUgraph captured;

	start();
	OK(obf_cuModuleLoadData(&module, ptx_text));
	OK(obf_cuModuleGetFunction(&first, module, "first"));
	/* The launch calls are a backend's; they come here when the stream is captured. */
	OK(obf_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	{
		const CUDA_KERNEL_NODE_PARAMS kernel = { .func = first,
			.gridDimX = 2,
			.gridDimY = 1,
			.gridDimZ = 1,
			.blockDimX = 8,
			.blockDimY = 1,
			.blockDimZ = 1,
			.kernelParams = args };
		CUstreamCaptureStatus status;
		CUgraphNode node;

		OK(obf_cuStreamGetCaptureInfo_v2(stream, &status, NULL, &captured, NULL, NULL));
		OK(obf_cuGraphAddKernelNode_v2(&node, captured, NULL, 0, &kernel));
		OK(obf_cuStreamUpdateCaptureDependencies(
			stream, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	}
	OK(obf_cuStreamEndCapture(stream, &captured));
	p1 = 0;
	OK(obf_cuGraphInstantiateWithFlags(&exec, captured, 0));
	OK(obf_cuGraphDestroy(captured));
	/* A single node is launched by itself. */
	OK(obf_cuGraphLaunch(exec, stream));
	CHECK_INT(fake.graphs, 0);
	CHECK_INT(fake.launches, 1);
	CHECK_INT(fake.last_launch.grid[0], 2);
	memcpy(&p1, fake.last_packed + 8, sizeof p1);
	CHECK_INT(p1, 77);
	OK(obf_cuGraphExecDestroy(exec));
	stop();
}

/* ---- conditional nodes ---- */

static CUgraphConditionalHandle handle_make(CUgraph of)
{
	CUgraphConditionalHandle handle = 0;

	OK(obf_cuGraphConditionalHandleCreate(&handle, of, NULL, 3, CU_GRAPH_COND_ASSIGN_DEFAULT));
	return handle;
}

static CUgraphNode conditional_add(CUgraph to, CUgraphNode dep, CUgraphConditionalHandle handle,
	CUgraphConditionalNodeType type, unsigned size, CUgraph *bodies)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	CUgraphNode node = NULL;

	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = size;
	OK(obf_cuGraphAddNode_v2(&node, to, &dep, NULL, dep != NULL, &params));
	memcpy(bodies, params.conditional.phGraph_out, size * sizeof *bodies);
	return node;
}

/* A kernel with two parameters of 8 bytes, p0 and p2. */
static CUgraphNode kernel_add(CUgraph to, CUgraphNode dep, uint64_t p0)
{
	static CUmodule module;
	static CUfunction first;
	uint64_t p2 = 5;
	uint32_t p1 = 77;
	void *args[] = { &p0, &p1, &p2 };
	CUDA_KERNEL_NODE_PARAMS kernel = { .gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = args };
	CUgraphNode node = NULL;

	if (!module) {
		OK(obf_cuModuleLoadData(&module, ptx_text));
		OK(obf_cuModuleGetFunction(&first, module, "first"));
	}
	kernel.func = first;
	OK(obf_cuGraphAddKernelNode_v2(&node, to, &dep, dep != NULL, &kernel));
	return node;
}

/* The graph comes first, then each body, after the body that it is in. */
TEST(bodies_are_in_the_part_of_their_node)
{
	static const struct {
		int kind;
		uint32_t parent, branch;
	} want[] = {
		{ OBF_TASK_FILL, UINT32_MAX, 0 },
		{ OBF_TASK_CONDITIONAL, UINT32_MAX, 0 },
		{ OBF_TASK_FILL, UINT32_MAX, 0 },
		{ OBF_TASK_FILL, 1, 0 },
		{ OBF_TASK_FILL, 1, 0 },
		{ OBF_TASK_CONDITIONAL, 1, 1 },
		{ OBF_TASK_FILL, 5, 0 },
	};
	CUgraph bodies[2], inner[1];
	CUgraphConditionalHandle outer, nested;
	CUgraphExec exec;
	CUgraphNode node;

	start();
	outer = handle_make(graph);
	nested = handle_make(graph);
	CHECK(nested != outer);
	node = fill_add(graph, NULL, 1);
	node = conditional_add(graph, node, outer, CU_GRAPH_COND_TYPE_IF, 2, bodies);
	fill_add(graph, node, 2);
	conditional_add(bodies[1], NULL, nested, CU_GRAPH_COND_TYPE_WHILE, 1, inner);
	fill_add(inner[0], NULL, 3);
	fill_add(bodies[0], fill_add(bodies[0], NULL, 4), 5);
	OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_INT(fake.graphs, 1);
	CHECK_INT(fake.begun, 1);
	CHECK_INT(fake.bad_deps, 0);
	CHECK_INT(fake.n_tasks, sizeof want / sizeof want[0]);
	for (uint32_t i = 0; i < fake.n_tasks; i++) {
		CHECK_INT(fake.tasks[i].kind, want[i].kind);
		CHECK_INT(fake.tasks[i].parent, want[i].parent);
		CHECK_INT(fake.tasks[i].branch, want[i].branch);
	}
	CHECK(fake.tasks[1].conditional.handle == outer);
	CHECK(fake.tasks[5].conditional.handle == nested);
	for (int i = 0; i < 10; i++)
		OK(obf_cuGraphLaunch(exec, stream));
	CHECK_INT(fake.graph_launches, 10);
	OK(obf_cuGraphExecDestroy(exec));
	CHECK_INT(fake.begun, 1); /* the graph has it */
	stop();
	CHECK_INT(fake.begun, 0);
}

/* A part is prepared for its conditional node even if that is all, or nothing else is prepared. */
TEST(a_conditional_node_alone_is_a_part)
{
	CUgraph body[1];
	CUgraphExec exec;

	for (int i = 0; i < 2; i++) {
		ob_opt_set(OB_OPT_GRAPHS, i == 0);
		if (i == 0)
			start();
		else
			OK(obf_cuGraphCreate(&graph, 0));
		conditional_add(
			graph, NULL, handle_make(graph), CU_GRAPH_COND_TYPE_SWITCH, 1, body);
		OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
		CHECK_INT(fake.n_tasks, 1);
		OK(obf_cuGraphLaunch(exec, stream));
		CHECK_INT(fake.graph_launches, i + 1);
		/* The executable graph outlives its graph. */
		stop();
		OK(obf_cuGraphLaunch(exec, stream));
		fake.graph_launches--;
		CHECK_INT(fake.begun, 1);
		OK(obf_cuGraphExecDestroy(exec));
		CHECK_INT(fake.begun, 0);
	}
}

TEST(without_the_switch_nodes_are_given_in_turn)
{
	CUgraphExec exec;

	start();
	ob_opt_set(OB_OPT_GRAPHS, false);
	fill_add(graph, fill_add(graph, NULL, 1), 2);
	OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(obf_cuGraphLaunch(exec, stream));
	CHECK_INT(fake.graphs, 0);
	CHECK_INT(*(uint32_t *)(uintptr_t)a, 2);
	OK(obf_cuGraphExecDestroy(exec));
	stop();
}

/* A second executable graph has conditions of its own; its kernels get those. */
TEST(handles_of_a_second_executable_graph)
{
	CUgraphConditionalHandle handle;
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUgraphExec exec, both;
	CUgraphNode setter;
	uint64_t word;
	CUgraph body[1];

	start();
	handle = handle_make(graph);
	setter = kernel_add(graph, NULL, handle);
	conditional_add(graph, setter, handle, CU_GRAPH_COND_TYPE_IF, 1, body);
	OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(fake.tasks[1].conditional.handle == handle);
	CHECK_INT(obf_cuGraphInstantiateWithFlags(&both, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	OK(obf_cuGraphExecDestroy(exec));
	OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(fake.tasks[1].conditional.handle == handle + 8);
	/* The program reads its own handle, and the backend gets the other. */
	OK(obf_cuGraphKernelNodeGetParams_v2(setter, &kernel));
	CHECK(*(uint64_t *)kernel.kernelParams[0] == handle);
	OK(obf_cuGraphExecKernelNodeSetParams_v2(exec, setter, &kernel));
	memcpy(&word, fake.last_packed, sizeof word);
	CHECK(word == handle + 8);
	memcpy(&word, fake.last_packed + 16, sizeof word);
	CHECK_INT(word, 5);
	OK(obf_cuGraphExecDestroy(exec));
	stop();
	CHECK_INT(fake.begun, 0);
}

/* The graph ends before its second executable graph, which does not have the graph's conditions. */
TEST(a_graph_ends_before_its_second_executable_graph)
{
	CUgraphConditionalHandle handle;
	CUgraphExec exec;
	CUgraph body[1];

	start();
	handle = handle_make(graph);
	conditional_add(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, body);
	OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(obf_cuGraphExecDestroy(exec));
	OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_INT(fake.begun, 2);
	OK(obf_cuGraphDestroy(graph));
	OK(obf_cuGraphCreate(&graph, 0));
	CHECK_INT(fake.begun, 1);
	OK(obf_cuGraphExecDestroy(exec));
	CHECK_INT(fake.begun, 0);
	stop();
}

/* A condition that was made for a body ends with the body, used or not. */
TEST(conditions_of_a_body_end_with_it)
{
	CUgraphConditionalHandle outer, inner, unused;
	CUgraph body[1], nested[1];
	CUgraphExec exec;
	CUgraphNode node;

	start();
	outer = handle_make(graph);
	node = conditional_add(graph, NULL, outer, CU_GRAPH_COND_TYPE_IF, 1, body);
	inner = handle_make(body[0]);
	unused = handle_make(body[0]);
	CHECK(inner != unused);
	conditional_add(body[0], NULL, inner, CU_GRAPH_COND_TYPE_IF, 1, nested);
	CHECK_INT(obf_cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuGraphDestroyNode(node));
	conditional_add(graph, NULL, outer, CU_GRAPH_COND_TYPE_IF, 1, body);
	OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(obf_cuGraphExecDestroy(exec));
	stop();
	CHECK_INT(fake.begun, 0);
}

/* The client's work between the kernel and the node is no part of the driver's graph. */
TEST(a_condition_is_not_set_from_another_part)
{
	uint32_t out[LENGTH];
	CUgraphConditionalHandle handle;
	CUgraphNode setter, host;
	CUgraphExec exec;
	CUgraph body[1];

	start();
	handle = handle_make(graph);
	setter = kernel_add(graph, NULL, handle);
	host = copy_add(setter, out);
	conditional_add(graph, host, handle, CU_GRAPH_COND_TYPE_IF, 1, body);
	CHECK_INT(obf_cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	stop();
	CHECK_INT(fake.begun, 0);
}

TEST(a_driver_that_refuses_a_conditional_graph)
{
	CUgraphConditionalHandle handle;
	CUgraphExec exec;
	CUgraph body[1];

	start();
	handle = handle_make(graph);
	conditional_add(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1, body);
	fake.graph_result = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK_INT(obf_cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_OUT_OF_MEMORY);
	fake.graph_result = CUDA_SUCCESS;
	/* What was begun may have nodes, so it is not used again. */
	OK(obf_cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(fake.tasks[0].conditional.handle == handle + 8);
	OK(obf_cuGraphExecDestroy(exec));
	stop();
	CHECK_INT(fake.begun, 0);
}

TEST(a_destroyed_stream_ends_its_capture)
{
	CUstream other;
	CUevent event;

	start();
	OK(obf_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(obf_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(obf_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(obf_cuEventRecord(event, stream));
	OK(obf_cuStreamWaitEvent(other, event, 0));
	OK(obf_cuStreamDestroy_v2(stream));
	OK(obf_cuStreamSynchronize(other));
	CHECK_INT(obf_cuStreamWaitEvent(other, event, 0), CUDA_ERROR_CAPTURED_EVENT);
	OK(obf_cuEventDestroy_v2(event));
	OK(obf_cuMemAlloc_v2(&b, 16)); /* no capture forbids it */
	stop();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
