/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Libraries and kernels, which belong to no context: loaded once, launched as CUkernel or
 * CUfunction; globals, names, attributes.
 */
#include "driver.h"

enum { LENGTH = 256 };

int main(void)
{
	CUdevice device;
	CUcontext context;
	CUlibrary library;
	CUkernel saxpy, count, missing;
	CUfunction function;
	CUmodule module;
	CUdeviceptr x, y, variable = 0;
	float host[LENGTH], got[LENGTH], a = 0.5f;
	int length = LENGTH, value = 0;
	unsigned kernels = 0;
	size_t size = 0, offset = 0;
	const char *name = NULL;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	void *image = read_beside("driver_kernels.fatbin");
	CU(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	free(image);
	CU(cuLibraryGetKernel(&saxpy, library, "saxpy"));
	CU(cuLibraryGetKernel(&count, library, "count"));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&missing, library, "none"));
	CU(cuLibraryGetKernelCount(&kernels, library));
	OK(kernels == 6);
	CU(cuKernelGetName(&name, saxpy));
	OK(!strcmp(name, "saxpy"));

	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuMemAlloc(&x, sizeof(host)));
	CU(cuMemAlloc(&y, sizeof(host)));
	for (int i = 0; i < LENGTH; i++)
		host[i] = (float)i;
	CU(cuMemcpyHtoD(x, host, sizeof(host)));
	CU(cuMemsetD32(y, 0, LENGTH));
	void *args[] = { &a, &x, &y, &length };
	CU(cuLaunchKernel((CUfunction)saxpy, 2, 1, 1, LENGTH / 2, 1, 1, 0, NULL, args, NULL));
	CU(cuKernelGetFunction(&function, saxpy));
	CU(cuLaunchKernel(function, 2, 1, 1, LENGTH / 2, 1, 1, 0, NULL, args, NULL));
	CU(cuMemcpyDtoH(got, y, sizeof(got)));
	for (int i = 0; i < LENGTH; i++)
		OK(got[i] == (float)i);
	printf("two launches %016llx\n", (unsigned long long)checksum(got, sizeof(got)));

	CU(cuLibraryGetGlobal(&variable, &size, library, "counter"));
	CU(cuMemcpyDtoH(&value, variable, sizeof(value)));
	OK(size == sizeof(int) && value == 41);
	void *count_args[] = { &y };
	CU(cuLaunchKernel((CUfunction)count, 1, 1, 1, 64, 1, 1, 0, NULL, count_args, NULL));
	CU(cuMemcpyDtoH(&value, variable, sizeof(value)));
	OK(value == 41 + 64);
	CU(cuLibraryGetModule(&module, library));
	CUdeviceptr same = 0;
	CU(cuModuleGetGlobal(&same, NULL, module, "counter"));
	OK(same == variable);
	CU(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, saxpy, device));
	OK(value >= 128 && value <= 1024);
	CU(cuKernelGetParamInfo(saxpy, 2, &offset, &size));
	OK(offset == 16 && size == 8);

	CUlaunchConfig config = { 0 };
	config.gridDimX = 4;
	config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
	config.blockDimX = LENGTH / 4;
	CU(cuLaunchKernelEx(&config, (CUfunction)saxpy, args, NULL));
	CU(cuMemcpyDtoH(got, y, sizeof(got)));
	/*
	 * The first 64 values were overwritten by counts: the integer 1, which is a tiny number as
	 * a float.
	 */
	OK(got[10] == 5.0f && got[255] == 382.5f);
	CU(cuLibraryUnload(library));
	CU(cuMemFree(x));
	CU(cuMemFree(y));
	CU(cuDevicePrimaryCtxRelease(device));
	return verdict("driver_library");
}
