/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A hundred modules of generated PTX: all are loaded, run, looked up by name, and unloaded in a
 * different order.
 */
#include "driver.h"

enum { MODULES = 100, THREADS = 32, ROUNDS = 2 };

/*
 * Kernel k_<n>(out): out[tid] = state * factor + tid, state = state + 1. Each module has its own
 * factor and state.
 */
static void write_ptx(char *to, size_t size, int number)
{
	snprintf(to, size,
		".version 7.0\n"
		".target sm_75\n"
		".address_size 64\n"
		".visible .global .align 4 .u32 state = %d;\n"
		".visible .entry k_%d(.param .u64 out)\n"
		"{\n"
		"\t.reg .b32 %%r<6>;\n"
		"\t.reg .b64 %%rd<4>;\n"
		"\t.reg .pred %%p;\n"
		"\tld.param.u64 %%rd1, [out];\n"
		"\tcvta.to.global.u64 %%rd1, %%rd1;\n"
		"\tmov.u32 %%r1, %%tid.x;\n"
		"\tld.global.u32 %%r2, [state];\n"
		"\tmad.lo.u32 %%r3, %%r2, %d, %%r1;\n"
		"\tmul.wide.u32 %%rd2, %%r1, 4;\n"
		"\tadd.s64 %%rd3, %%rd1, %%rd2;\n"
		"\tst.global.u32 [%%rd3], %%r3;\n"
		"\tbar.sync 0;\n"
		"\tsetp.ne.u32 %%p, %%r1, 0;\n"
		"\t@%%p bra DONE;\n"
		"\tadd.u32 %%r4, %%r2, 1;\n"
		"\tst.global.u32 [state], %%r4;\n"
		"DONE:\n"
		"\tret;\n"
		"}\n",
		number * 10, number, number + 3);
}

int main(void)
{
	static CUmodule module[MODULES];
	static CUfunction function[MODULES];
	static unsigned got[MODULES][THREADS];
	CUdevice device;
	CUcontext context;
	CUdeviceptr out, state;
	size_t size = 0;
	char ptx[2048], name[32];

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuCtxCreate(&context, NULL, 0, device));
	CU(cuMemAlloc(&out, sizeof(got)));
	for (int m = 0; m < MODULES; m++) {
		write_ptx(ptx, sizeof(ptx), m);
		CU(cuModuleLoadData(&module[m], ptx));
		snprintf(name, sizeof(name), "k_%d", m);
		CU(cuModuleGetFunction(&function[m], module[m], name));
		snprintf(name, sizeof(name), "k_%d", m + 1);
		CUfunction none;
		EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&none, module[m], name));
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < MODULES; i++) {
			int m = i * 37 % MODULES;
			CUdeviceptr mine = out + (size_t)m * sizeof(got[0]);
			void *args[] = { &mine };
			CU(cuLaunchKernel(
				function[m], 1, 1, 1, THREADS, 1, 1, 0, NULL, args, NULL));
		}
		CU(cuMemcpyDtoH(got, out, sizeof(got)));
		int wrong = 0;
		for (unsigned m = 0; m < MODULES; m++)
			for (unsigned t = 0; t < THREADS; t++)
				wrong += got[m][t] != (m * 10 + round) * (m + 3) + t;
		OK(wrong == 0);
		printf("round %u %016llx\n", round, (unsigned long long)checksum(got, sizeof(got)));
	}
	for (int i = 0; i < MODULES; i++) {
		int m = i * 63 % MODULES;
		unsigned value = 0;
		CU(cuModuleGetGlobal(&state, &size, module[m], "state"));
		CU(cuMemcpyDtoH(&value, state, sizeof(value)));
		OK(size == 4 && value == (unsigned)m * 10 + ROUNDS);
		if (i % 2)
			continue;
		CU(cuModuleUnload(module[m]));
		module[m] = NULL;
	}
	/* A new module may reuse the freed memory; the remaining modules have kept their state. */
	write_ptx(ptx, sizeof(ptx), 5000);
	CUmodule late;
	CUfunction late_function;
	CU(cuModuleLoadData(&late, ptx));
	CU(cuModuleGetFunction(&late_function, late, "k_5000"));
	void *args[] = { &out };
	CU(cuLaunchKernel(late_function, 1, 1, 1, THREADS, 1, 1, 0, NULL, args, NULL));
	CU(cuMemcpyDtoH(got[0], out, sizeof(got[0])));
	OK(got[0][31] == 50000u * 5003u + 31);
	for (int m = 0; m < MODULES; m++)
		if (module[m]) {
			unsigned value = 0;
			CU(cuModuleGetGlobal(&state, NULL, module[m], "state"));
			CU(cuMemcpyDtoH(&value, state, sizeof(value)));
			OK(value == (unsigned)m * 10 + ROUNDS);
			CU(cuModuleUnload(module[m]));
		}
	CU(cuModuleUnload(late));
	CU(cuMemFree(out));
	CU(cuCtxDestroy(context));
	return verdict("driver_many_modules");
}
