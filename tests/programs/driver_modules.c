/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Modules from PTX in memory, PTX in a file, a fatbin in memory and a fatbin in a file; attributes
 * of their functions.
 */
#include "driver.h"

enum { LENGTH = 300 };

static void run(CUmodule module, const char *from)
{
	CUfunction saxpy, polynomial, reverse, count, bounded;
	CUdeviceptr x, y, variable, table;
	float host[LENGTH], got[LENGTH], a = 3.0f;
	int length = LENGTH, value = 0, numbers[LENGTH];
	size_t size = 0;

	CU(cuModuleGetFunction(&saxpy, module, "saxpy"));
	CU(cuModuleGetFunction(&polynomial, module, "polynomial"));
	CU(cuModuleGetFunction(&reverse, module, "shared_reverse"));
	CU(cuModuleGetFunction(&count, module, "count"));
	CU(cuModuleGetFunction(&bounded, module, "bounded"));
	CU(cuMemAlloc(&x, sizeof(host)));
	CU(cuMemAlloc(&y, sizeof(host)));
	for (int i = 0; i < LENGTH; i++)
		host[i] = (float)(i % 40) * 0.25f;
	CU(cuMemcpyHtoD(x, host, sizeof(host)));
	CU(cuMemsetD32(y, 0x3f800000, LENGTH));
	void *saxpy_args[] = { &a, &x, &y, &length };
	CU(cuLaunchKernel(saxpy, 3, 1, 1, 100, 1, 1, 0, NULL, saxpy_args, NULL));
	CU(cuMemcpyDtoH(got, y, sizeof(got)));
	for (int i = 0; i < LENGTH; i++)
		OK(got[i] == 3.0f * host[i] + 1.0f);

	/* Constant memory through its symbol; all values here are exact. */
	static const float coefficient[4] = { 1, -2, 0.5f, 4 };
	CU(cuModuleGetGlobal(&table, &size, module, "coefficient"));
	OK(size == sizeof(coefficient));
	CU(cuMemcpyHtoD(table, coefficient, sizeof(coefficient)));
	void *polynomial_args[] = { &x, &y };
	CU(cuLaunchKernel(polynomial, 1, 1, 1, LENGTH, 1, 1, 0, NULL, polynomial_args, NULL));
	CU(cuMemcpyDtoH(got, y, sizeof(got)));
	for (int i = 0; i < LENGTH; i++)
		OK(got[i] == 1 + host[i] * (-2 + host[i] * (0.5f + host[i] * 4)));
	printf("%s %016llx\n", from, (unsigned long long)checksum(got, sizeof(got)));

	for (int i = 0; i < LENGTH; i++)
		numbers[i] = i;
	CU(cuMemcpyHtoD(y, numbers, sizeof(numbers)));
	void *reverse_args[] = { &y };
	CU(cuLaunchKernel(
		reverse, 1, 1, 1, LENGTH, 1, 1, LENGTH * sizeof(int), NULL, reverse_args, NULL));
	CU(cuMemcpyDtoH(numbers, y, sizeof(numbers)));
	for (int i = 0; i < LENGTH; i++)
		OK(numbers[i] == LENGTH - 1 - i);

	/* Each module has its own variable with its own initial value. */
	CU(cuModuleGetGlobal(&variable, &size, module, "counter"));
	CU(cuMemcpyDtoH(&value, variable, sizeof(value)));
	OK(size == sizeof(value) && value == 41);
	CU(cuLaunchKernel(count, 1, 1, 1, 50, 1, 1, 0, NULL, reverse_args, NULL));
	CU(cuMemcpyDtoH(&value, variable, sizeof(value)));
	OK(value == 91);

	CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bounded));
	OK(value == 128);
	CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, reverse));
	OK(value == 0);
	CU(cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50 * 1024));
	CU(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, reverse));
	OK(value == 50 * 1024);
	CU(cuLaunchKernel(reverse, 1, 1, 1, LENGTH, 1, 1, 50 * 1024, NULL, reverse_args, NULL));
	CU(cuCtxSynchronize());

	size_t offset = 99, bytes = 99;
	CU(cuFuncGetParamInfo(saxpy, 1, &offset, &bytes));
	OK(offset == 8 && bytes == 8);
	CU(cuFuncGetParamInfo(saxpy, 3, &offset, &bytes));
	OK(offset == 24 && bytes == 4);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(saxpy, 4, &offset, &bytes));
	CUmodule owner = NULL;
	CU(cuFuncGetModule(&owner, saxpy));
	OK(owner == module);

	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuLaunchKernel(saxpy, 0, 1, 1, 1, 1, 1, 0, NULL, saxpy_args, NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuLaunchKernel(saxpy, 1, 1, 1, 1, 1, 65, 0, NULL, saxpy_args, NULL));
	CU(cuMemFree(x));
	CU(cuMemFree(y));
	CU(cuModuleUnload(module));
}

int main(void)
{
	CUdevice device;
	CUcontext context;
	CUmodule module, second;
	void *image;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuCtxCreate(&context, NULL, 0, device));
	image = read_beside("driver_kernels.ptx");
	CU(cuModuleLoadData(&module, image));
	CU(cuModuleLoadData(&second, image));
	run(module, "PTX in memory");
	run(second, "the same again");
	free(image);
	CU(cuModuleLoad(&module, beside("driver_kernels.ptx")));
	run(module, "PTX in a file");
	image = read_beside("driver_kernels.fatbin");
	CU(cuModuleLoadFatBinary(&module, image));
	run(module, "fatbin in memory");
	CU(cuModuleLoadData(&module, image));
	run(module, "fatbin as data");
	free(image);
	CU(cuModuleLoad(&module, beside("driver_kernels.fatbin")));
	run(module, "fatbin in a file");
	CU(cuCtxDestroy(context));
	return verdict("driver_modules");
}
