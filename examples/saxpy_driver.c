/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* y = a x + y in plain C with the driver API; the kernel is read from a PTX file. Usage: saxpy_driver [FILE.ptx] */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static void check(CUresult status, const char *call)
{
	const char *text = "unknown error";

	if (status == CUDA_SUCCESS)
		return;
	cuGetErrorString(status, &text);
	fprintf(stderr, "%s failed: %s\n", call, text);
	exit(1);
}

#define CHECK(call) check(call, #call)

enum { LENGTH = 100000 };

int main(int argc, char **argv)
{
	static float x[LENGTH], y[LENGTH];
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction saxpy;
	CUdeviceptr device_x, device_y;
	float a = 3.0f;
	int length = LENGTH;

	for (int i = 0; i < LENGTH; i++) {
		x[i] = (float)i;
		y[i] = 1.0f;
	}
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoad(&module, argc > 1 ? argv[1] : "saxpy_kernel.ptx"));
	CHECK(cuModuleGetFunction(&saxpy, module, "saxpy"));

	CHECK(cuMemAlloc(&device_x, sizeof(x)));
	CHECK(cuMemAlloc(&device_y, sizeof(y)));
	CHECK(cuMemcpyHtoD(device_x, x, sizeof(x)));
	CHECK(cuMemcpyHtoD(device_y, y, sizeof(y)));
	void *arguments[] = {&a, &device_x, &device_y, &length};
	CHECK(cuLaunchKernel(saxpy, (LENGTH + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
	CHECK(cuMemcpyDtoH(y, device_y, sizeof(y)));

	CHECK(cuMemFree(device_x));
	CHECK(cuMemFree(device_y));
	CHECK(cuModuleUnload(module));
	CHECK(cuDevicePrimaryCtxRelease(device));
	for (int i = 0; i < LENGTH; i++)
		if (y[i] != a * x[i] + 1.0f) {
			fprintf(stderr, "wrong at %d: %g\n", i, y[i]);
			return 1;
		}
	printf("%d values, all right: y[100] = %g\n", LENGTH, y[100]);
	return 0;
}
