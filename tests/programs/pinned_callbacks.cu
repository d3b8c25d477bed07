/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Host functions between kernels that use pinned or registered host memory directly: a function sees
 * what the kernels before it wrote, and the kernels behind it see what the function wrote, without
 * any wait of the program in between.
 */
#include <atomic>

#include "check.h"

static __global__ void add(int *p, int n, int by)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		p[i] += by;
}

static __global__ void add_many(int *p, int times)
{
	for (int i = 0; i < times; i++)
		atomicAdd(&p[threadIdx.x], 1);
}

static void add_in(cudaStream_t stream, int *p, int n, int by)
{
	add<<<(n + 127) / 128, 128, 0, stream>>>(p, n, by);
}

/* What a host function looks at and changes. */
struct work {
	int *p;
	int n, want, by, step;
	bool right;
	std::atomic<bool> *gate; /* waits for it if it is not NULL */
};

static void on_host(void *user)
{
	struct work *work = (struct work *)user;

	while (work->gate && !work->gate->load())
		;
	work->right = true;
	for (int i = 0; i < work->n; i++)
		work->right &= work->p[i] == work->want;
	for (int i = 0; i < work->n; i += work->step)
		work->p[i] += work->by;
}

static void on_callback(cudaStream_t stream, cudaError_t status, void *user)
{
	(void)stream;
	on_host(user);
	((struct work *)user)->right &= status == cudaSuccess;
}

static bool all(const int *p, int n, int want)
{
	for (int i = 0; i < n; i++)
		if (p[i] != want)
			return false;
	return true;
}

/* Kernel, function, kernel, function, ...: the program waits at the end only. */
static void in_turn(const char *name, int *p, int n, bool callbacks)
{
	enum { ROUNDS = 4 };
	struct work works[ROUNDS];
	cudaStream_t stream;
	bool ok = true;

	CU(cudaStreamCreate(&stream));
	memset(p, 0, n * sizeof *p);
	for (int i = 0; i < ROUNDS; i++) {
		works[i] = { p, n, 11 * i + 1, 10, 1, false, NULL };
		add_in(stream, p, n, 1);
		if (callbacks)
			CU(cudaStreamAddCallback(stream, on_callback, &works[i], 0));
		else
			CU(cudaLaunchHostFunc(stream, on_host, &works[i]));
	}
	add_in(stream, p, n, 1);
	CU(cudaStreamSynchronize(stream));
	for (int i = 0; i < ROUNDS; i++)
		ok &= works[i].right;
	printf("%s: functions %s, kernels %s\n", name, ok ? "ok" : "WRONG",
		all(p, n, 11 * ROUNDS + 1) ? "ok" : "WRONG");
	OK(ok && all(p, n, 11 * ROUNDS + 1));
	CU(cudaStreamDestroy(stream));
}

static void plain(void)
{
	const int n = 20000;
	int *p;

	CU(cudaMallocHost((void **)&p, n * sizeof *p));
	in_turn("pinned", p, n, false);
	in_turn("pinned, callbacks", p, 100, true);
	CU(cudaFreeHost(p));
}

static void registered(void)
{
	const int n = 5000;
	int *all_of = (int *)malloc((n + 10) * sizeof *all_of);

	for (int i = 0; i < n + 10; i++)
		all_of[i] = -1;
	CU(cudaHostRegister(all_of + 5, n * sizeof *all_of, cudaHostRegisterDefault));
	in_turn("registered", all_of + 5, n, false);
	CU(cudaHostUnregister(all_of + 5));
	OK(all(all_of, 5, -1) && all(all_of + 5 + n, 5, -1));
	free(all_of);
}

/* The kernel that first uses the memory is launched while a function of its stream runs. */
static void used_first_behind(void)
{
	std::atomic<bool> gate(false);
	struct work first, second;
	cudaStream_t stream;
	int *p;

	CU(cudaStreamCreate(&stream));
	CU(cudaMallocHost((void **)&p, 100 * sizeof *p));
	memset(p, 0, 100 * sizeof *p);
	first = { p, 100, 0, 5, 1, false, &gate };
	second = { p, 100, 7, 1, 1, false, NULL };
	CU(cudaLaunchHostFunc(stream, on_host, &first));
	add_in(stream, p, 100, 2);
	CU(cudaLaunchHostFunc(stream, on_host, &second));
	gate = true;
	CU(cudaStreamSynchronize(stream));
	printf("first use behind a function: %s\n",
		first.right && second.right && all(p, 100, 8) ? "ok" : "WRONG");
	OK(first.right && second.right && all(p, 100, 8));
	CU(cudaFreeHost(p));
	CU(cudaStreamDestroy(stream));
}

/* A function changes every second number of many pages. */
static void scattered(void)
{
	const int n = 8192;
	bool ok = true;
	struct work work;
	int *p;

	CU(cudaMallocHost((void **)&p, n * sizeof *p));
	memset(p, 0, n * sizeof *p);
	work = { p, n, 1, 2, 2, false, NULL };
	add_in(0, p, n, 1);
	CU(cudaLaunchHostFunc(0, on_host, &work));
	add_in(0, p, n, 4);
	CU(cudaDeviceSynchronize());
	for (int i = 0; i < n; i++)
		ok &= p[i] == (i % 2 ? 5 : 7);
	printf("scattered: %s\n", ok && work.right ? "ok" : "WRONG");
	OK(ok && work.right);
	CU(cudaFreeHost(p));
}

/* Functions and kernels of several streams change numbers of one page at the same time. */
static void neighbours(void)
{
	enum { STREAMS = 3, ROUNDS = 20, EACH = 4 };
	struct work works[STREAMS][ROUNDS];
	cudaStream_t streams[STREAMS];
	bool ok = true;
	int *p;

	CU(cudaMallocHost((void **)&p, 4096));
	memset(p, 0, 4096);
	for (int s = 0; s < STREAMS; s++)
		CU(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
	for (int i = 0; i < ROUNDS; i++)
		for (int s = 0; s < STREAMS; s++) {
			works[s][i] = { p + s * EACH, EACH, 101 * i + 100, 1, 1, false, NULL };
			add_many<<<1, EACH, 0, streams[s]>>>(p + s * EACH, 100);
			CU(cudaLaunchHostFunc(streams[s], on_host, &works[s][i]));
		}
	for (int s = 0; s < STREAMS; s++) {
		CU(cudaStreamSynchronize(streams[s]));
		for (int i = 0; i < ROUNDS; i++)
			ok &= works[s][i].right;
		ok &= all(p + s * EACH, EACH, 101 * ROUNDS);
		CU(cudaStreamDestroy(streams[s]));
	}
	printf("neighbours: %s\n", ok ? "ok" : "WRONG");
	OK(ok);
	CU(cudaFreeHost(p));
}

/* The program changes the memory and launches a kernel while a function has not run. */
static void launched_meanwhile(void)
{
	struct work work;
	int *p;

	CU(cudaMallocHost((void **)&p, 2000 * sizeof *p));
	memset(p, 0, 2000 * sizeof *p);
	work = { p, 1000, 1, 1, 1, false, NULL };
	for (int round = 0; round < 20; round++) {
		memset(p, 0, 1000 * sizeof *p);
		add_many<<<1, 100>>>(p + 1900, 500);
		add_in(0, p, 1000, 1);
		CU(cudaLaunchHostFunc(0, on_host, &work));
		p[1500] = round;
		add_in(0, p, 2000, 1);
		CU(cudaDeviceSynchronize());
		OK(work.right && all(p, 1000, 3) && p[1500] == round + 1);
	}
	printf("launched meanwhile: %s\n", work.right && all(p, 1000, 3) ? "ok" : "WRONG");
	CU(cudaFreeHost(p));
}

static void graphs(void)
{
	struct work work;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;
	int *p;

	CU(cudaStreamCreate(&stream));
	CU(cudaMallocHost((void **)&p, 1000 * sizeof *p));
	memset(p, 0, 1000 * sizeof *p);
	work = { p, 1000, 3, 2, 1, false, NULL };
	CU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	add_in(stream, p, 1000, 3);
	CU(cudaLaunchHostFunc(stream, on_host, &work));
	add_in(stream, p, 1000, 4);
	CU(cudaStreamEndCapture(stream, &graph));
	CU(cudaGraphInstantiate(&exec, graph, 0));
	CU(cudaGraphLaunch(exec, stream));
	CU(cudaStreamSynchronize(stream));
	printf("graphs: %s\n", work.right && all(p, 1000, 9) ? "ok" : "WRONG");
	OK(work.right && all(p, 1000, 9));
	work.want = 12;
	CU(cudaGraphLaunch(exec, stream));
	CU(cudaStreamSynchronize(stream));
	OK(work.right && all(p, 1000, 18));
	CU(cudaGraphExecDestroy(exec));
	CU(cudaGraphDestroy(graph));
	CU(cudaFreeHost(p));
	CU(cudaStreamDestroy(stream));
}

int main(void)
{
	plain();
	registered();
	used_first_behind();
	scattered();
	neighbours();
	launched_meanwhile();
	graphs();
	return verdict("pinned_callbacks");
}
