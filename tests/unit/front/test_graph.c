/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Executable graphs as the backend gets them: parts, records of a launch, updates; captures. */
#include "front.h"

enum { LENGTH = 4 };

static CUstream stream;
static CUdeviceptr a, b;
static CUgraph graph;

static void start(void)
{
	begin();
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
