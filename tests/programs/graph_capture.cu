/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Stream capture through the runtime: fork and join, every kind of work, modes, queries, memory of
 * graphs, updates, many launches, and what is forbidden while a stream is captured.
 */
#include "check.h"

#include <pthread.h>

enum { LENGTH = 256, BYTES = LENGTH * 4, LAUNCHES = 1000 };

static __global__ void add(int *data, int value)
{
	data[threadIdx.x] += value;
}

static __global__ void sum(int *out, const int *x, const int *y)
{
	out[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x];
}

static __global__ void say(int value)
{
	if (threadIdx.x == 0)
		printf("kernel of a graph: %d\n", value);
}

static int *a, *b, *c, got[LENGTH], host_calls;
static cudaStream_t stream, side;

static void CUDART_CB on_host(void *argument)
{
	host_calls += *(int *)argument;
}

static void CUDART_CB on_status(cudaStream_t s, cudaError_t status, void *argument)
{
	(void)s;
	(void)status;
	(void)argument;
}

static bool is_all(const int *data, int value)
{
	CU(cudaMemcpy(got, data, BYTES, cudaMemcpyDeviceToHost));
	for (int i = 0; i < LENGTH; i++)
		if (got[i] != value)
			return false;
	return true;
}

static void begin(cudaStreamCaptureMode mode)
{
	CU(cudaStreamBeginCapture(stream, mode));
}

static cudaGraphExec_t finish(void)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CU(cudaStreamEndCapture(stream, &graph));
	CU(cudaGraphInstantiate(&exec, graph, 0));
	CU(cudaGraphDestroy(graph));
	return exec;
}

/* The capture under way must have been invalidated. */
static void invalidated(void)
{
	cudaGraph_t graph = (cudaGraph_t)1;

	EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
	OK(graph == NULL);
	cudaGetLastError();
}

static void fork_join(void)
{
	cudaEvent_t fork, join;
	cudaStreamCaptureStatus status;
	unsigned long long id = 0;
	cudaGraph_t graph, now;
	cudaGraphExec_t exec;
	const cudaGraphNode_t *deps;
	size_t n, edges;

	CU(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	CU(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	CU(cudaMemset(a, 0, BYTES));
	CU(cudaMemset(b, 0, BYTES));
	CU(cudaMemset(c, 0, BYTES));
	begin(cudaStreamCaptureModeGlobal);
	CU(cudaMemsetAsync(a, 0, BYTES, stream));
	CU(cudaEventRecord(fork, stream));
	CU(cudaStreamWaitEvent(side, fork, 0));
	add<<<1, LENGTH, 0, stream>>>(a, 1);
	CU(cudaMemcpyAsync(b, c, BYTES, cudaMemcpyDeviceToDevice, side));
	add<<<1, LENGTH, 0, side>>>(b, 10);
	CU(cudaStreamIsCapturing(side, &status));
	OK(status == cudaStreamCaptureStatusActive);
	CU(cudaEventRecord(join, side));
	CU(cudaStreamWaitEvent(stream, join, 0));
	CU(cudaStreamGetCaptureInfo(stream, &status, &id, &now, &deps, NULL, &n));
	OK(status == cudaStreamCaptureStatusActive && id != 0 && n == 2);
	sum<<<1, LENGTH, 0, stream>>>(c, a, b);
	CU(cudaStreamEndCapture(stream, &graph));
	OK(now == graph);
	CU(cudaStreamIsCapturing(side, &status));
	OK(status == cudaStreamCaptureStatusNone);
	CU(cudaGraphGetNodes(graph, NULL, &n));
	CU(cudaGraphGetEdges(graph, NULL, NULL, NULL, &edges));
	OK(n == 5 && edges == 5);
	OK(is_all(c, 0)); /* nothing has run */
	CU(cudaGraphInstantiate(&exec, graph, 0));
	CU(cudaGraphLaunch(exec, stream));
	CU(cudaStreamSynchronize(stream));
	OK(is_all(c, 11));
	CU(cudaGraphLaunch(exec, side));
	CU(cudaStreamSynchronize(side));
	OK(is_all(c, 22));
	CU(cudaMemset(c, 0, BYTES));
	for (int i = 0; i < LAUNCHES; i++)
		CU(cudaGraphLaunch(exec, stream));
	CU(cudaStreamSynchronize(stream));
	OK(is_all(c, 11 * LAUNCHES));
	EXPECT(cudaErrorCapturedEvent, cudaEventQuery(join));
	cudaGetLastError();
	CU(cudaEventRecord(join, stream));
	CU(cudaEventSynchronize(join));

	CU(cudaGraphDestroy(graph));
	CU(cudaGraphExecDestroy(exec));
	CU(cudaEventDestroy(fork));
	CU(cudaEventDestroy(join));
	printf("fork and join\n");
}

/* Work of each kind, with host memory that changes between launches. */
static void kinds(void)
{
	static int pageable[LENGTH];
	int *pinned, *piece, two = 2;
	cudaEvent_t external;
	cudaGraphExec_t exec, outer;

	CU(cudaMallocHost(&pinned, BYTES));
	CU(cudaEventCreate(&external));
	begin(cudaStreamCaptureModeThreadLocal);
	CU(cudaMemcpyAsync(a, pinned, BYTES, cudaMemcpyHostToDevice, stream));
	CU(cudaMallocAsync(&piece, BYTES, stream));
	CU(cudaMemcpyAsync(piece, a, BYTES, cudaMemcpyDeviceToDevice, stream));
	add<<<1, LENGTH, 0, stream>>>(piece, 5);
	CU(cudaMemcpyAsync(pageable, piece, BYTES, cudaMemcpyDeviceToHost, stream));
	CU(cudaLaunchHostFunc(stream, on_host, &two));
	CU(cudaFreeAsync(piece, stream));
	CU(cudaEventRecordWithFlags(external, stream, cudaEventRecordExternal));
	say<<<1, 1, 0, stream>>>(7);
	exec = finish();
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < LENGTH; k++)
			pinned[k] = i * 1000 + k;
		CU(cudaGraphLaunch(exec, stream));
		CU(cudaEventSynchronize(external));
		CU(cudaStreamSynchronize(stream));
		OK(pageable[0] == i * 1000 + 5 && pageable[255] == i * 1000 + 260);
		OK(host_calls == 2 * (i + 1));
	}
	CU(cudaGraphExecDestroy(exec));

	/* A launch of a graph is captured as a child graph. */
	begin(cudaStreamCaptureModeRelaxed);
	CU(cudaMemsetAsync(a, 0, BYTES, stream));
	add<<<1, LENGTH, 0, stream>>>(a, 3);
	exec = finish();
	begin(cudaStreamCaptureModeRelaxed);
	CU(cudaGraphLaunch(exec, stream));
	add<<<1, LENGTH, 0, stream>>>(a, 4);
	outer = finish();
	CU(cudaGraphExecDestroy(exec));
	CU(cudaGraphLaunch(outer, stream));
	CU(cudaStreamSynchronize(stream));
	OK(is_all(a, 7));
	CU(cudaGraphExecDestroy(outer));
	CU(cudaFreeHost(pinned));
	CU(cudaEventDestroy(external));
	printf("kinds of work\n");
}

/* Memory that a graph allocates and leaves to the program. */
static void memory(void)
{
	cudaGraph_t graph, clone;
	cudaGraphExec_t exec, second;
	int *piece;
	unsigned long long used = 0;

	begin(cudaStreamCaptureModeGlobal);
	CU(cudaMallocAsync(&piece, BYTES, stream));
	CU(cudaMemsetAsync(piece, 0, BYTES, stream));
	add<<<1, LENGTH, 0, stream>>>(piece, 9);
	CU(cudaStreamEndCapture(stream, &graph));
	CU(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
	OK(used >= BYTES);
	EXPECT(cudaErrorNotSupported, cudaGraphClone(&clone, graph));
	CU(cudaGraphInstantiate(&exec, graph, 0));
	EXPECT(cudaErrorNotSupported, cudaGraphInstantiate(&second, graph, 0));
	EXPECT(cudaErrorInvalidValue, cudaFree(piece)); /* no launch has allocated it */
	CU(cudaGraphLaunch(exec, stream));
	CU(cudaStreamSynchronize(stream));
	OK(is_all(piece, 9));
	EXPECT(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream)); /* it is not freed */
	CU(cudaFreeAsync(piece, stream));
	CU(cudaGraphLaunch(exec, stream));
	CU(cudaStreamSynchronize(stream));
	CU(cudaFree(piece));
	CU(cudaGraphExecDestroy(exec));
	CU(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
	for (int i = 0; i < 3; i++)
		CU(cudaGraphLaunch(exec, stream));
	CU(cudaStreamSynchronize(stream));
	CU(cudaGraphExecDestroy(exec));
	CU(cudaGraphDestroy(graph));
	OK(is_all(piece, 9)); /* still allocated */
	CU(cudaFree(piece));
	CU(cudaDeviceGraphMemTrim(0));
	used = 0;
	CU(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &used));
	CU(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &used));
	OK(used == 0);
	cudaGetLastError();
	printf("memory\n");
}

/* As programs do that capture again and update. */
static void updates(void)
{
	cudaGraphExec_t exec = NULL;
	cudaGraphExecUpdateResultInfo info;
	cudaGraph_t graph;

	for (int i = 1; i < 5; i++) {
		begin(cudaStreamCaptureModeGlobal);
		CU(cudaMemsetAsync(a, 0, BYTES, stream));
		add<<<1, LENGTH, 0, stream>>>(a, i);
		add<<<1, LENGTH, 0, stream>>>(a, 100);
		CU(cudaStreamEndCapture(stream, &graph));
		if (!exec)
			CU(cudaGraphInstantiate(&exec, graph, 0));
		else
			CU(cudaGraphExecUpdate(exec, graph, &info));
		CU(cudaGraphDestroy(graph));
		CU(cudaGraphLaunch(exec, stream));
		CU(cudaStreamSynchronize(stream));
		OK(is_all(a, 100 + i));
	}
	begin(cudaStreamCaptureModeGlobal);
	CU(cudaMemsetAsync(a, 0, BYTES, stream));
	CU(cudaMemsetAsync(a, 0, BYTES, stream));
	add<<<1, LENGTH, 0, stream>>>(a, 1);
	CU(cudaStreamEndCapture(stream, &graph));
	EXPECT(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, graph, &info));
	OK(info.result == cudaGraphExecUpdateErrorNodeTypeChanged);
	cudaGetLastError();
	CU(cudaGraphDestroy(graph));
	CU(cudaGraphExecDestroy(exec));

	/* Into a graph that exists. */
	CU(cudaGraphCreate(&graph, 0));
	CU(cudaStreamBeginCaptureToGraph(
		stream, graph, NULL, NULL, 0, cudaStreamCaptureModeGlobal));
	CU(cudaMemsetAsync(a, 0, BYTES, stream));
	add<<<1, LENGTH, 0, stream>>>(a, 8);
	CU(cudaStreamUpdateCaptureDependencies(
		stream, NULL, NULL, 0, cudaStreamSetCaptureDependencies));
	CU(cudaMemsetAsync(b, 0, BYTES, stream));
	cudaGraph_t same;
	CU(cudaStreamEndCapture(stream, &same));
	size_t roots = 0;
	CU(cudaGraphGetRootNodes(graph, NULL, &roots));
	OK(same == graph && roots == 2);
	CU(cudaGraphInstantiate(&exec, graph, 0));
	CU(cudaGraphLaunch(exec, stream));
	CU(cudaStreamSynchronize(stream));
	OK(is_all(a, 8) && is_all(b, 0));
	CU(cudaGraphExecDestroy(exec));
	CU(cudaGraphDestroy(graph));
	printf("updates\n");
}

static void *other_thread(void *result)
{
	cudaGraph_t graph;
	void *piece = NULL;
	cudaError_t *ret = (cudaError_t *)result;

	ret[0] = cudaStreamEndCapture(stream, &graph);
	ret[1] = cudaMalloc(&piece, 16);
	if (piece)
		cudaFree(piece);
	cudaGetLastError();
	return NULL;
}

/* A stream that joined is destroyed before the end of the capture, after others waited for it or not. */
static void destroyed(bool waited)
{
	cudaStream_t other;
	cudaEvent_t fork, join;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	size_t n = 0;

	CU(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CU(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	CU(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	begin(cudaStreamCaptureModeGlobal);
	CU(cudaEventRecord(fork, stream));
	CU(cudaStreamWaitEvent(other, fork, 0));
	CU(cudaMemsetAsync(b, 3, BYTES, other));
	CU(cudaEventRecord(join, other));
	if (waited)
		CU(cudaStreamWaitEvent(stream, join, 0));
	CU(cudaStreamDestroy(other));
	CU(cudaEventDestroy(fork));
	CU(cudaEventDestroy(join));
	CU(cudaMemsetAsync(a, 4, BYTES, stream));
	if (!waited) {
		EXPECT(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream, &graph));
		cudaGetLastError();
		return;
	}
	CU(cudaStreamEndCapture(stream, &graph));
	CU(cudaGraphGetNodes(graph, NULL, &n));
	OK(n == 2);
	CU(cudaGraphInstantiate(&exec, graph, 0));
	CU(cudaGraphLaunch(exec, stream));
	CU(cudaStreamSynchronize(stream));
	CU(cudaGraphExecDestroy(exec));
	CU(cudaGraphDestroy(graph));
}

static void forbidden(void)
{
	cudaError_t results[2];
	cudaEvent_t event, before;
	cudaStream_t blocking;
	cudaGraph_t graph;
	cudaStreamCaptureStatus status;
	cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	pthread_t thread;
	void *piece = NULL;

	CU(cudaEventCreate(&event));
	CU(cudaEventCreate(&before));
	CU(cudaEventRecord(before, stream));
	CU(cudaStreamCreate(&blocking));
	EXPECT(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
	EXPECT(cudaErrorStreamCaptureUnsupported,
		cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal));
	begin(cudaStreamCaptureModeGlobal);
	EXPECT(cudaErrorIllegalState, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
	CU(cudaStreamIsCapturing(stream, &status));
	OK(status == cudaStreamCaptureStatusInvalidated);
	EXPECT(cudaErrorStreamCaptureInvalidated, cudaMemsetAsync(a, 0, BYTES, stream));
	invalidated();
	begin(cudaStreamCaptureModeGlobal);
	EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(stream));
	invalidated();
	begin(cudaStreamCaptureModeGlobal);
	EXPECT(cudaErrorStreamCaptureUnsupported, cudaMalloc(&piece, 16));
	invalidated();
	begin(cudaStreamCaptureModeGlobal);
	EXPECT(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
	invalidated();
	begin(cudaStreamCaptureModeGlobal);
	EXPECT(cudaErrorStreamCaptureUnsupported, cudaEventQuery(before));
	invalidated();
	begin(cudaStreamCaptureModeGlobal);
	EXPECT(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(stream, before, 0));
	invalidated();
	begin(cudaStreamCaptureModeGlobal);
	EXPECT(cudaErrorStreamCaptureUnsupported,
		cudaStreamAddCallback(stream, on_status, NULL, 0));
	invalidated();

	/* A thread may allow itself what the mode forbids. */
	begin(cudaStreamCaptureModeGlobal);
	CU(cudaThreadExchangeStreamCaptureMode(&mode));
	OK(mode == cudaStreamCaptureModeGlobal);
	CU(cudaMalloc(&piece, 16));
	CU(cudaThreadExchangeStreamCaptureMode(&mode));
	OK(mode == cudaStreamCaptureModeRelaxed);
	pthread_create(&thread, NULL, other_thread, results);
	pthread_join(thread, NULL);
	OK(results[0] == cudaErrorStreamCaptureWrongThread);
	OK(results[1] == cudaErrorStreamCaptureUnsupported);
	invalidated();
	begin(cudaStreamCaptureModeThreadLocal);
	pthread_create(&thread, NULL, other_thread, results);
	pthread_join(thread, NULL);
	OK(results[0] == cudaErrorStreamCaptureWrongThread && results[1] == cudaSuccess);
	CU(cudaStreamEndCapture(stream, &graph));
	CU(cudaGraphDestroy(graph));
	CU(cudaFree(piece));

	/* Streams that joined: the end in the wrong one, without a join, of two captures. */
	begin(cudaStreamCaptureModeGlobal);
	CU(cudaEventRecord(event, stream));
	CU(cudaStreamWaitEvent(side, event, 0));
	CU(cudaMemsetAsync(b, 0, BYTES, side));
	EXPECT(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream, &graph));
	begin(cudaStreamCaptureModeGlobal);
	CU(cudaEventRecord(event, stream));
	CU(cudaStreamWaitEvent(side, event, 0));
	EXPECT(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(side, &graph));
	EXPECT(cudaErrorStreamCaptureInvalidated, cudaMemsetAsync(b, 0, BYTES, side));
	invalidated();
	begin(cudaStreamCaptureModeGlobal);
	CU(cudaStreamBeginCapture(side, cudaStreamCaptureModeGlobal));
	CU(cudaEventRecord(event, side));
	EXPECT(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(stream, event, 0));
	invalidated();
	EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(side, &graph));

	destroyed(true);
	destroyed(false);

	/* The legacy stream waits for blocking streams. */
	CU(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
	EXPECT(cudaErrorStreamCaptureImplicit, cudaMemset(a, 0, BYTES));
	EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(blocking, &graph));
	CU(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
	EXPECT(cudaErrorStreamCaptureImplicit, cudaStreamIsCapturing(cudaStreamLegacy, &status));
	CU(cudaStreamEndCapture(blocking, &graph));
	CU(cudaGraphDestroy(graph));
	begin(cudaStreamCaptureModeRelaxed);
	CU(cudaMemset(a, 0, BYTES)); /* not for the others */
	CU(cudaStreamEndCapture(stream, &graph));
	CU(cudaGraphDestroy(graph));
	cudaGetLastError();
	CU(cudaStreamDestroy(blocking));
	CU(cudaEventDestroy(event));
	CU(cudaEventDestroy(before));
	printf("what is forbidden\n");
}

int main(void)
{
	CU(cudaMalloc(&a, BYTES));
	CU(cudaMalloc(&b, BYTES));
	CU(cudaMalloc(&c, BYTES));
	CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CU(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
	fork_join();
	kinds();
	memory();
	updates();
	forbidden();
	CU(cudaFree(a));
	CU(cudaFree(b));
	CU(cudaFree(c));
	CU(cudaStreamDestroy(stream));
	CU(cudaStreamDestroy(side));
	return verdict("graph_capture");
}
