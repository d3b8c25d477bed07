/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Order: within a stream, between streams, against the legacy and the per-thread default stream;
 * what a busy stream says of itself.
 */
#include "tests/unit/softapi/api.h"

#include <pthread.h>

static CUstream stream_new(unsigned flags)
{
	CUstream s = NULL;

	OK(FRONT(cuStreamCreate)(&s, flags));
	return s;
}

static bool idle(CUstream s)
{
	CUresult r = FRONT(cuStreamQuery)(s);

	CHECK(r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY);
	return r == CUDA_SUCCESS;
}

static void settle(void)
{
	let_pass(50000,
		"work that could run may run; a machine that is slow makes this no stricter");
}

DEVICE_TEST(in_order)
{
	CUdeviceptr p = device_new(4);
	CUstream s = stream_new(CU_STREAM_NON_BLOCKING);

	OK(FRONT(cuMemsetD32Async)(p, 0, 1, s));
	for (uint64_t i = 0; i < 500; i++) {
		OK(launch("store", s, p, i * 3));
		OK(launch("add", s, p, 1));
	}
	OK(FRONT(cuStreamSynchronize)(s));
	CHECK_INT(device_u32(p), 499 * 3 + 1);
	OK(FRONT(cuStreamDestroy_v2)(s));
	OK(FRONT(cuMemFree_v2)(p));
}

DEVICE_TEST(streams_are_apart)
{
	CUdeviceptr p = device_new(4);
	CUstream a = stream_new(0), b = stream_new(0);
	struct gate gate;

	OK(FRONT(cuMemsetD32Async)(p, 0, 1, b));
	OK(FRONT(cuStreamSynchronize)(b));
	gate_set(&gate, a);
	OK(launch("store", b, p, 5));
	OK(FRONT(cuStreamSynchronize)(b)); /* not held up by a */
	CHECK(!idle(a));
	gate_open(&gate);
	OK(FRONT(cuStreamSynchronize)(a));
	CHECK(idle(a));
	CHECK_INT(device_u32(p), 5);
	OK(FRONT(cuStreamDestroy_v2)(a));
	OK(FRONT(cuStreamDestroy_v2)(b));
	OK(FRONT(cuMemFree_v2)(p));
}

/*
 * Many streams whose host functions all wait at once: none may hold up the one that lets them go.
 */
DEVICE_TEST(host_functions_do_not_starve)
{
	enum { N = 100 };
	struct gate gates[N];
	CUstream s[N];

	if (!soft())
		TEST_SKIP("for the software device alone");
	for (int i = 0; i < N; i++) {
		s[i] = stream_new(CU_STREAM_NON_BLOCKING);
		gate_set(&gates[i], s[i]);
	}
	for (int i = N - 1; i >= 0; i--)
		sem_wait(&gates[i].entered);
	for (int i = 0; i < N; i++)
		gate_open(&gates[i]);
	OK(FRONT(cuCtxSynchronize)());
	for (int i = 0; i < N; i++)
		OK(FRONT(cuStreamDestroy_v2)(s[i]));
}

DEVICE_TEST(legacy_waits_for_blocking)
{
	CUdeviceptr p = device_new(4);
	CUstream blocking = stream_new(0), apart = stream_new(CU_STREAM_NON_BLOCKING);
	struct gate gate;

	OK(FRONT(cuMemsetD32Async)(p, 0, 1, apart));
	OK(FRONT(cuStreamSynchronize)(apart));
	gate_set(&gate, blocking);
	OK(launch("store", NULL, p, 9)); /* behind the gate */
	OK(launch("add", apart, p, 0));  /* free to go: does not wait for either */
	OK(FRONT(cuStreamSynchronize)(apart));
	settle();
	CHECK(!idle(NULL));
	gate_open(&gate);
	OK(FRONT(cuStreamSynchronize)(NULL));
	CHECK_INT(device_u32(p), 9);
	OK(FRONT(cuStreamDestroy_v2)(blocking));
	OK(FRONT(cuStreamDestroy_v2)(apart));
	OK(FRONT(cuMemFree_v2)(p));
}

DEVICE_TEST(blocking_waits_for_legacy)
{
	CUdeviceptr p = device_new(8);
	CUstream blocking = stream_new(0), apart = stream_new(CU_STREAM_NON_BLOCKING);
	uint32_t seen[2] = { 0 };
	struct gate gate;

	OK(FRONT(cuMemsetD32Async)(p, 0, 2, apart));
	OK(FRONT(cuStreamSynchronize)(apart));
	gate_set(&gate, NULL);
	OK(launch("store", blocking, p, 1));
	OK(launch("store", apart, p + 4, 2));
	OK(FRONT(cuStreamSynchronize)(apart));
	settle();
	OK(FRONT(cuMemcpyDtoHAsync_v2)(seen, p, 8, apart));
	OK(FRONT(cuStreamSynchronize)(apart));
	CHECK_INT(seen[0], 0);
	CHECK_INT(seen[1], 2);
	CHECK(!idle(blocking));
	gate_open(&gate);
	OK(FRONT(cuStreamSynchronize)(blocking));
	CHECK_INT(device_u32(p), 1);
	OK(FRONT(cuStreamDestroy_v2)(blocking));
	OK(FRONT(cuStreamDestroy_v2)(apart));
	OK(FRONT(cuMemFree_v2)(p));
}

static void *other_thread(void *arg)
{
	CUdeviceptr p = *(CUdeviceptr *)arg;

	OK(FRONT(cuCtxSetCurrent)(context));
	OK(launch("store", CU_STREAM_PER_THREAD, p, 21));
	OK(FRONT(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
	return NULL;
}

/* Each thread has its own; it is a blocking stream against the legacy one. */
DEVICE_TEST(per_thread)
{
	CUdeviceptr p = device_new(8);
	CUstream apart = stream_new(CU_STREAM_NON_BLOCKING);
	struct gate gate;
	pthread_t thread;

	OK(FRONT(cuMemsetD32Async)(p, 0, 2, apart));
	OK(FRONT(cuStreamSynchronize)(apart));
	gate_set(&gate, CU_STREAM_PER_THREAD);
	pthread_create(&thread, NULL, other_thread, &p); /* its stream is not behind our gate */
	pthread_join(thread, NULL);
	CHECK(!idle(CU_STREAM_PER_THREAD));
	OK(launch("add", CU_STREAM_LEGACY, p, 1)); /* is */
	settle();
	CHECK(!idle(CU_STREAM_LEGACY));
	gate_open(&gate);
	OK(FRONT(cuCtxSynchronize)());
	CHECK_INT(device_u32(p), 22);
	OK(FRONT(cuStreamDestroy_v2)(apart));
	OK(FRONT(cuMemFree_v2)(p));
}

/* The twins: the same call, stream 0 means the thread's own. */
DEVICE_TEST(twins)
{
	CUdeviceptr p = device_new(4);
	CUresult (*launch_ptsz)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, unsigned, CUstream, void **, void **) =
		(__typeof__(launch_ptsz))call_find("cuLaunchKernel_ptsz");
	CUresult (*query_ptsz)(CUstream) = (__typeof__(query_ptsz))call_find("cuStreamQuery_ptsz");
	copy_dtoh_fn dtoh_ptds = (copy_dtoh_fn)call_find("cuMemcpyDtoH_v2_ptds");
	struct gate gate;
	uint64_t to = p, value = 77;
	void *params[] = { &to, &value };
	uint32_t got = 0;

	gate_set(&gate, NULL); /* holds the legacy stream: a blocking stream waits for it */
	OK(launch_ptsz(kernel_get("store"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK_INT(query_ptsz(NULL), CUDA_ERROR_NOT_READY);
	gate_open(&gate);
	OK(dtoh_ptds(&got, p, 4));
	CHECK_INT(got, 77);
	OK(query_ptsz(NULL));
	OK(FRONT(cuMemFree_v2)(p));
}

DEVICE_TEST(destroy_while_busy)
{
	CUdeviceptr p = device_new(4);
	CUstream s = stream_new(0);
	struct gate gate;

	gate_set(&gate, s);
	OK(launch("store", s, p, 31));
	OK(FRONT(cuStreamDestroy_v2)(s));
	if (soft()) {
		CHECK_INT(FRONT(cuStreamDestroy_v2)(s), CUDA_ERROR_INVALID_HANDLE);
		CHECK_INT(FRONT(cuStreamQuery)(s), CUDA_ERROR_INVALID_HANDLE);
		CHECK_INT(launch("store", s, p, 1), CUDA_ERROR_INVALID_HANDLE);
	}
	gate_open(&gate);
	CHECK_INT(device_u32(p), 31); /* the legacy stream still waits for it */
	OK(FRONT(cuMemFree_v2)(p));
}

static CUresult in_function;
static void calls_inside(void *user)
{
	CUdeviceptr p;

	(void)user;
	in_function = FRONT(cuMemAlloc_v2)(&p, 16);
}

static CUresult callback_status = CUDA_ERROR_UNKNOWN;
static CUstream callback_stream;
static void callback(CUstream stream, CUresult status, void *user)
{
	callback_stream = stream;
	callback_status = status;
	*(int *)user += 1;
}

DEVICE_TEST(callbacks)
{
	CUstream s = stream_new(0);
	int called = 0;

	OK(FRONT(cuLaunchHostFunc)(s, calls_inside, NULL));
	OK(FRONT(cuStreamAddCallback)(s, callback, &called, 0));
	CHECK_INT(FRONT(cuStreamAddCallback)(s, callback, &called, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuLaunchHostFunc)(s, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(FRONT(cuStreamSynchronize)(s));
	CHECK_INT(in_function, CUDA_ERROR_NOT_PERMITTED);
	CHECK_INT(called, 1);
	CHECK_INT(callback_status, CUDA_SUCCESS);
	CHECK(callback_stream == s);
	OK(FRONT(cuStreamDestroy_v2)(s));
}

DEVICE_TEST(properties)
{
	CUstream s = NULL;
	int priority = 1, least, greatest;
	unsigned flags = 9;
	CUcontext ctx = NULL;
	CUgreenCtx green = (CUgreenCtx)1;
	CUdevice device = -1;
	unsigned long long a, b;
	CUstreamCaptureStatus capture;

	OK(FRONT(cuCtxGetStreamPriorityRange)(&least, &greatest));
	CHECK(least == 0 && greatest < 0);
	OK(FRONT(cuStreamCreateWithPriority)(&s, CU_STREAM_NON_BLOCKING, -1000));
	OK(FRONT(cuStreamGetPriority)(s, &priority));
	CHECK_INT(priority, greatest);
	OK(FRONT(cuStreamGetFlags)(s, &flags));
	CHECK_INT(flags, CU_STREAM_NON_BLOCKING);
	OK(FRONT(cuStreamGetCtx)(s, &ctx));
	CHECK(ctx == context);
	OK(FRONT(cuStreamGetGreenCtx)(s, &green));
	CHECK(green == NULL);
	OK(FRONT(cuStreamGetDevice)(s, &device));
	CHECK_INT(device, 0);
	OK(FRONT(cuStreamGetId)(s, &a));
	OK(FRONT(cuStreamGetId)(NULL, &b));
	CHECK(a != b);
	OK(FRONT(cuStreamIsCapturing)(s, &capture));
	CHECK_INT(capture, CU_STREAM_CAPTURE_STATUS_NONE);
	CHECK_INT(FRONT(cuStreamCreate)(&s, 2), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuStreamDestroy_v2)(NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(FRONT(cuStreamDestroy_v2)(s));
}

DEVICE_TEST(values)
{
	CUdeviceptr p = device_new(16);
	CUstream a = stream_new(CU_STREAM_NON_BLOCKING), b = stream_new(CU_STREAM_NON_BLOCKING);

	OK(FRONT(cuMemsetD32Async)(p, 0, 4, a));
	OK(FRONT(cuStreamSynchronize)(a));
	OK(FRONT(cuStreamWaitValue32_v2)(a, p, 3, 0)); /* at least 3 */
	OK(launch("store", a, p + 8, 1));
	settle();
	CHECK(!idle(a));
	OK(FRONT(cuStreamWriteValue32_v2)(b, p, 4, 0));
	OK(FRONT(cuStreamSynchronize)(a));
	CHECK_INT(device_u32(p + 8), 1);
	CHECK_INT(FRONT(cuStreamWriteValue32_v2)(b, p + 2, 4, 0), CUDA_ERROR_INVALID_VALUE);
	OK(FRONT(cuStreamDestroy_v2)(a));
	OK(FRONT(cuStreamDestroy_v2)(b));
	OK(FRONT(cuMemFree_v2)(p));
}

/*
 * The cost of a tiny kernel and its synchronisation, printed for whoever looks; nothing is asserted
 * of time.
 */
DEVICE_TEST(tiny)
{
	enum { N = 2000 };
	CUdeviceptr p = device_new(4);
	double start;

	OK(launch("store", NULL, p, 1));
	OK(FRONT(cuCtxSynchronize)());
	start = waiting_now();
	for (int i = 0; i < N; i++) {
		OK(launch("store", NULL, p, 1));
		OK(FRONT(cuCtxSynchronize)());
	}
	printf("tiny kernel and synchronise: %.1f us\n", (waiting_now() - start) / (double)N * 1e6);
	start = waiting_now();
	for (int i = 0; i < N; i++)
		OK(launch("store", NULL, p, 1));
	OK(FRONT(cuCtxSynchronize)());
	printf("tiny kernel in a row: %.1f us\n", (waiting_now() - start) / (double)N * 1e6);
	OK(FRONT(cuMemFree_v2)(p));
}

int main(int argc, char **argv)
{
	return library_main(argc, argv);
}
