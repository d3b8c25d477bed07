/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Conditional nodes through the runtime, with values that kernels set: IF with one and with two
 * bodies, WHILE, SWITCH, one inside of another, bodies that are captured, updates, and a graph that is
 * instantiated again.
 */
#include "check.h"

enum { LENGTH = 64, BYTES = LENGTH * 4 };

static __global__ void add(int *data, int value)
{
	data[threadIdx.x] += value;
}

/* The value is what data[0] is modulo `modulus`. */
static __global__ void choose(cudaGraphConditionalHandle handle, const int *data, int modulus)
{
	cudaGraphSetConditional(handle, (unsigned)(data[0] % modulus));
}

/* Counts down; the loop goes on until *left is 0. */
static __global__ void countdown(cudaGraphConditionalHandle handle, int *left)
{
	if (threadIdx.x == 0)
		cudaGraphSetConditional(handle, --*left > 0);
}

struct pair {
	int *left;
	cudaGraphConditionalHandle handle;
};

/* A handle within a struct, and one in device memory. */
static __global__ void countdown_pair(struct pair pair)
{
	cudaGraphSetConditional(pair.handle, --*pair.left > 0);
}

static __global__ void countdown_stored(const cudaGraphConditionalHandle *handle, int *left)
{
	cudaGraphSetConditional(*handle, --*left > 0);
}

/* Collatz: 3n + 1 or n / 2 */
static __global__ void odd_step(int *n)
{
	*n = 3 * *n + 1;
}

static __global__ void even_step(int *n)
{
	*n /= 2;
}

static __global__ void collatz(
	cudaGraphConditionalHandle loop, cudaGraphConditionalHandle odd, int *n, int *steps)
{
	++*steps;
	cudaGraphSetConditional(loop, *n != 1);
	cudaGraphSetConditional(odd, (unsigned)(*n & 1));
}

static int *data, *left_over, *other, got[LENGTH];
static cudaStream_t stream;

static int first(const int *at)
{
	int value = -1;

	CU(cudaMemcpyAsync(&value, at, 4, cudaMemcpyDeviceToHost, stream));
	CU(cudaStreamSynchronize(stream));
	return value;
}

static void set(int *at, int value)
{
	CU(cudaMemcpyAsync(at, &value, 4, cudaMemcpyHostToDevice, stream));
	CU(cudaStreamSynchronize(stream));
}

static bool is_all(const int *at, int value)
{
	CU(cudaMemcpyAsync(got, at, BYTES, cudaMemcpyDeviceToHost, stream));
	CU(cudaStreamSynchronize(stream));
	for (int i = 0; i < LENGTH; i++)
		if (got[i] != value)
			return false;
	return true;
}

static cudaGraphNode_t kernel_node(
	cudaGraph_t graph, cudaGraphNode_t after, void *func, int threads, void **args)
{
	cudaKernelNodeParams params = { .func = func,
		.gridDim = dim3(1),
		.blockDim = dim3((unsigned)threads),
		.sharedMemBytes = 0,
		.kernelParams = args,
		.extra = NULL };
	cudaGraphNode_t node;

	CU(cudaGraphAddKernelNode(&node, graph, after ? &after : NULL, after ? 1 : 0, &params));
	return node;
}

static cudaGraphNode_t add_node(cudaGraph_t graph, cudaGraphNode_t after, int value)
{
	void *args[] = { &data, &value };

	return kernel_node(graph, after, (void *)add, LENGTH, args);
}

static cudaGraphNode_t conditional_node(cudaGraph_t graph, cudaGraphNode_t after,
	cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type, unsigned size,
	cudaGraph_t *bodies)
{
	cudaGraphNodeParams params = { cudaGraphNodeTypeConditional };
	cudaGraphNode_t node;

	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = size;
#if CUDART_VERSION >= 13000
	CU(cudaGraphAddNode(&node, graph, after ? &after : NULL, NULL, after ? 1 : 0, &params));
#else
	CU(cudaGraphAddNode(&node, graph, after ? &after : NULL, after ? 1 : 0, &params));
#endif
	for (unsigned i = 0; i < size; i++)
		bodies[i] = params.conditional.phGraph_out[i];
	return node;
}

static cudaGraphConditionalHandle handle_of(cudaGraph_t graph, unsigned value, bool assigned)
{
	cudaGraphConditionalHandle handle;

	CU(cudaGraphConditionalHandleCreate(
		&handle, graph, value, assigned ? cudaGraphCondAssignDefault : 0));
	return handle;
}

static void run(cudaGraphExec_t exec)
{
	CU(cudaGraphLaunch(exec, stream));
	CU(cudaStreamSynchronize(stream));
}

static void branches(void)
{
	cudaGraph_t graph, bodies[2], cases[3];
	cudaGraphConditionalHandle either, which;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	int two = 2, four = 4;

	CU(cudaGraphCreate(&graph, 0));
	either = handle_of(graph, 0, false);
	which = handle_of(graph, 9, true);
	void *odd_args[] = { &either, &data, &two }, *case_args[] = { &which, &other, &four };
	node = kernel_node(graph, NULL, (void *)choose, 1, odd_args);
	node = conditional_node(graph, node, either, cudaGraphCondTypeIf, 2, bodies);
	add_node(bodies[0], NULL, 100);
	add_node(bodies[1], add_node(bodies[1], NULL, 7), -6);
	node = kernel_node(graph, node, (void *)choose, 1, case_args);
	node = conditional_node(graph, node, which, cudaGraphCondTypeSwitch, 3, cases);
	for (int i = 0; i < 3; i++)
		add_node(cases[i], NULL, 1000 * (i + 1));
	CU(cudaGraphInstantiate(&exec, graph, 0));
	CU(cudaMemset(data, 0, BYTES));
	set(other, 1);
	run(exec); /* even: + 1; case 1: + 2000 */
	OK(is_all(data, 2001));
	set(other, 3);
	run(exec); /* odd: + 100; no case 3 */
	OK(is_all(data, 2101));
	set(other, 8);
	run(exec); /* odd: + 100; case 0: + 1000 */
	OK(is_all(data, 3201));
	CU(cudaGraphExecDestroy(exec));
	CU(cudaGraphDestroy(graph));
	printf("branches\n");
}

/* Nothing sets these: the default value is used at each launch. */
static void defaults(void)
{
	cudaGraph_t graph, bodies[1];
	cudaGraphConditionalHandle on, off;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;

	CU(cudaGraphCreate(&graph, 0));
	on = handle_of(graph, 5, true);
	off = handle_of(graph, 0, true);
	node = conditional_node(graph, NULL, on, cudaGraphCondTypeIf, 1, bodies);
	add_node(bodies[0], NULL, 1);
	node = conditional_node(graph, node, off, cudaGraphCondTypeIf, 1, bodies);
	add_node(bodies[0], NULL, 1000);
	CU(cudaGraphInstantiate(&exec, graph, 0));
	CU(cudaMemset(data, 0, BYTES));
	for (int i = 0; i < 3; i++)
		CU(cudaGraphLaunch(exec, stream));
	CU(cudaStreamSynchronize(stream));
	OK(is_all(data, 3));
	CU(cudaGraphExecDestroy(exec));
	CU(cudaGraphDestroy(graph));
	printf("defaults\n");
}

/* The number of turns is known to the device only. The body is captured. */
static void loops(void)
{
	cudaGraph_t graph, bodies[1], captured;
	cudaGraphConditionalHandle handle, *stored;
	cudaGraphExec_t exec;

	CU(cudaMalloc(&stored, sizeof(*stored)));
	for (int kind = 0; kind < 3; kind++) {
		CU(cudaGraphCreate(&graph, 0));
		handle = handle_of(graph, 1, true);
		conditional_node(graph, NULL, handle, cudaGraphCondTypeWhile, 1, bodies);
		CU(cudaMemcpy(stored, &handle, sizeof(handle), cudaMemcpyHostToDevice));
		CU(cudaStreamBeginCaptureToGraph(
			stream, bodies[0], NULL, NULL, 0, cudaStreamCaptureModeRelaxed));
		add<<<1, LENGTH, 0, stream>>>(data, 3);
		if (kind == 0)
			countdown<<<1, 32, 0, stream>>>(handle, left_over);
		else if (kind == 1)
			countdown_pair<<<1, 1, 0, stream>>>((struct pair){ left_over, handle });
		else
			countdown_stored<<<1, 1, 0, stream>>>(stored, left_over);
		/* The program has the graph already. */
		CU(cudaStreamEndCapture(stream, kind == 0 ? &captured : NULL));
		OK(kind > 0 || captured == bodies[0]);
		CU(cudaGraphInstantiate(&exec, graph, 0));
		CU(cudaMemset(data, 0, BYTES));
		set(left_over, 10);
		run(exec);
		OK(is_all(data, 30) && first(left_over) == 0);
		set(left_over, 1);
		run(exec);
		OK(is_all(data, 33));
		set(left_over, 500);
		run(exec);
		OK(is_all(data, 1533));
		CU(cudaGraphExecDestroy(exec));
		CU(cudaGraphDestroy(graph));
	}
	CU(cudaFree(stored));
	printf("loops\n");
}

/* A loop with a choice inside: steps of a Collatz sequence. */
static void nested(void)
{
	cudaGraph_t graph, loop[1], choice[2];
	cudaGraphConditionalHandle again, odd;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
	int total = 0;

	CU(cudaGraphCreate(&graph, 0));
	again = handle_of(graph, 1, true);
	conditional_node(graph, NULL, again, cudaGraphCondTypeWhile, 1, loop);
	odd = handle_of(loop[0], 0, false);
	void *args[] = { &again, &odd, &other, &left_over }, *step[] = { &other };
	node = kernel_node(loop[0], NULL, (void *)collatz, 1, args);
	conditional_node(loop[0], node, odd, cudaGraphCondTypeIf, 2, choice);
	kernel_node(choice[0], NULL, (void *)odd_step, 1, step);
	kernel_node(choice[1], NULL, (void *)even_step, 1, step);
	CU(cudaGraphInstantiate(&exec, graph, 0));
	for (int n = 1; n < 20; n++) {
		int want = 0, at = n;

		set(other, n);
		set(left_over, 0);
		run(exec);
		/* The turn that sees 1 still makes a step. */
		for (bool more = true; more; want++) {
			more = at != 1;
			at = at & 1 ? 3 * at + 1 : at / 2;
		}
		OK(first(other) == at && first(left_over) == want);
		total += first(left_over);
	}
	printf("nested: %d steps\n", total);
	CU(cudaGraphExecDestroy(exec));
	CU(cudaGraphDestroy(graph));
}

static __global__ void fail(cudaGraphConditionalHandle handle, int *left)
{
	cudaGraphSetConditional(handle, 1);
	if (--*left == 0)
		__trap();
}

/* A kernel that fails ends the loop, which nothing else would end. */
static void failure(void)
{
	cudaGraphConditionalHandle handle;
	cudaGraph_t graph, bodies[1];
	cudaGraphExec_t exec;

	CU(cudaGraphCreate(&graph, 0));
	handle = handle_of(graph, 1, true);
	void *args[] = { &handle, &left_over };
	conditional_node(graph, NULL, handle, cudaGraphCondTypeWhile, 1, bodies);
	kernel_node(bodies[0], NULL, (void *)fail, 1, args);
	CU(cudaGraphInstantiate(&exec, graph, 0));
	set(left_over, 20);
	CU(cudaGraphLaunch(exec, stream));
	EXPECT(cudaErrorLaunchFailure, cudaStreamSynchronize(stream));
	printf("failure\n");
}

static cudaGraph_t loop_graph(int value)
{
	cudaGraphConditionalHandle handle;
	cudaGraph_t graph, bodies[1];

	CU(cudaGraphCreate(&graph, 0));
	handle = handle_of(graph, 1, true);
	void *args[] = { &handle, &left_over };
	conditional_node(
		graph, add_node(graph, NULL, 1), handle, cudaGraphCondTypeWhile, 1, bodies);
	kernel_node(bodies[0], add_node(bodies[0], NULL, value), (void *)countdown, 1, args);
	return graph;
}

static int run_from(cudaGraphExec_t exec, int turns)
{
	CU(cudaMemset(data, 0, BYTES));
	set(left_over, turns);
	run(exec);
	OK(is_all(data, first(data)));
	return first(data);
}

/* The kernels of another graph set the conditions of the one that was instantiated. */
static void updates(void)
{
	cudaGraph_t graph = loop_graph(10), changed = loop_graph(20);
	cudaGraphExecUpdateResultInfo info;
	cudaGraphExec_t exec, second;

	CU(cudaGraphInstantiate(&exec, graph, 0));
	OK(run_from(exec, 4) == 41);
	EXPECT(cudaErrorNotSupported, cudaGraphInstantiate(&second, graph, 0));
	cudaGetLastError();
	CU(cudaGraphExecUpdate(exec, changed, &info));
	OK(info.result == cudaGraphExecUpdateSuccess);
	OK(run_from(exec, 4) == 81);
	CU(cudaGraphDestroy(changed));
	OK(run_from(exec, 3) == 61);
	CU(cudaGraphExecDestroy(exec));
	/* Again, with a driver's graph of its own. */
	for (int i = 0; i < 3; i++) {
		CU(cudaGraphInstantiate(&exec, graph, 0));
		OK(run_from(exec, 2 + i) == 21 + 10 * i);
		if (i < 2)
			CU(cudaGraphExecDestroy(exec));
	}
	/* The executable graph outlives the graph, and launches may be queued when it ends. */
	CU(cudaGraphDestroy(graph));
	CU(cudaMemset(data, 0, BYTES));
	set(left_over, 5);
	CU(cudaGraphLaunch(exec, stream));
	CU(cudaGraphExecDestroy(exec));
	CU(cudaStreamSynchronize(stream));
	OK(is_all(data, 51));
	printf("updates\n");
}

int main(void)
{
	CU(cudaMalloc(&data, BYTES));
	CU(cudaMalloc(&left_over, 4));
	CU(cudaMalloc(&other, 4));
	CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	branches();
	defaults();
	loops();
	nested();
	updates();
	failure(); /* nothing works after it */
	return verdict("graph_conditional");
}
