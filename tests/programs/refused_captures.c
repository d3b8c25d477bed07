/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Wrong uses of stream capture. The codes are those that cuda.h documents. */
#include <pthread.h>

#include "refused_graphs.h"

/* ---- capture ---- */

static CUresult ended;

static void *end_elsewhere(void *user)
{
	CUgraph out;

	(void)user;
	CU(cuCtxSetCurrent(context));
	ended = cuStreamEndCapture(stream, &out);
	return NULL;
}

static void captures(void)
{
	CUstreamCaptureMode mode = (CUstreamCaptureMode)9;
	CUstreamCaptureStatus status;
	CUgraphNode foreign;
	pthread_t thread;
	CUstream plain;
	CUgraph out, second;

	begin();
	CU(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
	REFUSE_VALUE(cuStreamBeginCapture(stream, (CUstreamCaptureMode)9));
	REFUSE_VALUE(cuStreamBeginCapture(stream, (CUstreamCaptureMode)-1));
	REFUSE(STREAM_CAPTURE_UNSUPPORTED,
		cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED));
	REFUSE_VALUE(cuThreadExchangeStreamCaptureMode(&mode));
	REFUSE_VALUE(cuThreadExchangeStreamCaptureMode(NULL));
	REFUSE(ILLEGAL_STATE, cuStreamEndCapture(stream, &out));
	REFUSE(ILLEGAL_STATE, cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 0));
	CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	REFUSE(ILLEGAL_STATE, cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	REFUSE_VALUE(cuStreamIsCapturing(stream, NULL));
	REFUSE_VALUE(cuStreamGetCaptureInfo(stream, NULL, NULL, NULL, NULL, NULL, NULL));
	REFUSE_VALUE(cuStreamEndCapture(stream, NULL));
	CU(cuGraphCreate(&second, 0));
	CU(cuGraphAddEmptyNode(&foreign, second, NULL, 0));
	REFUSE_VALUE(cuStreamUpdateCaptureDependencies(stream, &foreign, NULL, 1, 0));
	REFUSE_VALUE(cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 1, 0));
	REFUSE_VALUE(cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 8));
	OK(pthread_create(&thread, NULL, end_elsewhere, NULL) == 0);
	pthread_join(thread, NULL);
	REFUSE(STREAM_CAPTURE_WRONG_THREAD, ended);
	REFUSE(ILLEGAL_STATE, cuStreamEndCapture(plain, &out));
	CU(cuStreamEndCapture(stream, &out));
	REFUSE(ILLEGAL_STATE, cuStreamEndCapture(stream, &out));
	CU(cuStreamIsCapturing(stream, &status));
	OK(status == CU_STREAM_CAPTURE_STATUS_NONE);
	CU(cuStreamDestroy(plain));
	REFUSE(INVALID_HANDLE, cuStreamBeginCapture(plain, CU_STREAM_CAPTURE_MODE_RELAXED));
	REFUSE(INVALID_HANDLE, cuStreamIsCapturing(plain, &status));
}

static void capture_into_graph(void)
{
	const CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUstreamCaptureStatus status;
	const CUgraphNode *deps;
	const CUgraphEdgeData *data;
	CUgraphEdgeData edge = { .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, .from_port = 1 };
	CUDA_KERNEL_NODE_PARAMS one;
	CUgraphNode foreign, first;
	CUgraph second, out, inside;
	CUgraphExec exec;
	size_t n;

	begin();
	one = kernel(1);
	CU(cuGraphCreate(&second, 0));
	CU(cuGraphAddEmptyNode(&foreign, second, NULL, 0));
	CU(cuGraphAddKernelNode(&first, graph, NULL, 0, &one));
	REFUSE_VALUE(cuStreamBeginCaptureToGraph(stream, NULL, NULL, NULL, 0, relaxed));
	REFUSE_VALUE(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 1, relaxed));
	REFUSE_VALUE(cuStreamBeginCaptureToGraph(stream, graph, &foreign, NULL, 1, relaxed));
	REFUSE_VALUE(
		cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, (CUstreamCaptureMode)9));
	CU(cuStreamBeginCaptureToGraph(stream, graph, &first, &edge, 1, relaxed));
	/* The data of the edge would be lost. */
	REFUSE(LOSSY_QUERY, cuStreamGetCaptureInfo(stream, &status, NULL, NULL, &deps, NULL, &n));
	REFUSE_VALUE(cuStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, &data, &n));
	CU(cuStreamGetCaptureInfo(stream, &status, NULL, &inside, &deps, &data, &n));
	OK(inside == graph && n == 1 && data[0].from_port == 1);
	/* Until the capture ends the graph stays as it is, and cannot run. */
	REFUSE_VALUE(cuGraphDestroy(graph));
	REFUSE_VALUE(cuGraphDestroyNode(first));
	REFUSE_VALUE(cuGraphInstantiate(&exec, graph, 0));
	CU(cuStreamEndCapture(stream, &out));
	OK(out == graph);
	/* The same for a graph that contains the graph. */
	CU(cuGraphAddChildGraphNode(&foreign, second, NULL, 0, graph));
	CU(cuGraphChildGraphNodeGetGraph(foreign, &inside));
	CU(cuStreamBeginCaptureToGraph(stream, inside, NULL, NULL, 0, relaxed));
	REFUSE_VALUE(cuGraphDestroy(second));
	REFUSE_VALUE(cuGraphDestroyNode(foreign));
	REFUSE_VALUE(cuGraphInstantiate(&exec, second, 0));
	CU(cuStreamEndCapture(stream, &out));
	OK(out == inside);
	CU(cuGraphDestroy(second));
	/* The same for the graph of a capture. */
	CU(cuStreamBeginCapture(stream, relaxed));
	CU(cuMemsetD8Async(memory, 1, 64, stream));
	CU(cuStreamGetCaptureInfo(stream, &status, NULL, &inside, &deps, NULL, &n));
	REFUSE_VALUE(cuGraphDestroy(inside));
	REFUSE_VALUE(cuGraphDestroyNode(deps[0]));
	REFUSE_VALUE(cuGraphInstantiate(&exec, inside, 0));
	CU(cuMemsetD8Async(memory, 2, 64, stream));
	CU(cuStreamEndCapture(stream, &out));
	CU(cuGraphGetNodes(out, NULL, &n));
	OK(out == inside && n == 2);
	exec = made(out);
	CU(cuGraphLaunch(exec, stream));
	CU(cuStreamSynchronize(stream));
	CU(cuMemcpyDtoH(host, memory, 1));
	OK(host[0] == 2);
}

static void invalidated(void)
{
	CUstreamCaptureStatus status;
	CUgraph out;
	CUevent event;

	begin();
	CU(cuEventCreate(&event, 0));
	CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	REFUSE(STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
	REFUSE(STREAM_CAPTURE_INVALIDATED, cuMemsetD8Async(memory, 0, 4, stream));
	REFUSE(STREAM_CAPTURE_INVALIDATED, cuEventRecord(event, stream));
	REFUSE(STREAM_CAPTURE_INVALIDATED, cuMemcpyHtoDAsync(memory, host, 4, stream));
	REFUSE(STREAM_CAPTURE_INVALIDATED, cuLaunchHostFunc(stream, nothing, NULL));
	REFUSE(STREAM_CAPTURE_INVALIDATED,
		cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
	CU(cuStreamIsCapturing(stream, &status));
	OK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	out = graph;
	REFUSE(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &out));
	OK(!out);
	REFUSE(ILLEGAL_STATE, cuStreamEndCapture(stream, &out));
	/* Calls that cannot be captured. */
	CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	REFUSE(STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream));
	REFUSE(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &out));
	CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	CU(cuStreamDestroy(stream));
	REFUSE(INVALID_HANDLE, cuStreamEndCapture(stream, &out));
	CU(cuCtxSynchronize());
}

static const struct refused_group GROUPS[] = {
	{ "captures", captures },
	{ "captures into a graph", capture_into_graph },
	{ "invalidated captures", invalidated },
};

int main(void)
{
	return refused_run("refused_captures", GROUPS, sizeof GROUPS / sizeof *GROUPS);
}
