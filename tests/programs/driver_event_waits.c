/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A thread waits for an event behind a kernel that spins until another thread has written a word: the
 * wait must not hold the other thread's calls. With an ordinary event and with one that other
 * processes may use; each is recorded again before it is waited for once more.
 */
#include <pthread.h>

#include "driver.h"

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry spin(.param .u64 p, .param .u32 v)\n{\n"
			  "	.reg .u64 %a;\n	.reg .u32 %v, %w;\n	.reg .pred %q;\n"
			  "	ld.param.u64 %a, [p];\n	ld.param.u32 %w, [v];\n"
			  "again:\n	ld.volatile.global.u32 %v, [%a];\n"
			  "	setp.lt.u32 %q, %v, %w;\n	@%q bra again;\n	ret;\n}\n";

static CUcontext context;
static CUevent event;

static void *wait_for_event(void *unused)
{
	(void)unused;
	CU(cuCtxSetCurrent(context));
	CU(cuEventSynchronize(event));
	return NULL;
}

static void waits(CUfunction spin, CUstream busy, CUstream other, CUdeviceptr word)
{
	for (unsigned round = 1; round <= 3; round++) {
		void *params[] = { &word, &round };
		pthread_t thread;

		CU(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, busy, params, NULL));
		CU(cuEventRecord(event, busy));
		OK(pthread_create(&thread, NULL, wait_for_event, NULL) == 0);
		/* Any call that needs an answer comes after the wait has reached the device. */
		OK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
		CU(cuMemsetD32Async(word, round, 1, other));
		OK(pthread_join(thread, NULL) == 0);
		CU(cuEventQuery(event));
	}
	CU(cuMemsetD32Async(word, 0, 1, other));
	CU(cuStreamSynchronize(other));
}

int main(void)
{
	CUstream busy, other;
	CUfunction spin;
	CUdeviceptr word;
	CUmodule module;
	CUdevice device;
	int shares;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDeviceGetAttribute(&shares, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, device));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	CU(cuMemAlloc(&word, 4));
	CU(cuMemsetD32(word, 0, 1));
	CU(cuModuleLoadData(&module, ptx));
	CU(cuModuleGetFunction(&spin, module, "spin"));
	for (int shared = 0; shared <= (shares != 0); shared++) {
		CU(cuEventCreate(&event,
			shared ? CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS
			       : CU_EVENT_DISABLE_TIMING));
		waits(spin, busy, other, word);
		CU(cuEventDestroy(event));
	}
	CU(cuDevicePrimaryCtxRelease(device));
	return verdict("driver_event_waits");
}
