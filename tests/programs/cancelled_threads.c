/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Threads are cancelled inside waiting calls. The other threads must continue, even if a cancelled
 * thread held locks.
 */
#include "driver.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { ROUNDS = 24, BYTES = 1 << 20 };

static const char SOURCE[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			     ".visible .entry fill(.param .u64 p)\n{\n.reg .b32 %r<6>;\n.reg .b64 "
			     "%rd<4>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, %ctaid.x;\n"
			     "mov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r4, %r1, "
			     "%r2, %r3;\nmul.wide.u32 %rd2, %r4, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
			     "st.global.u32 [%rd3], %r4;\nret;\n}\n";

static CUcontext context;
static CUmodule module;
static CUfunction fill;
static CUdeviceptr memory;
static atomic_int calls;

static CUresult launch(void)
{
	void *args[] = { &memory };

	return cuLaunchKernel(fill, BYTES / 4 / 256, 1, 1, 256, 1, 1, 0, NULL, args, NULL);
}

/* Only makes calls: the thread ends because a call is a cancellation point. */
static void *loop(void *user)
{
	char *mine = user;

	CU(cuCtxSetCurrent(context));
	for (;;) {
		CU(launch());
		CU(cuCtxSynchronize());
		atomic_fetch_add(&calls, 1);
		CU(cuMemcpyDtoH(mine, memory, BYTES));
		CU(cuMemcpyHtoD(memory, mine, BYTES));
	}
	return NULL;
}

int main(void)
{
	unsigned *mine = malloc(BYTES), *own = malloc(BYTES);
	CUdevice device;

	OK(mine && own);
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuModuleLoadData(&module, SOURCE));
	CU(cuModuleGetFunction(&fill, module, "fill"));
	CU(cuMemAlloc(&memory, BYTES));
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		void *end;

		atomic_store(&calls, 0);
		OK(pthread_create(&thread, NULL, loop, mine) == 0);
		while (atomic_load(&calls) < 1 + i % 3)
			sched_yield();
		OK(pthread_cancel(thread) == 0);
		OK(pthread_join(thread, &end) == 0 && end == PTHREAD_CANCELED);
		CU(launch());
		CU(cuMemcpyDtoH(own, memory, BYTES));
		for (unsigned k = 0; k < BYTES / 4; k++)
			if (own[k] != k) {
				OK(!"what the kernel wrote");
				break;
			}
	}
	free(mine);
	free(own);
	return verdict("cancelled_threads");
}
