/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that prints the amount of free memory and waits for a line. sandbox.py uses it to read
 * the result of sandbox_driver.c.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "base/cuda_types.h"

int main(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext),
		(*info)(size_t *, size_t *);
	size_t left = 0, total = 0;
	CUcontext context;
	char line[16];
	CUresult result;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	*(void **)&init = dlsym(library, "cuInit");
	*(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(library, "cuCtxSetCurrent");
	*(void **)&info = dlsym(library, "cuMemGetInfo_v2");
	result = init(0);
	if (result == CUDA_SUCCESS && retain(&context, 0) == CUDA_SUCCESS)
		set(context);
	result = result ? result : info(&left, &total);
	printf("%d %016zx\n", (int)result, left);
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		return 1;
	return result ? 1 : 0;
}
