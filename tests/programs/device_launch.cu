/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Grids that device code launches: a recursion, the order in the NULL stream and in created streams,
 * events, copies and fills, fire and forget, tail launches, more launches than the limit, and what
 * wrong launches return.
 */
#include "check.h"

enum { DEPTH = 6, FAN = 3, CHAIN = 20, MANY = 5000 };

/* A tree: each grid counts itself and launches three. */
__global__ void tree(unsigned *count, int depth)
{
	if (threadIdx.x == 0 && blockIdx.x == 0)
		atomicAdd(&count[depth], 1);
	if (depth + 1 < DEPTH && threadIdx.x < FAN && blockIdx.x == 0)
		tree<<<2, 32>>>(count, depth + 1);
}

/* Only the right order gives the right value. */
__global__ void step(unsigned long long *value, unsigned long long add)
{
	*value = *value * 3 + add;
}

__global__ void put(unsigned *to, unsigned value)
{
	to[threadIdx.x] = value + threadIdx.x;
}

__global__ void add(unsigned *to, const unsigned *from)
{
	to[threadIdx.x] += from[threadIdx.x];
}

/* Each block has a NULL stream of its own; all of its threads launch into it. */
__global__ void chains(unsigned long long *value)
{
	for (unsigned i = 0; i < CHAIN; i++) {
		if (threadIdx.x == i)
			step<<<1, 1>>>(value + blockIdx.x, i + blockIdx.x);
		__syncthreads();
	}
}

__global__ void streams(unsigned long long *value, int *code)
{
	cudaStream_t stream;

	code[threadIdx.x] = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
	for (unsigned i = 0; i < CHAIN; i++)
		step<<<1, 1, 0, stream>>>(value + threadIdx.x, i ^ threadIdx.x);
	code[threadIdx.x] += cudaStreamDestroy(stream);
}

/* b is written in one stream and read in the other, which waits for an event. */
__global__ void events(unsigned *a, unsigned *b, int *code)
{
	cudaStream_t first, second;
	cudaEvent_t event;

	code[0] = cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
	code[1] = cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
	code[2] = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
	code[3] = cudaMemsetAsync(b, 0, 256, first);
	put<<<1, 64, 0, first>>>(b, 1000);
	code[4] = cudaEventRecord(event, first);
	code[5] = cudaStreamWaitEvent(second, event, 0);
	code[6] = cudaMemcpyAsync(a, b, 128, cudaMemcpyDeviceToDevice, second);
	add<<<1, 64, 0, second>>>(a, b);
	code[7] = cudaEventDestroy(event) + cudaStreamDestroy(first) + cudaStreamDestroy(second);
}

__global__ void note(unsigned *log, unsigned *place, unsigned what)
{
	log[atomicAdd(place, 1)] = what;
}

/* A tail grid with a tail of its own, which runs before the other tail grids of its parent. */
__global__ void tail(unsigned *log, unsigned *place, unsigned what)
{
	note<<<1, 1, 0, cudaStreamTailLaunch>>>(log, place, what + 1);
	log[atomicAdd(place, 1)] = what;
}

__global__ void tails(unsigned *log, unsigned *place, unsigned *count)
{
	tail<<<1, 1, 0, cudaStreamTailLaunch>>>(log, place, 20);
	note<<<1, 1, 0, cudaStreamTailLaunch>>>(log, place, 30);
	tree<<<1, 32, 0, cudaStreamFireAndForget>>>(count, DEPTH - 3);
	note<<<1, 1>>>(log, place, 10);
}

__global__ void one(unsigned *count)
{
	atomicAdd(count, 1);
}

__global__ void many(unsigned *count)
{
	for (int i = threadIdx.x; i < MANY; i += blockDim.x)
		one<<<1, 1>>>(count);
}

__global__ void wrong(unsigned *count, int *code, unsigned threads)
{
	one<<<1, threads>>>(count);
	code[0] = cudaPeekAtLastError();
	code[1] = cudaGetLastError();
	code[2] = cudaGetLastError();
	code[3] = cudaStreamDestroy((cudaStream_t)0x123456);
	code[4] = cudaGetLastError();
	one<<<1, 1>>>(count);
	code[5] = cudaGetLastError();
	code[6] = cudaGetDevice(&code[7]);
	printf("%s: %s\n", cudaGetErrorName(cudaErrorInvalidConfiguration),
		cudaGetErrorString(cudaErrorInvalidConfiguration));
}

template <class T> static T *zeros(size_t n)
{
	T *p;

	CU(cudaMallocManaged(&p, n * sizeof(T)));
	memset(p, 0, n * sizeof(T));
	return p;
}

static void orders(void)
{
	unsigned long long *value = zeros<unsigned long long>(64);
	int *code = zeros<int>(64);

	chains<<<4, 32>>>(value);
	CU(cudaDeviceSynchronize());
	for (unsigned b = 0; b < 4; b++) {
		unsigned long long want = 0;
		for (unsigned i = 0; i < CHAIN; i++)
			want = want * 3 + i + b;
		OK(value[b] == want);
	}
	memset(value, 0, 64 * sizeof *value);
	streams<<<1, 64>>>(value, code);
	CU(cudaDeviceSynchronize());
	for (unsigned t = 0; t < 64; t++) {
		unsigned long long want = 0;
		for (unsigned i = 0; i < CHAIN; i++)
			want = want * 3 + (i ^ t);
		OK(value[t] == want && code[t] == 0);
	}
	printf("order of streams: kept\n");
}

static void copies(void)
{
	unsigned *a = zeros<unsigned>(64), *b = zeros<unsigned>(64);
	int *code = zeros<int>(8);

	events<<<1, 1>>>(a, b, code);
	CU(cudaDeviceSynchronize());
	for (unsigned i = 0; i < 64; i++)
		OK(b[i] == 1000 + i && a[i] == (i < 32 ? 2u : 1u) * (1000 + i));
	for (int i = 0; i < 8; i++)
		OK(code[i] == cudaSuccess);
	printf("copies and events: kept\n");
}

int main()
{
	unsigned *count = zeros<unsigned>(DEPTH), *log = zeros<unsigned>(8),
		 *place = zeros<unsigned>(1);
	int *code = zeros<int>(8), device;
	size_t limit;

	tree<<<1, 32>>>(count, 0);
	CU(cudaDeviceSynchronize());
	for (int i = 0; i < DEPTH; i++)
		printf("depth %d: %u grids\n", i, count[i]);
	orders();
	copies();

	memset(count, 0, DEPTH * sizeof *count);
	tails<<<1, 1>>>(log, place, count);
	CU(cudaDeviceSynchronize());
	printf("tails: %u %u %u %u; beside them %u grids\n", log[0], log[1], log[2], log[3],
		count[DEPTH - 3] + count[DEPTH - 2] + count[DEPTH - 1]);

	CU(cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount));
	printf("pending launches: %zu\n", limit);
	CU(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 2 * MANY));
	*count = 0;
	many<<<1, 256>>>(count);
	CU(cudaDeviceSynchronize());
	printf("many: %u grids\n", *count);

	*count = 0;
	CU(cudaGetDevice(&device));
	wrong<<<1, 1>>>(count, code, 2048);
	CU(cudaDeviceSynchronize());
	OK(code[0] != 0 && code[0] == code[1] && code[2] == 0);
	OK(code[3] != 0 && code[3] == code[4]);
	OK(code[5] == 0 && code[6] == 0 && code[7] == device && *count == 1);
	printf("passed\n");
	return 0;
}
