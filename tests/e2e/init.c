/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that initialises CUDA, makes one call that needs the server, waits for a line on stdin
 * and makes the call again. Prints each CUresult on a line. Used by tests of broken servers and
 * links.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/cuda_types.h"

int main(int argc, char **argv)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext),
		(*info)(size_t *, size_t *), (*limit)(CUlimit, size_t);
	CUcontext ctx;
	size_t left, total;
	char line[16];

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	*(void **)&init = dlsym(library, "cuInit");
	*(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(library, "cuCtxSetCurrent");
	*(void **)&info = dlsym(library, "cuMemGetInfo_v2");
	*(void **)&limit = dlsym(library, "cuCtxSetLimit");
	printf("%d\n", (int)init(0));
	if (retain(&ctx, 0) == CUDA_SUCCESS)
		set(ctx);
	printf("%d\n", (int)info(&left, &total));
	fflush(stdout);
	if (argc > 1 && strcmp(argv[1], "wait") == 0 && fgets(line, sizeof line, stdin)) {
		/* only the server can answer these */
		printf("%d\n", (int)limit(CU_LIMIT_STACK_SIZE, 1024));
		printf("%d\n", (int)limit(CU_LIMIT_STACK_SIZE, 1024));
	}
	return 0;
}
