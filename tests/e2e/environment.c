/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The program that environment.py runs. It prints facts about the driver, one per line. The first
 * argument selects them:
 *   devices   cuInit, then each device by every call that names one
 *   blocking  the result of a launch that fails in the kernel, and of the next call
 *   loading   what loads of images give, and when
 *   answers   calls that NVIDIA's libraries depend on
 *   reused    what becomes of the image's file when it takes the place of every descriptor that the
 *             library has opened
 * Further NAME=VALUE arguments are put into the environment before cuInit.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cuda_types.h"

#define DEVICES_MAX 16

static void *library;

static void *find(const char *name)
{
	void *entry = dlsym(library, name);

	if (!entry) {
		fprintf(stderr, "%s is not there\n", name);
		exit(2);
	}
	return entry;
}

#define CALL(name, ...) ((CUresult(*)(__VA_ARGS__))find(name))

/* The store goes to address 16, which is not allocated. */
static const char faulty[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			     ".visible .entry faulty()\n{\n.reg .b64 %a;\n.reg .b32 %v;\nmov.u64 "
			     "%a, 16;\nmov.u32 %v, 1;\nst.global.u32 [%a], %v;\nret;\n}\n"
			     ".visible .entry empty()\n{\nret;\n}\n";

static CUcontext context_new(CUdevice device)
{
	CUcontext ctx = NULL;

	printf("context %d\n",
		CALL("cuDevicePrimaryCtxRetain", CUcontext *, CUdevice)(&ctx, device));
	CALL("cuCtxSetCurrent", CUcontext)(ctx);
	return ctx;
}

/* Memory is attributed to the device it was allocated on, and holds what was written. */
static void memory(CUdevice device)
{
	CUdeviceptr addr = 0;
	unsigned value = 0xc0de + (unsigned)device, got = 0;
	int ordinal = -1, of = -1;

	printf("  alloc %d", CALL("cuMemAlloc_v2", CUdeviceptr *, size_t)(&addr, 1 << 20));
	printf(" copies %d",
		CALL("cuMemcpyHtoD_v2", CUdeviceptr, const void *, size_t)(
			addr, &value, sizeof value));
	printf(" %d", CALL("cuMemcpyDtoH_v2", void *, CUdeviceptr, size_t)(&got, addr, sizeof got));
	CALL("cuPointerGetAttribute", void *, CUpointer_attribute, CUdeviceptr)
	(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, addr);
	CALL("cuCtxGetDevice", CUdevice *)(&of);
	printf(" same %d ordinal %d of %d\n", got == value, ordinal, of);
}

/*
 * Device ordinals inside structs, in both directions: creates memory on the device and maps it with
 * access for this device only.
 */
static void mapped_memory(CUdevice device)
{
	CUmemLocation where = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device };
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = where },
			    back = { 0 };
	CUmemAccessDesc access = { .location = where, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr addr = 0;
	size_t bytes = 2 << 20;
	unsigned long long flags = 0;
	int ordinal = -1;

	printf("  vmm %d",
		CALL("cuMemCreate", CUmemGenericAllocationHandle *, size_t,
			const CUmemAllocationProp *, unsigned long long)(&handle, bytes, &prop, 0));
	CALL("cuMemGetAllocationPropertiesFromHandle", CUmemAllocationProp *,
		CUmemGenericAllocationHandle)
	(&back, handle);
	CALL("cuMemAddressReserve", CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)
	(&addr, bytes, 0, 0, 0);
	printf(" %d",
		CALL("cuMemMap", CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
			unsigned long long)(addr, bytes, 0, handle, 0));
	printf(" %d",
		CALL("cuMemSetAccess", CUdeviceptr, size_t, const CUmemAccessDesc *, size_t)(
			addr, bytes, &access, 1));
	CALL("cuMemGetAccess", unsigned long long *, const CUmemLocation *, CUdeviceptr)
	(&flags, &where, addr);
	CALL("cuPointerGetAttribute", void *, CUpointer_attribute, CUdeviceptr)
	(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, addr);
	printf(" on %d access %llu pointer %d of %d\n", back.location.id, flags, ordinal, device);
	CALL("cuMemUnmap", CUdeviceptr, size_t)(addr, bytes);
	CALL("cuMemRelease", CUmemGenericAllocationHandle)(handle);
	CALL("cuMemAddressFree", CUdeviceptr, size_t)(addr, bytes);
}

/* A query that goes to the server, with the device's ordinal. */
static CUresult host_atomics(unsigned *ret, CUdevice device)
{
	CUatomicOperation operation = (CUatomicOperation)0;

	return CALL("cuDeviceGetHostAtomicCapabilities", unsigned *, const CUatomicOperation *,
		unsigned, CUdevice)(ret, &operation, 1, device);
}

static void device_print(CUdevice device, int n)
{
	char name[256] = "", bus[32] = "";
	unsigned char uuid[16] = { 0 };
	unsigned caps = 9;
	CUmemoryPool pool = NULL, same = NULL;
	CUdevice back = -1;
	size_t total = 0;
	int can = -1;

	CALL("cuDeviceGetName", char *, int, CUdevice)(name, sizeof name, device);
	CALL("cuDeviceGetUuid_v2", unsigned char *, CUdevice)(uuid, device);
	CALL("cuDeviceGetPCIBusId", char *, int, CUdevice)(bus, sizeof bus, device);
	CALL("cuDeviceGetByPCIBusId", CUdevice *, const char *)(&back, bus);
	CALL("cuDeviceTotalMem_v2", size_t *, CUdevice)(&total, device);
	printf("device %d: %s, uuid ", device, name);
	for (int i = 0; i < 16; i++)
		printf("%02x", uuid[i]);
	printf(", bus %s is %d, %s\n", bus, back, total ? "has memory" : "has none");
	for (CUdevice peer = 0; peer < n; peer++) {
		int result = CALL("cuDeviceCanAccessPeer", int *, CUdevice, CUdevice)(
			&can, device, peer);

		printf("  peer %d: %d %d\n", peer, result, can);
	}
	printf("  atomics %d", host_atomics(&caps, device));
	printf(" %u, pool %d", caps,
		CALL("cuDeviceGetDefaultMemPool", CUmemoryPool *, CUdevice)(&pool, device));
	printf(" %d", CALL("cuDeviceGetMemPool", CUmemoryPool *, CUdevice)(&same, device));
	printf(" same %d\n", pool && pool == same);
	context_new(device);
	memory(device);
	mapped_memory(device);
}

static void devices(void)
{
	int n = -1, result = CALL("cuInit", unsigned)(0);
	CUdevice device = -1;
	unsigned caps;

	printf("init %d\n", result);
	printf("count %d", CALL("cuDeviceGetCount", int *)(&n));
	printf(" %d\n", n);
	for (int i = 0; i < n && i < DEVICES_MAX; i++)
		device_print(i, n);
	printf("one more %d", CALL("cuDeviceGet", CUdevice *, int)(&device, n));
	if (result == CUDA_SUCCESS)
		printf(" %d", host_atomics(&caps, n));
	printf("\n");
}

static CUresult launch(const char *name, CUmodule mod)
{
	CUfunction f = NULL;

	CALL("cuModuleGetFunction", CUfunction *, CUmodule, const char *)(&f, mod, name);
	return CALL("cuLaunchKernel", CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, unsigned, CUstream, void **,
		void **)(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static void blocking(void)
{
	CUmodule mod = NULL;

	CALL("cuInit", unsigned)(0);
	context_new(0);
	printf("load %d\n", CALL("cuModuleLoadData", CUmodule *, const void *)(&mod, faulty));
	printf("good launch %d\n", launch("empty", mod));
	printf("bad launch %d\n", launch("faulty", mod));
	printf("wait %d\n", CALL("cuCtxSynchronize", void)());
}

static void loading(const char *image)
{
	CUmoduleLoadingMode mode = (CUmoduleLoadingMode)0;
	CUlibrary lib = NULL;
	CUmodule mod = NULL;
	FILE *file = fopen(image, "rb");
	static char bytes[1 << 20];

	if (!file || !fread(bytes, 1, sizeof bytes - 1, file)) {
		fprintf(stderr, "%s cannot be read\n", image);
		exit(2);
	}
	fclose(file);
	CALL("cuInit", unsigned)(0);
	context_new(0);
	CALL("cuModuleGetLoadingMode", CUmoduleLoadingMode *)(&mode);
	printf("mode %d\n", (int)mode);
	printf("PTX %d\n", CALL("cuModuleLoadData", CUmodule *, const void *)(&mod, faulty));
	printf("fatbin %d\n", CALL("cuModuleLoadData", CUmodule *, const void *)(&mod, bytes));
	printf("library %d\n",
		CALL("cuLibraryLoadData", CUlibrary *, const void *, CUjit_option *, void **,
			unsigned, CUlibraryOption *, void **,
			unsigned)(&lib, bytes, NULL, NULL, 0, NULL, NULL, 0));
}

static void answers(void)
{
	CUlibraryOption options[] = { CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE,
		CU_LIBRARY_BINARY_IS_PRESERVED };
	CUstream streams[] = { NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, NULL };
	CUgreenCtx green;
	CUlibrary lib = NULL;
	CUkernel kernel = NULL;

	CALL("cuInit", unsigned)(0);
	context_new(0);
	for (unsigned n = 0; n <= 2; n++) {
		printf("library, %u options without values %d", n,
			CALL("cuLibraryLoadData", CUlibrary *, const void *, CUjit_option *,
				void **, unsigned, CUlibraryOption *, void **, unsigned)(
				&lib, faulty, NULL, NULL, 0, n ? options + 2 - n : NULL, NULL, n));
		printf(" kernel %d\n",
			CALL("cuLibraryGetKernel", CUkernel *, CUlibrary, const char *)(
				&kernel, lib, "empty"));
	}
	printf("options missing %d\n",
		CALL("cuLibraryLoadData", CUlibrary *, const void *, CUjit_option *, void **,
			unsigned, CUlibraryOption *, void **,
			unsigned)(&lib, faulty, NULL, NULL, 0, NULL, NULL, 1));
	CALL("cuStreamCreate", CUstream *, unsigned)(&streams[3], 0);
	for (int i = 0; i < 4; i++) {
		green = (CUgreenCtx)1;
		printf("green context of stream %d: %d", i,
			CALL("cuStreamGetGreenCtx", CUstream, CUgreenCtx *)(streams[i], &green));
		printf(" %s\n", green ? "set" : "none");
	}
	printf("of no place %d\n", CALL("cuStreamGetGreenCtx", CUstream, CUgreenCtx *)(NULL, NULL));
	for (int limit = 0; limit <= 10; limit++) {
		size_t value = 77;

		printf("limit %d: %d", limit,
			CALL("cuCtxGetLimit", size_t *, CUlimit)(&value, (CUlimit)limit));
		printf(" %zu\n", value);
	}
	printf("set %d\n", CALL("cuCtxSetLimit", CUlimit, size_t)(CU_LIMIT_CIG_ENABLED, 1));
}

static void reused(const char *path)
{
	int count, file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), replaced = 0;

	CALL("cuInit", unsigned)(0);
	for (int fd = 3; fd < 65536; fd++)
		if (fd != file && fcntl(fd, F_GETFD) >= 0 && dup2(file, fd) == fd)
			replaced++;
	for (int i = 0; i < 3; i++)
		CALL("cuDeviceGetCount", int *)(&count);
	printf("replaced %d, written %lld\n", replaced, (long long)lseek(file, 0, SEEK_END));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *image = "";

	for (int i = 2; i < argc; i++) {
		if (strchr(argv[i], '='))
			putenv(argv[i]);
		else
			image = argv[i];
	}
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	if (!strcmp(what, "devices"))
		devices();
	else if (!strcmp(what, "blocking"))
		blocking();
	else if (!strcmp(what, "loading"))
		loading(image);
	else if (!strcmp(what, "answers"))
		answers();
	else if (!strcmp(what, "reused"))
		reused(image);
	else
		return 2;
	return 0;
}
