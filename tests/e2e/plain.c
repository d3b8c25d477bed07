/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The program that plain.py runs: device memory on a driver without virtual memory management.
 *
 *     plain churn N          N pairs of an allocation and a free, of changing sizes
 *     plain grow N           N allocations of 1 MiB, each with its own content
 *     plain clash BASE MIB   the same with 200, after mapping host memory at these addresses
 *     plain exact            allocates until memory runs out, then nearly all of it at once
 *     plain scatter N        fills memory, frees all but every N-th allocation, then allocates much
 *     plain contexts N       N times: two contexts with memory, one of which is destroyed
 *     plain devices          memory of each device, freed in the context of another
 *     plain wrong            wrong frees, and uses of freed memory
 *
 * Exit codes: 0 all right; 1 a call failed or a result is wrong, which is printed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/text.h"
#include "tests/e2e/calls.h"

#define MIB    (1ull << 20)
#define N_MAX  20000
#define PIECES 8 /* live at a time while memory is allocated and freed */

static struct {
	CUresult (*cuInit)(unsigned);
	CUresult (*cuCtxCreate_v2)(CUcontext *, unsigned, CUdevice);
	CUresult (*cuCtxDestroy_v2)(CUcontext);
	CUresult (*cuCtxSetCurrent)(CUcontext);
	CUresult (*cuDeviceGetCount)(int *);
	CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *, CUdevice);
	CUresult (*cuDevicePrimaryCtxReset_v2)(CUdevice);
	CUresult (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
	CUresult (*cuMemFree_v2)(CUdeviceptr);
	CUresult (*cuMemGetInfo_v2)(size_t *, size_t *);
	CUresult (*cuMemGetAddressRange_v2)(CUdeviceptr *, size_t *, CUdeviceptr);
	CUresult (*cuMemcpy)(CUdeviceptr, CUdeviceptr, size_t);
	CUresult (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
	CUresult (*cuMemsetD8_v2)(CUdeviceptr, unsigned char, size_t);
	CUresult (*cuPointerGetAttribute)(void *, CUpointer_attribute, CUdeviceptr);
} cu;

static CUcontext primary;
static CUdeviceptr pieces[N_MAX];

static void load(void)
{
	void *library = library_open();

#define LOAD(name) *(void **)&cu.name = dlsym(library, #name)
	LOAD(cuInit);
	LOAD(cuCtxCreate_v2);
	LOAD(cuCtxDestroy_v2);
	LOAD(cuCtxSetCurrent);
	LOAD(cuDeviceGetCount);
	LOAD(cuDevicePrimaryCtxRetain);
	LOAD(cuDevicePrimaryCtxReset_v2);
	LOAD(cuMemAlloc_v2);
	LOAD(cuMemFree_v2);
	LOAD(cuMemGetInfo_v2);
	LOAD(cuMemGetAddressRange_v2);
	LOAD(cuMemcpy);
	LOAD(cuMemcpyDtoH_v2);
	LOAD(cuMemsetD8_v2);
	LOAD(cuPointerGetAttribute);
#undef LOAD
	need(cu.cuInit(0), "cuInit");
	need(cu.cuDevicePrimaryCtxRetain(&primary, 0), "cuDevicePrimaryCtxRetain");
	need(cu.cuCtxSetCurrent(primary), "cuCtxSetCurrent");
}

static void expect(bool right, const char *what)
{
	if (right)
		return;
	printf("not true: %s\n", what);
	exit(1);
}
#define EXPECT(condition) expect(condition, #condition)

static CUdeviceptr take(size_t size)
{
	CUdeviceptr addr = 0;

	need(cu.cuMemAlloc_v2(&addr, size), "cuMemAlloc");
	EXPECT(addr % 256 == 0);
	return addr;
}

static void give(CUdeviceptr addr)
{
	need(cu.cuMemFree_v2(addr), "cuMemFree");
}

static void mark(CUdeviceptr addr, size_t size, int i)
{
	need(cu.cuMemsetD8_v2(addr, (unsigned char)(i * 7 + 1), size), "cuMemsetD8");
}

static bool marked(CUdeviceptr addr, size_t size, int i)
{
	unsigned char byte[2];

	need(cu.cuMemcpyDtoH_v2(byte, addr, 1), "cuMemcpyDtoH");
	need(cu.cuMemcpyDtoH_v2(byte + 1, addr + size - 1, 1), "cuMemcpyDtoH");
	return byte[0] == (unsigned char)(i * 7 + 1) && byte[1] == byte[0];
}

static size_t bytes_free(void)
{
	size_t bytes, total;

	need(cu.cuMemGetInfo_v2(&bytes, &total), "cuMemGetInfo");
	return bytes;
}

static void churn(int n)
{
	CUdeviceptr live[PIECES] = { 0 };

	for (int i = 0; i < n; i++) {
		if (live[i % PIECES])
			give(live[i % PIECES]);
		live[i % PIECES] = take((size_t)(i % 97 + 1) * 777);
	}
}

static void grow(int n)
{
	CUdeviceptr base;
	size_t size;

	for (int i = 0; i < n; i++) {
		pieces[i] = take(MIB);
		mark(pieces[i], MIB, i);
	}
	printf("first at %llx\n", (unsigned long long)pieces[0]);
	for (int i = 0; i < n; i++)
		EXPECT(marked(pieces[i], MIB, i));
	need(cu.cuMemGetAddressRange_v2(&base, &size, pieces[n / 2] + 5), "cuMemGetAddressRange");
	EXPECT(base == pieces[n / 2] && size == MIB);
	for (int i = 0; i < n; i++)
		give(pieces[i]);
}

/*
 * As much as is said to be free can be had in pieces; when all is free again, nearly all of it as
 * one, also beside a small allocation.
 */
static void exact(void)
{
	size_t at_first = bytes_free(), rest;
	CUresult result = CUDA_SUCCESS;
	CUdeviceptr small;
	int n = 0;

	while (n < N_MAX && (result = cu.cuMemAlloc_v2(&pieces[n], MIB)) == CUDA_SUCCESS)
		n++;
	rest = bytes_free();
	printf("free %zu MiB, got %d, left %zu MiB\n", at_first >> 20, n, rest >> 20);
	EXPECT(result == CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT((size_t)n * MIB >= at_first / 100 * 98 && rest < at_first / 50);
	while (n > 0)
		give(pieces[--n]);
	EXPECT(bytes_free() >= at_first / 100 * 99);
	give(take(at_first / 100 * 98));
	EXPECT(bytes_free() >= at_first / 100 * 99);
	small = take(1);
	give(take(bytes_free() / 100 * 85));
	EXPECT(cu.cuMemAlloc_v2(&pieces[0], at_first + MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	give(small);
}

/* Small allocations that remain do not keep most of the memory from a large one. */
static void scatter(int n)
{
	size_t at_first = bytes_free();
	int taken = 0;

	while (bytes_free() > at_first / 10)
		for (int i = 0; i < 16; i++)
			pieces[taken++] = take(MIB);
	for (int i = 0; i < taken; i++)
		if (i % n)
			give(pieces[i]);
	give(take(at_first / 100 * 65));
	for (int i = 0; i < taken; i += n)
		give(pieces[i]);
	EXPECT(bytes_free() >= at_first / 100 * 99);
}

static void contexts(int n)
{
	for (int i = 0; i < n; i++) {
		CUdeviceptr here = take(1000), there, left;
		CUcontext other;

		mark(here, 1000, i);
		need(cu.cuCtxCreate_v2(&other, 0, 0), "cuCtxCreate");
		there = take(1000);
		left = take(2000);
		mark(there, 1000, i + 1);
		EXPECT(marked(there, 1000, i + 1) && left != there);
		give(there);
		need(cu.cuCtxDestroy_v2(other), "cuCtxDestroy");
		need(cu.cuCtxSetCurrent(primary), "cuCtxSetCurrent");
		EXPECT(cu.cuMemFree_v2(left) == CUDA_ERROR_INVALID_VALUE);
		EXPECT(marked(here, 1000, i));
		if (i % 2)
			give(here);
		if (i % 4 == 0) {
			need(cu.cuDevicePrimaryCtxReset_v2(0), "cuDevicePrimaryCtxReset");
			need(cu.cuDevicePrimaryCtxRetain(&primary, 0), "cuDevicePrimaryCtxRetain");
			need(cu.cuCtxSetCurrent(primary), "cuCtxSetCurrent");
		}
	}
}

/* Each device has its own slabs, and a free in another context finds them. */
static void devices(void)
{
	CUcontext contexts[4];
	CUdeviceptr first[4], pages[4];
	size_t at_first[4];
	int n, device;

	need(cu.cuDeviceGetCount(&n), "cuDeviceGetCount");
	EXPECT(n >= 2 && n <= 4);
	for (int i = 0; i < n; i++) {
		need(cu.cuDevicePrimaryCtxRetain(&contexts[i], i), "cuDevicePrimaryCtxRetain");
		need(cu.cuCtxSetCurrent(contexts[i]), "cuCtxSetCurrent");
		at_first[i] = bytes_free();
		first[i] = take(1000);
		pages[i] = take(MIB);
		mark(first[i], 1000, i);
		mark(pages[i], MIB, i + 1);
		need(cu.cuPointerGetAttribute(
			     &device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, first[i] + 999),
			"cuPointerGetAttribute");
		EXPECT(device == i && at_first[i] - bytes_free() < 2 * MIB);
	}
	/* The last context frees the memory of all devices but itself. */
	for (int i = 0; i + 1 < n; i++)
		give(first[i]);
	need(cu.cuDevicePrimaryCtxReset_v2(n - 1), "cuDevicePrimaryCtxReset");
	EXPECT(cu.cuMemFree_v2(first[n - 1]) != CUDA_SUCCESS);
	for (int i = 0; i + 1 < n; i++) {
		need(cu.cuCtxSetCurrent(contexts[i]), "cuCtxSetCurrent");
		EXPECT(marked(pages[i], MIB, i + 1));
		EXPECT(take(1000) == first[i]);
		give(first[i]);
		give(pages[i]);
		EXPECT(bytes_free() == at_first[i]);
	}
}

static void wrong(void)
{
	unsigned char bytes[16] = { 0 };
	CUdeviceptr a = take(1000), b = take(1000), base;
	CUdeviceptr host = (CUdeviceptr)(uintptr_t)bytes;
	size_t size;

	mark(a, 1000, 1);
	mark(b, 1000, 2);
	EXPECT(cu.cuMemFree_v2(a + 512) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cu.cuMemFree_v2(a - 512) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cu.cuMemcpyDtoH_v2(bytes, a + 990, 11) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cu.cuMemcpyDtoH_v2(bytes, a + 990, 10) == CUDA_SUCCESS);
	give(a);
	EXPECT(cu.cuMemFree_v2(a) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cu.cuMemcpyDtoH_v2(bytes, a, 1) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cu.cuMemcpy(host, a, 1) == CUDA_ERROR_INVALID_VALUE);
	EXPECT(cu.cuMemGetAddressRange_v2(&base, &size, a) != CUDA_SUCCESS);
	EXPECT(cu.cuMemcpy(host, b, 1) == CUDA_SUCCESS && bytes[0] == 2 * 7 + 1);
	EXPECT(marked(b, 1000, 2));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint64_t n = 0, mib = 0;
	void *at = NULL;

	if (strcmp(what, "clash") == 0 && argc > 3 &&
		ob_text_parse_number(argv[3], 1, 1 << 20, &mib)) {
		at = (void *)(uintptr_t)strtoull(argv[2], NULL, 16);
		n = 200;
		EXPECT(mmap(at, mib * MIB, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
			       -1, 0) == at);
	} else if (argc > 2 && !ob_text_parse_number(argv[2], 1, INT32_MAX, &n)) {
		return 2;
	}
	load();
	if (strcmp(what, "churn") == 0)
		churn((int)n);
	else if (strcmp(what, "exact") == 0)
		exact();
	else if (strcmp(what, "scatter") == 0)
		scatter((int)n);
	else if (strcmp(what, "contexts") == 0)
		contexts((int)n);
	else if (strcmp(what, "devices") == 0)
		devices();
	else if (strcmp(what, "wrong") == 0)
		wrong();
	else
		grow((int)ob_min(n, N_MAX));
	/* The program's own memory is still there. */
	EXPECT(!at || mprotect(at, mib * MIB, PROT_READ) == 0);
	printf("right\n");
	return 0;
}
