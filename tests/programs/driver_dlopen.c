/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The driver API without any CUDA library linked: libcuda.so.1 by dlopen, calls by dlsym; kernel
 * arguments as an array and in one buffer.
 */
#include "driver.h"
#include <dlfcn.h>
#include <stddef.h>

enum { LENGTH = 5000 };

static void *library;

static void *name(const char *symbol)
{
	void *found = dlsym(library, symbol);

	if (!found) {
		fprintf(stderr, "libcuda.so.1 has no %s\n", symbol);
		exit(1);
	}
	return found;
}

#define LOAD(call, symbol) __typeof__(&call) p_##call = (__typeof__(&call))name(symbol)

int main(void)
{
	static float x[LENGTH], y[LENGTH], got[LENGTH];
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction saxpy, parameters;
	CUdeviceptr dx, dy;
	float a = 2.0f;
	int length = LENGTH, wrong = 0;

	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	LOAD(cuInit, "cuInit");
	LOAD(cuDeviceGet, "cuDeviceGet");
	CUresult (*create)(CUcontext *, unsigned, CUdevice) =
		(CUresult(*)(CUcontext *, unsigned, CUdevice))name("cuCtxCreate_v2");
	LOAD(cuCtxDestroy, "cuCtxDestroy_v2");
	LOAD(cuModuleLoadData, "cuModuleLoadData");
	LOAD(cuModuleGetFunction, "cuModuleGetFunction");
	LOAD(cuModuleUnload, "cuModuleUnload");
	LOAD(cuMemAlloc, "cuMemAlloc_v2");
	LOAD(cuMemFree, "cuMemFree_v2");
	LOAD(cuMemcpyHtoD, "cuMemcpyHtoD_v2");
	LOAD(cuMemcpyDtoH, "cuMemcpyDtoH_v2");
	LOAD(cuLaunchKernel, "cuLaunchKernel");
	LOAD(cuCtxSynchronize, "cuCtxSynchronize");

	CU(p_cuInit(0));
	CU(p_cuDeviceGet(&device, 0));
	CU(create(&context, 0, device));
	void *ptx = read_beside("driver_kernels.ptx");
	CU(p_cuModuleLoadData(&module, ptx));
	free(ptx);
	CU(p_cuModuleGetFunction(&saxpy, module, "saxpy"));
	CU(p_cuModuleGetFunction(&parameters, module, "parameters"));
	CU(p_cuMemAlloc(&dx, sizeof(x)));
	CU(p_cuMemAlloc(&dy, sizeof(y)));
	for (int i = 0; i < LENGTH; i++) {
		x[i] = (float)i;
		y[i] = (float)(LENGTH - i) * 0.5f;
	}
	CU(p_cuMemcpyHtoD(dx, x, sizeof(x)));
	CU(p_cuMemcpyHtoD(dy, y, sizeof(y)));
	void *params[] = { &a, &dx, &dy, &length };
	CU(p_cuLaunchKernel(saxpy, (LENGTH + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	CU(p_cuCtxSynchronize());
	CU(p_cuMemcpyDtoH(got, dy, sizeof(got)));
	for (int i = 0; i < LENGTH; i++)
		wrong += got[i] != 2.0f * x[i] + y[i];
	OK(wrong == 0);
	printf("array  %016llx\n", (unsigned long long)checksum(got, sizeof(got)));

	/* The same arguments in one buffer, in the layout of the kernel's parameters. */
	struct {
		char a;
		short b;
		CUdeviceptr x;
		char c;
		double d;
		CUdeviceptr y;
		int length;
	} packed = { -1, 300, dx, 5, 0.25, dy, LENGTH };
	size_t size = offsetof(__typeof__(packed), length) + sizeof(packed.length);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&size, CU_LAUNCH_PARAM_END };
	CU(p_cuLaunchKernel(
		parameters, (LENGTH + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
	CU(p_cuMemcpyDtoH(got, dy, sizeof(got)));
	wrong = 0;
	for (int i = 0; i < LENGTH; i++)
		wrong += got[i] != x[i] - 1 + 600 + 15 + 1;
	OK(wrong == 0);
	printf("buffer %016llx\n", (unsigned long long)checksum(got, sizeof(got)));
	CU(p_cuMemFree(dx));
	CU(p_cuMemFree(dy));
	CU(p_cuModuleUnload(module));
	CU(p_cuCtxDestroy(context));
	OK(dlclose(library) == 0);
	return verdict("driver_dlopen");
}
