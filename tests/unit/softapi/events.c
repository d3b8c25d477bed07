/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Events: recorded, waited for, timed, asked; and each way in which they are refused. */
#include "tests/unit/softapi/api.h"

static CUevent event_new(unsigned flags)
{
	CUevent e = NULL;

	OK(CALL(cuEventCreate)(&e, flags));
	return e;
}

static void never_recorded(void)
{
	CUevent e = event_new(0), f = event_new(0);
	float ms = -1;

	OK(CALL(cuEventQuery)(e));
	OK(CALL(cuEventSynchronize)(e));
	OK(CALL(cuStreamWaitEvent)(NULL, e, 0));
	OK(CALL(cuEventRecord)(f, NULL));
	OK(CALL(cuEventSynchronize)(f));
	IS(CALL(cuEventElapsedTime_v2)(&ms, e, f), CUDA_ERROR_INVALID_HANDLE);
	IS(CALL(cuEventElapsedTime_v2)(&ms, f, e), CUDA_ERROR_INVALID_HANDLE);
	CHECK(ms == -1);
	OK(CALL(cuEventDestroy_v2)(e));
	OK(CALL(cuEventDestroy_v2)(f));
	if (soft()) {
		IS(CALL(cuEventDestroy_v2)(f), CUDA_ERROR_INVALID_HANDLE);
		IS(CALL(cuEventQuery)(f), CUDA_ERROR_INVALID_HANDLE);
		IS(CALL(cuEventRecord)(f, NULL), CUDA_ERROR_INVALID_HANDLE);
	}
}

#define CLOCKS_MS 1 /* by which the device's clock and ours may differ over the test */

static void timing(void)
{
	CUevent a = event_new(0), b = event_new(CU_EVENT_BLOCKING_SYNC),
		untimed = event_new(CU_EVENT_DISABLE_TIMING);
	struct gate gate;
	double began = waiting_now(), least;
	float ms = -1;

	OK(CALL(cuEventRecord)(a, NULL));
	gate_set(&gate, NULL);
	OK(CALL(cuEventRecord)(b, NULL));
	OK(CALL(cuEventRecord)(untimed, NULL));
	OK(CALL(cuEventSynchronize)(a));
	IS(CALL(cuEventQuery)(b), CUDA_ERROR_NOT_READY);
	IS(CALL(cuEventElapsedTime_v2)(&ms, a, b), CUDA_ERROR_NOT_READY);
	least = waiting_now(); /* a is done by now, b is not before the gate opens */
	let_pass(30000, "a time to be measured");
	least = (waiting_now() - least) * 1e3;
	gate_open(&gate);
	OK(CALL(cuEventSynchronize)(b));
	OK(CALL(cuEventQuery)(b));
	OK(CALL(cuEventElapsedTime_v2)(&ms, a, b));
	CHECK(ms >= least - CLOCKS_MS && ms <= (waiting_now() - began) * 1e3 + CLOCKS_MS);
	OK(CALL(cuEventElapsedTime_v2)(&ms, b, a));
	CHECK(ms <= -least + CLOCKS_MS);
	OK(CALL(cuEventElapsedTime_v2)(&ms, a, a));
	CHECK(ms == 0);
	IS(CALL(cuEventElapsedTime_v2)(&ms, a, untimed), CUDA_ERROR_INVALID_HANDLE);
	OK(CALL(cuEventDestroy_v2)(a));
	OK(CALL(cuEventDestroy_v2)(b));
	OK(CALL(cuEventDestroy_v2)(untimed));
}

static void waits(void)
{
	CUdeviceptr p = device_new(4);
	CUstream a, b;
	CUevent e = event_new(CU_EVENT_DISABLE_TIMING);
	struct gate gate;

	OK(CALL(cuStreamCreate)(&a, CU_STREAM_NON_BLOCKING));
	OK(CALL(cuStreamCreate)(&b, CU_STREAM_NON_BLOCKING));
	gate_set(&gate, a);
	OK(launch("store", a, p, 4));
	OK(CALL(cuEventRecord)(e, a));
	OK(CALL(cuStreamWaitEvent)(b, e, 0));
	OK(launch("add", b, p, 100));
	/*
	 * The wait means the record it saw: neither a later record nor the event's end changes it.
	 */
	OK(CALL(cuEventRecord)(e, NULL));
	OK(CALL(cuEventDestroy_v2)(e));
	let_pass(30000,
		"work that could run may run; a machine that is slow makes this no stricter");
	IS(CALL(cuStreamQuery)(b), CUDA_ERROR_NOT_READY);
	gate_open(&gate);
	OK(CALL(cuStreamSynchronize)(b));
	IS(device_u32(p), 104);
	OK(CALL(cuStreamDestroy_v2)(a));
	OK(CALL(cuStreamDestroy_v2)(b));
	OK(CALL(cuMemFree_v2)(p));
}

static void refused(void)
{
	CUevent e;
	CUcontext second;

	IS(CALL(cuEventCreate)(&e, 0x40), CUDA_ERROR_INVALID_VALUE);
	IS(CALL(cuEventCreate)(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	e = event_new(0);
	IS(CALL(cuEventRecordWithFlags)(e, NULL, 2), CUDA_ERROR_INVALID_VALUE);
	/* Another context's stream. */
	OK(FACE(cuCtxCreate_v2)(&second, 0, 0));
	IS(CALL(cuEventRecord)(e, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(FACE(cuCtxDestroy_v2)(second));
	OK(FACE(cuCtxSetCurrent)(context));
	OK(CALL(cuEventRecord)(e, NULL));
	OK(CALL(cuEventDestroy_v2)(e));
}

/* Handles of a context that ended are unknown. */
static void gone_with_context(void)
{
	CUcontext second;
	CUevent e;
	CUstream s;

	OK(FACE(cuCtxCreate_v2)(&second, 0, 0));
	OK(CALL(cuEventCreate)(&e, 0));
	OK(CALL(cuStreamCreate)(&s, 0));
	OK(FACE(cuCtxDestroy_v2)(second));
	OK(FACE(cuCtxSetCurrent)(context));
	IS(CALL(cuEventQuery)(e), CUDA_ERROR_INVALID_HANDLE);
	IS(CALL(cuStreamQuery)(s), CUDA_ERROR_INVALID_HANDLE);
}

int main(int argc, char **argv)
{
	library_open(argc, argv);
	device_open();
	module_open();
	never_recorded();
	timing();
	waits();
	refused();
	if (soft())
		gone_with_context();
	return 0;
}
