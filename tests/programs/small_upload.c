/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A small upload on the default stream, then a kernel on a non-blocking stream that reads it, while
 * another thread makes large copies on the default stream. CUDA promises no order between the two
 * streams, but programs rely on it. Not measured on a GPU.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "driver.h"

enum { ROUNDS = 200, LARGE = 8 << 20 };

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry fetch(.param .u64 from, .param .u64 to)\n{\n"
			  "	.reg .u32 %r<2>;\n	.reg .b64 %d<3>;\n"
			  "	ld.param.u64 %d1, [from];\n	ld.param.u64 %d2, [to];\n	"
			  "ld.global.u32 %r1, [%d1];\n	st.global.u32 [%d2], %r1;\n	ret;\n}\n";

static CUcontext context;
static CUdeviceptr large;
static void *pinned;
static atomic_bool stop;

static void *copy_large(void *unused)
{
	(void)unused;
	CU(cuCtxSetCurrent(context));
	while (!atomic_load(&stop)) {
		CU(cuMemcpyHtoDAsync(large, pinned, LARGE, NULL));
		CU(cuMemcpyHtoD(large, pinned, LARGE));
	}
	return NULL;
}

int main(void)
{
	CUdeviceptr from, to;
	CUfunction fetch;
	CUmodule module;
	CUstream stream;
	CUdevice device;
	pthread_t thread;
	int late = 0;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuModuleLoadData(&module, ptx));
	CU(cuModuleGetFunction(&fetch, module, "fetch"));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemAlloc(&from, sizeof(uint32_t)));
	CU(cuMemAlloc(&to, sizeof(uint32_t)));
	CU(cuMemAlloc(&large, LARGE));
	CU(cuMemHostAlloc(&pinned, LARGE, 0));
	OK(pthread_create(&thread, NULL, copy_large, NULL) == 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		void *arguments[] = { &from, &to };
		uint32_t got = 0;

		CU(cuMemcpyHtoD(from, &round, sizeof round));
		CU(cuLaunchKernel(fetch, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
		CU(cuStreamSynchronize(stream));
		CU(cuMemcpyDtoHAsync(&got, to, sizeof got, stream));
		CU(cuStreamSynchronize(stream));
		late += got != round;
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	printf("small_upload: %d of %d came late\n", late, ROUNDS);
	return check_failures || late;
}
