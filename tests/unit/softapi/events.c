/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Events: recorded, waited for, timed, asked; and each way in which they are refused. */
#include "tests/unit/softapi/api.h"

static CUevent event_new(unsigned flags)
{
	CUevent e = NULL;

	OK(FRONT(cuEventCreate)(&e, flags));
	return e;
}

DEVICE_TEST(never_recorded)
{
	CUevent e = event_new(0), f = event_new(0);
	float ms = -1;

	OK(FRONT(cuEventQuery)(e));
	OK(FRONT(cuEventSynchronize)(e));
	OK(FRONT(cuStreamWaitEvent)(NULL, e, 0));
	OK(FRONT(cuEventRecord)(f, NULL));
	OK(FRONT(cuEventSynchronize)(f));
	CHECK_INT(FRONT(cuEventElapsedTime_v2)(&ms, e, f), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(FRONT(cuEventElapsedTime_v2)(&ms, f, e), CUDA_ERROR_INVALID_HANDLE);
	CHECK(ms == -1);
	OK(FRONT(cuEventDestroy_v2)(e));
	OK(FRONT(cuEventDestroy_v2)(f));
	if (soft()) {
		CHECK_INT(FRONT(cuEventDestroy_v2)(f), CUDA_ERROR_INVALID_HANDLE);
		CHECK_INT(FRONT(cuEventQuery)(f), CUDA_ERROR_INVALID_HANDLE);
		CHECK_INT(FRONT(cuEventRecord)(f, NULL), CUDA_ERROR_INVALID_HANDLE);
	}
}

#define CLOCKS_MS 1 /* by which the device's clock and ours may differ over the test */

DEVICE_TEST(timing)
{
	CUevent a = event_new(0), b = event_new(CU_EVENT_BLOCKING_SYNC),
		untimed = event_new(CU_EVENT_DISABLE_TIMING);
	struct gate gate;
	double began = waiting_now(), least;
	float ms = -1;

	OK(FRONT(cuEventRecord)(a, NULL));
	gate_set(&gate, NULL);
	OK(FRONT(cuEventRecord)(b, NULL));
	OK(FRONT(cuEventRecord)(untimed, NULL));
	OK(FRONT(cuEventSynchronize)(a));
	CHECK_INT(FRONT(cuEventQuery)(b), CUDA_ERROR_NOT_READY);
	CHECK_INT(FRONT(cuEventElapsedTime_v2)(&ms, a, b), CUDA_ERROR_NOT_READY);
	least = waiting_now(); /* a is done by now, b is not before the gate opens */
	let_pass(30000, "a time to be measured");
	least = (waiting_now() - least) * 1e3;
	gate_open(&gate);
	OK(FRONT(cuEventSynchronize)(b));
	OK(FRONT(cuEventQuery)(b));
	OK(FRONT(cuEventElapsedTime_v2)(&ms, a, b));
	CHECK(ms >= least - CLOCKS_MS && ms <= (waiting_now() - began) * 1e3 + CLOCKS_MS);
	OK(FRONT(cuEventElapsedTime_v2)(&ms, b, a));
	CHECK(ms <= -least + CLOCKS_MS);
	OK(FRONT(cuEventElapsedTime_v2)(&ms, a, a));
	CHECK(ms == 0);
	CHECK_INT(FRONT(cuEventElapsedTime_v2)(&ms, a, untimed), CUDA_ERROR_INVALID_HANDLE);
	OK(FRONT(cuEventDestroy_v2)(a));
	OK(FRONT(cuEventDestroy_v2)(b));
	OK(FRONT(cuEventDestroy_v2)(untimed));
}

DEVICE_TEST(waits)
{
	CUdeviceptr p = device_new(4);
	CUstream a, b;
	CUevent e = event_new(CU_EVENT_DISABLE_TIMING);
	struct gate gate;

	OK(FRONT(cuStreamCreate)(&a, CU_STREAM_NON_BLOCKING));
	OK(FRONT(cuStreamCreate)(&b, CU_STREAM_NON_BLOCKING));
	gate_set(&gate, a);
	OK(launch("store", a, p, 4));
	OK(FRONT(cuEventRecord)(e, a));
	OK(FRONT(cuStreamWaitEvent)(b, e, 0));
	OK(launch("add", b, p, 100));
	/*
	 * The wait means the record it saw: neither a later record nor the event's end changes it.
	 */
	OK(FRONT(cuEventRecord)(e, NULL));
	OK(FRONT(cuEventDestroy_v2)(e));
	let_pass(30000,
		"work that could run may run; a machine that is slow makes this no stricter");
	CHECK_INT(FRONT(cuStreamQuery)(b), CUDA_ERROR_NOT_READY);
	gate_open(&gate);
	OK(FRONT(cuStreamSynchronize)(b));
	CHECK_INT(device_u32(p), 104);
	OK(FRONT(cuStreamDestroy_v2)(a));
	OK(FRONT(cuStreamDestroy_v2)(b));
	OK(FRONT(cuMemFree_v2)(p));
}

DEVICE_TEST(refused)
{
	CUevent e;
	CUcontext second;

	CHECK_INT(FRONT(cuEventCreate)(&e, 0x40), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuEventCreate)(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	e = event_new(0);
	CHECK_INT(FRONT(cuEventRecordWithFlags)(e, NULL, 2), CUDA_ERROR_INVALID_VALUE);
	/* Another context's stream. */
	OK(FRONT(cuCtxCreate_v2)(&second, 0, 0));
	CHECK_INT(FRONT(cuEventRecord)(e, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(FRONT(cuCtxDestroy_v2)(second));
	OK(FRONT(cuCtxSetCurrent)(context));
	OK(FRONT(cuEventRecord)(e, NULL));
	OK(FRONT(cuEventDestroy_v2)(e));
}

/* Handles of a context that ended are unknown. */
DEVICE_TEST(gone_with_context)
{
	CUcontext second;
	CUevent e;
	CUstream s;

	if (!soft())
		TEST_SKIP("for the software device alone");
	OK(FRONT(cuCtxCreate_v2)(&second, 0, 0));
	OK(FRONT(cuEventCreate)(&e, 0));
	OK(FRONT(cuStreamCreate)(&s, 0));
	OK(FRONT(cuCtxDestroy_v2)(second));
	OK(FRONT(cuCtxSetCurrent)(context));
	CHECK_INT(FRONT(cuEventQuery)(e), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(FRONT(cuStreamQuery)(s), CUDA_ERROR_INVALID_HANDLE);
}

int main(int argc, char **argv)
{
	return library_main(argc, argv);
}
