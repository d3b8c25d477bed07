/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that does with its devices what the lines on stdin say, and prints one line for each:
 *
 *     devices              the UUIDs, in the program's order
 *     alloc DEVICE BYTES   the CUresult of allocating; the memory is kept
 *     free                 frees the last allocation: the CUresult
 *     info DEVICE          free and total bytes
 *     kernel DEVICE        "ok" if memory that the device has filled reads back
 *
 * The first line is the CUresult of cuInit. Ends with stdin.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cuda_types.h"

#define KEPT_MAX    64
#define DEVICES_MAX 16

static CUresult (*cu_init)(unsigned), (*cu_count)(int *), (*cu_uuid)(CUuuid *, CUdevice),
	(*cu_retain)(CUcontext *, CUdevice), (*cu_set)(CUcontext), (*cu_info)(size_t *, size_t *),
	(*cu_alloc)(CUdeviceptr *, size_t), (*cu_free)(CUdeviceptr),
	(*cu_fill)(CUdeviceptr, unsigned char, size_t), (*cu_read)(void *, CUdeviceptr, size_t),
	(*cu_sync)(void);
static CUdeviceptr kept[KEPT_MAX];
static int n_kept;

static void *find(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return symbol;
}

static void load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&cu_init = find(library, "cuInit");
	*(void **)&cu_count = find(library, "cuDeviceGetCount");
	*(void **)&cu_uuid = find(library, "cuDeviceGetUuid_v2");
	*(void **)&cu_retain = find(library, "cuDevicePrimaryCtxRetain");
	*(void **)&cu_set = find(library, "cuCtxSetCurrent");
	*(void **)&cu_info = find(library, "cuMemGetInfo_v2");
	*(void **)&cu_alloc = find(library, "cuMemAlloc_v2");
	*(void **)&cu_free = find(library, "cuMemFree_v2");
	*(void **)&cu_fill = find(library, "cuMemsetD8_v2");
	*(void **)&cu_read = find(library, "cuMemcpyDtoH_v2");
	*(void **)&cu_sync = find(library, "cuCtxSynchronize");
}

static CUresult enter(int device)
{
	static CUcontext contexts[DEVICES_MAX];
	CUresult result = CUDA_SUCCESS;

	if (device < 0 || device >= DEVICES_MAX)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!contexts[device])
		result = cu_retain(&contexts[device], device);
	return result ? result : cu_set(contexts[device]);
}

static void devices_print(void)
{
	int n = 0;

	cu_count(&n);
	for (int i = 0; i < n; i++) {
		CUuuid uuid = { { 0 } };

		cu_uuid(&uuid, i);
		for (int b = 0; b < 16; b++)
			printf("%02x", (unsigned char)uuid.bytes[b]);
		printf(i + 1 < n ? " " : "\n");
	}
	if (n == 0)
		printf("none\n");
}

static int allocate(int device, size_t bytes)
{
	CUresult result = enter(device);

	if (n_kept == KEPT_MAX)
		return -1;
	if (result == CUDA_SUCCESS)
		result = cu_alloc(&kept[n_kept], bytes);
	if (result == CUDA_SUCCESS)
		result = cu_sync();
	n_kept += result == CUDA_SUCCESS;
	return (int)result;
}

static void kernel(int device)
{
	unsigned char back[256] = { 0 };
	CUdeviceptr memory = 0;
	CUresult result = enter(device);

	if (result == CUDA_SUCCESS)
		result = cu_alloc(&memory, sizeof back);
	if (result == CUDA_SUCCESS)
		result = cu_fill(memory, 0x5a, sizeof back);
	if (result == CUDA_SUCCESS)
		result = cu_read(back, memory, sizeof back);
	if (memory)
		cu_free(memory);
	if (result == CUDA_SUCCESS && back[0] == 0x5a &&
		memcmp(back, back + 1, sizeof back - 1) == 0)
		printf("ok\n");
	else
		printf("%d\n", (int)result);
}

int main(void)
{
	size_t bytes, left, total;
	char line[128];
	int device;

	load();
	printf("%d\n", (int)cu_init(0));
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		if (strcmp(line, "devices\n") == 0)
			devices_print();
		else if (sscanf(line, "alloc %d %zu", &device, &bytes) == 2)
			printf("%d\n", allocate(device, bytes));
		else if (strcmp(line, "free\n") == 0)
			printf("%d\n", n_kept ? (int)cu_free(kept[--n_kept]) : -1);
		else if (sscanf(line, "kernel %d", &device) == 1)
			kernel(device);
		else if (sscanf(line, "info %d", &device) == 1 && enter(device) == CUDA_SUCCESS &&
			cu_info(&left, &total) == CUDA_SUCCESS)
			printf("%zu %zu\n", left, total);
		else
			printf("?\n");
		fflush(stdout);
	}
	return 0;
}
