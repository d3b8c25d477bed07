/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Managed memory: the program and kernels use the same pointers in turn. Copies, fills, prefetches
 * and advice on it, structs with pointers, sparse accesses, streams, threads, host functions.
 */
#include <pthread.h>

#include "check.h"

static __global__ void add(int *p, size_t n, int by)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
		i += (size_t)gridDim.x * blockDim.x)
		p[i] += by;
}

static int *managed(size_t n, unsigned flags = cudaMemAttachGlobal)
{
	int *p = NULL;

	CU(cudaMallocManaged((void **)&p, n * sizeof *p, flags));
	return p;
}

static bool all_are(const int *p, size_t n, int first, int step)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != first + (int)i * step)
			return false;
	return true;
}

static void ping_pong(void)
{
	const size_t n = 100003;
	int *p = managed(n);
	bool ok = all_are(p, n, 0, 0);

	for (size_t i = 0; i < n; i++)
		p[i] = (int)i;
	for (int round = 0; round < 4; round++) {
		add<<<16, 128>>>(p, n, 1000);
		CU(cudaDeviceSynchronize());
		ok &= all_are(p, n, 1000, 1);
		for (size_t i = 0; i < n; i += 3)
			p[i] -= 1000;
		add<<<16, 128>>>(p, n, -1000);
		CU(cudaDeviceSynchronize());
		for (size_t i = 0; i < n; i++)
			ok &= p[i] == (int)i - (i % 3 ? 0 : 1000);
		for (size_t i = 0; i < n; i += 3)
			p[i] += 1000;
	}
	CU(cudaFree(p));
	printf("ping-pong: %s\n", ok ? "ok" : "WRONG");
}

static void untouched(void)
{
	int *p = managed(1 << 20);

	add<<<16, 128>>>(p, 1 << 20, 7);
	CU(cudaDeviceSynchronize());
	printf("untouched: %d %d\n", p[0], p[(1 << 20) - 1]);
	p[5] = 1;
	CU(cudaFree(p));
	p = managed(1 << 20);
	printf("fresh: %d %d\n", p[5], p[77777]);
	CU(cudaFree(p));
}

/* A list whose nodes and links are managed memory. */
struct node {
	int value;
	struct node *next;
};

static __global__ void list_double(struct node *node)
{
	for (; node; node = node->next)
		node->value *= 2;
}

static void linked_list(void)
{
	struct node *head = NULL;
	int sum = 0;

	for (int i = 0; i < 200; i++) {
		struct node *node;

		CU(cudaMallocManaged((void **)&node, sizeof *node));
		node->value = i;
		node->next = head;
		head = node;
	}
	list_double<<<1, 1>>>(head);
	CU(cudaDeviceSynchronize());
	while (head) {
		struct node *next = head->next;

		sum += head->value;
		CU(cudaFree(head));
		head = next;
	}
	printf("list: %d\n", sum);
}

static void sparse(void)
{
	const size_t n = 16 << 20;
	int *p = managed(n);
	long sum = 0;

	CU(cudaMemset(p, 1, n * sizeof *p));
	add<<<64, 256>>>(p, n, 1);
	CU(cudaDeviceSynchronize());
	for (size_t i = 0; i < n; i += 1234567)
		sum += p[i];
	p[n - 1] = 5;
	add<<<64, 256>>>(p, n, 1);
	CU(cudaDeviceSynchronize());
	printf("sparse: %ld %d %d\n", sum, p[n - 1], p[n / 2]);
	CU(cudaFree(p));
}

static void copies(void)
{
	const size_t n = 50000, bytes = n * sizeof(int);
	int *a = managed(n), *b = managed(n), *device, *host = (int *)malloc(bytes);
	bool ok = true;

	CU(cudaMalloc((void **)&device, bytes));
	for (size_t i = 0; i < n; i++)
		a[i] = host[i] = (int)i;
	CU(cudaMemcpy(device, a, bytes, cudaMemcpyHostToDevice));
	add<<<8, 128>>>(device, n, 1);
	CU(cudaMemcpy(b, device, bytes, cudaMemcpyDeviceToHost));
	ok &= all_are(b, n, 1, 1) && all_are(a, n, 0, 1);
	CU(cudaMemcpy(a, b, bytes, cudaMemcpyDefault));
	ok &= all_are(a, n, 1, 1);
	CU(cudaMemcpy(b, host, bytes, cudaMemcpyDefault));
	ok &= all_are(b, n, 0, 1);
	b[0] = 9;
	CU(cudaMemcpy(host, b, bytes, cudaMemcpyDefault));
	ok &= host[0] == 9 && host[n - 1] == (int)n - 1;
	/* Only the middle: what the program has written around it stays. */
	b[1] = 11;
	CU(cudaMemcpy(b + 100, host, 100 * sizeof(int), cudaMemcpyHostToDevice));
	ok &= b[1] == 11 && b[99] == 99 && b[100] == 9 && b[101] == 1 && b[200] == 200;
	CU(cudaMemset(b + 10, 0, 10 * sizeof(int)));
	ok &= b[9] == 9 && b[10] == 0 && b[19] == 0 && b[20] == 20;
	CU(cudaMemcpy2D(a, 8, b, 16, 4, n / 4, cudaMemcpyDefault));
	ok &= a[0] == 9 && a[2] == 4 && a[4] == 8;
	CU(cudaFree(device));
	CU(cudaFree(a));
	CU(cudaFree(b));
	free(host);
	printf("copies: %s\n", ok ? "ok" : "WRONG");
}

static void advice(void)
{
	const size_t n = 300000, bytes = n * sizeof(int);
	int *p = managed(n), value = 0, list[3];
	cudaPointerAttributes attributes;
	bool ok = true;

	for (size_t i = 0; i < n; i++)
		p[i] = 3;
#if CUDART_VERSION >= 13000
	struct cudaMemLocation device = { cudaMemLocationTypeDevice, 0 },
			       cpu = { cudaMemLocationTypeHost, 0 };

	CU(cudaMemPrefetchAsync(p, bytes, device, 0, 0));
	add<<<8, 128>>>(p, n, 1);
	CU(cudaMemPrefetchAsync(p, bytes / 2, cpu, 0, 0));
	CU(cudaMemAdvise(p, bytes / 2, cudaMemAdviseSetReadMostly, device));
	CU(cudaMemAdvise(p, bytes, cudaMemAdviseSetAccessedBy, device));
	CU(cudaMemAdvise(p, bytes, cudaMemAdviseSetPreferredLocation, cpu));
#else
	CU(cudaMemPrefetchAsync(p, bytes, 0, 0));
	add<<<8, 128>>>(p, n, 1);
	CU(cudaMemPrefetchAsync(p, bytes / 2, cudaCpuDeviceId, 0));
	CU(cudaMemAdvise(p, bytes / 2, cudaMemAdviseSetReadMostly, 0));
	CU(cudaMemAdvise(p, bytes, cudaMemAdviseSetAccessedBy, 0));
	CU(cudaMemAdvise(p, bytes, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId));
#endif
	CU(cudaDeviceSynchronize());
	ok &= all_are(p, n, 4, 0);
	CU(cudaMemRangeGetAttribute(
		&value, sizeof value, cudaMemRangeAttributeReadMostly, p, bytes / 2));
	printf("read mostly: %d", value);
	CU(cudaMemRangeGetAttribute(
		&value, sizeof value, cudaMemRangeAttributeReadMostly, p, bytes));
	printf(" %d\n", value);
	CU(cudaMemRangeGetAttribute(
		&value, sizeof value, cudaMemRangeAttributePreferredLocation, p, bytes));
	printf("preferred: %d\n", value);
	CU(cudaMemRangeGetAttribute(list, sizeof list, cudaMemRangeAttributeAccessedBy, p, bytes));
	printf("accessed by: %d %d %d\n", list[0], list[1], list[2]);
	CU(cudaMemRangeGetAttribute(
		&value, sizeof value, cudaMemRangeAttributeLastPrefetchLocation, p, bytes / 2));
	printf("prefetched: %d", value);
	CU(cudaMemRangeGetAttribute(
		&value, sizeof value, cudaMemRangeAttributeLastPrefetchLocation, p, bytes));
	printf(" %d\n", value);
	CU(cudaPointerGetAttributes(&attributes, p + 5));
	ok &= attributes.type == cudaMemoryTypeManaged && attributes.devicePointer == p + 5 &&
		attributes.hostPointer == p + 5;
	CU(cudaFree(p));
	printf("advice: %s\n", ok ? "ok" : "WRONG");
}

static void streams(void)
{
	enum { N = 4 };
	const size_t n = 70000;
	cudaStream_t stream[N];
	cudaEvent_t event;
	int *p[N];
	bool ok = true;

	CU(cudaEventCreate(&event));
	for (int i = 0; i < N; i++) {
		CU(cudaStreamCreateWithFlags(
			&stream[i], i % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
		p[i] = managed(n, i % 2 ? cudaMemAttachHost : cudaMemAttachGlobal);
		CU(cudaStreamAttachMemAsync(stream[i], p[i], 0, cudaMemAttachSingle));
		CU(cudaStreamSynchronize(stream[i]));
	}
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			for (size_t k = 0; k < n; k += 1000)
				p[i][k] = i * 10;
			add<<<8, 128, 0, stream[i]>>>(p[i], n, i);
		}
		for (int i = 0; i < N; i++) {
			CU(cudaEventRecord(event, stream[i]));
			CU(cudaEventSynchronize(event));
			for (size_t k = 0; k < n; k++)
				ok &= p[i][k] == (k % 1000 ? (round + 1) * i : i * 11);
		}
	}
	for (int i = 0; i < N; i++) {
		CU(cudaStreamAttachMemAsync(stream[i], p[i], 0, cudaMemAttachGlobal));
		CU(cudaStreamDestroy(stream[i]));
		add<<<8, 128>>>(p[i], n, 1);
	}
	CU(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++) {
		ok &= p[i][0] == i * 11 + 1 && p[i][1] == 3 * i + 1;
		CU(cudaFree(p[i]));
	}
	CU(cudaEventDestroy(event));
	printf("streams: %s\n", ok ? "ok" : "WRONG");
}

static __managed__ int counter = 5;
static __managed__ double table[3000] = { 1, 2, 3 };
static __device__ int in_device = 9;
static __managed__ int *pointer;

static __global__ void use_variables(void)
{
	counter += 2;
	table[2999] = table[1] * 10;
	if (pointer)
		*pointer = in_device + counter;
}

static void variables(void)
{
	int copy = 0;

	printf("variables: %d %g %g %d\n", counter, table[1], table[2999], pointer != NULL);
	counter += 10;
	pointer = managed(1);
	use_variables<<<1, 1>>>();
	CU(cudaDeviceSynchronize());
	printf("variables: %d %g %d", counter, table[2999], *pointer);
	table[1] = 0.5;
	counter = 100;
	use_variables<<<1, 1>>>();
	CU(cudaMemcpyFromSymbol(&copy, counter, sizeof copy));
	CU(cudaDeviceSynchronize());
	printf(" %d %g %d %d\n", counter, table[2999], *pointer, copy);
	CU(cudaFree(pointer));
}

/* Work on one buffer in several threads, each with a stream and a part of its own. */
struct part {
	int *p;
	size_t n;
	bool ok;
};

static void *part_run(void *user)
{
	struct part *part = (struct part *)user;
	cudaStream_t stream;

	CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CU(cudaStreamAttachMemAsync(stream, part->p, 0, cudaMemAttachSingle));
	CU(cudaStreamSynchronize(stream));
	part->ok = true;
	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < part->n; i++)
			part->p[i] = (int)i;
		add<<<4, 128, 0, stream>>>(part->p, part->n, round);
		CU(cudaStreamSynchronize(stream));
		part->ok &= all_are(part->p, part->n, round, 1);
	}
	CU(cudaStreamDestroy(stream));
	return NULL;
}

/* Reads in several threads what one kernel has written. */
static void *sum_run(void *user)
{
	struct part *part = (struct part *)user;

	part->ok = all_are(part->p, part->n, 5, 0);
	return NULL;
}

static void threads(void)
{
	enum { N = 4 };
	const size_t n = 200000;
	struct part part[N];
	pthread_t thread[N];
	int *all = managed(N * n);
	bool ok = true;

	for (int i = 0; i < N; i++) {
		part[i].p = managed(n);
		part[i].n = n;
		pthread_create(&thread[i], NULL, part_run, &part[i]);
	}
	for (int i = 0; i < N; i++) {
		pthread_join(thread[i], NULL);
		ok &= part[i].ok;
		CU(cudaFree(part[i].p));
	}
	add<<<16, 128>>>(all, N * n, 5);
	CU(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++) {
		part[i].p = all + i * n / 2;
		pthread_create(&thread[i], NULL, sum_run, &part[i]);
	}
	for (int i = 0; i < N; i++) {
		pthread_join(thread[i], NULL);
		ok &= part[i].ok;
	}
	CU(cudaFree(all));
	printf("threads: %s\n", ok ? "ok" : "WRONG");
}

static void CUDART_CB on_host(void *user)
{
	int *p = (int *)user;

	p[0] += 100;
	p[40000] = p[1] + 1;
}

static void CUDART_CB on_host_later(void *user)
{
	/* Long enough that the program waits by now; either order gives the same result. */
	for (volatile int i = 0; i < 50000000; i++)
		;
	on_host(user);
}

/* The program and a host function access memory of the device at the same time. */
static void both_on_host(void)
{
	int *p = managed(50000), *other = managed(1000);
	cudaStream_t stream;

	CU(cudaStreamCreate(&stream));
	add<<<8, 128, 0, stream>>>(p, 50000, 1);
	add<<<8, 128, 0, stream>>>(other, 1000, 5);
	CU(cudaStreamSynchronize(stream));
	add<<<8, 128, 0, stream>>>(p, 50000, 1);
	CU(cudaLaunchHostFunc(stream, on_host_later, p));
	printf("both on host: %d", other[999]);
	CU(cudaStreamSynchronize(stream));
	printf(" %d %d\n", p[0], p[40000]);
	CU(cudaStreamDestroy(stream));
	CU(cudaFree(p));
	CU(cudaFree(other));
}

static void host_function(void)
{
	int *p = managed(50000);
	cudaStream_t stream;

	CU(cudaStreamCreate(&stream));
	add<<<8, 128, 0, stream>>>(p, 50000, 1);
	CU(cudaLaunchHostFunc(stream, on_host, p));
	CU(cudaStreamSynchronize(stream));
	add<<<8, 128, 0, stream>>>(p, 50000, 1);
	CU(cudaStreamSynchronize(stream));
	printf("host function: %d %d %d\n", p[0], p[1], p[40000]);
	CU(cudaStreamDestroy(stream));
	CU(cudaFree(p));
}

/* An access without a synchronisation waits for the kernel. */
static void unsynchronised(void)
{
	int *p = managed(1000), *out = managed(1);

	add<<<1, 1>>>(p, 1000, 6);
	CU(cudaMemcpyAsync(out, p + 999, sizeof *out, cudaMemcpyDefault, 0));
	CU(cudaStreamSynchronize(0));
	printf("copied: %d\n", *out);
	CU(cudaFree(p));
	CU(cudaFree(out));
}

int main(void)
{
	int value = 0;

	CU(cudaDeviceGetAttribute(&value, cudaDevAttrManagedMemory, 0));
	printf("managed memory: %d\n", value);
	ping_pong();
	untouched();
	linked_list();
	sparse();
	copies();
	advice();
	streams();
	variables();
	threads();
	host_function();
	both_on_host();
	unsynchronised();
	return verdict("managed_memory");
}
