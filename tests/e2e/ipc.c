/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Executes one line of standard input at a time and answers each with one line: the result of the
 * call, and what it returned. Handles of CUDA's interprocess calls, and the contents of the files
 * that stand for memory and pools, are printed and read in hexadecimal. Numbers are hexadecimal too.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cuda_types.h"
#include "tests/e2e/calls.h"

typedef unsigned long long number;

static struct {
	CUresult (*cuInit)(unsigned);
	CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *, CUdevice);
	CUresult (*cuCtxSetCurrent)(CUcontext);
	CUresult (*cuCtxSynchronize)(void);
	CUresult (*cuDeviceGetAttribute)(int *, CUdevice_attribute, CUdevice);
	CUresult (*cuPointerGetAttribute)(void *, CUpointer_attribute, CUdeviceptr);
	CUresult (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
	CUresult (*cuMemFree_v2)(CUdeviceptr);
	CUresult (*cuMemFreeAsync)(CUdeviceptr, CUstream);
	CUresult (*cuMemsetD32_v2)(CUdeviceptr, unsigned, size_t);
	CUresult (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
	CUresult (*cuMemcpyHtoDAsync_v2)(CUdeviceptr, const void *, size_t, CUstream);
	CUresult (*cuMemAllocHost_v2)(void **, size_t);
	CUresult (*cuIpcGetMemHandle)(CUipcMemHandle *, CUdeviceptr);
	CUresult (*cuIpcOpenMemHandle_v2)(CUdeviceptr *, CUipcMemHandle, unsigned);
	CUresult (*cuIpcCloseMemHandle)(CUdeviceptr);
	CUresult (*cuStreamCreate)(CUstream *, unsigned);
	CUresult (*cuStreamQuery)(CUstream);
	CUresult (*cuStreamWaitEvent)(CUstream, CUevent, unsigned);
	CUresult (*cuStreamWaitValue32_v2)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
	CUresult (*cuEventCreate)(CUevent *, unsigned);
	CUresult (*cuEventDestroy_v2)(CUevent);
	CUresult (*cuEventRecord)(CUevent, CUstream);
	CUresult (*cuEventQuery)(CUevent);
	CUresult (*cuEventSynchronize)(CUevent);
	CUresult (*cuIpcGetEventHandle)(CUipcEventHandle *, CUevent);
	CUresult (*cuIpcOpenEventHandle)(CUevent *, CUipcEventHandle);
	CUresult (*cuMemPoolCreate)(CUmemoryPool *, const CUmemPoolProps *);
	CUresult (*cuMemPoolDestroy)(CUmemoryPool);
	CUresult (*cuDeviceGetDefaultMemPool)(CUmemoryPool *, CUdevice);
	CUresult (*cuDeviceSetMemPool)(CUdevice, CUmemoryPool);
	CUresult (*cuMemAllocFromPoolAsync)(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
	CUresult (*cuMemPoolExportToShareableHandle)(
		void *, CUmemoryPool, CUmemAllocationHandleType, unsigned long long);
	CUresult (*cuMemPoolImportFromShareableHandle)(
		CUmemoryPool *, void *, CUmemAllocationHandleType, unsigned long long);
	CUresult (*cuMemPoolExportPointer)(CUmemPoolPtrExportData *, CUdeviceptr);
	CUresult (*cuMemPoolImportPointer)(CUdeviceptr *, CUmemoryPool, CUmemPoolPtrExportData *);
	CUresult (*cuMemCreate)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
		unsigned long long);
	CUresult (*cuMemRelease)(CUmemGenericAllocationHandle);
	CUresult (*cuMemExportToShareableHandle)(void *, CUmemGenericAllocationHandle,
		CUmemAllocationHandleType, unsigned long long);
	CUresult (*cuMemImportFromShareableHandle)(
		CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType);
} d;

static CUstream stream;
static unsigned char bytes[64]; /* of the last argument in hexadecimal */
static unsigned *host;

static const CUmemAllocationHandleType posix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

static void start(void)
{
	void *library = library_open();
	CUcontext context;

#define NEEDS(name)                                                       \
	do {                                                              \
		void *entry = dlsym(library, #name);                      \
		memcpy(&d.name, &entry, sizeof entry);                    \
		need(entry ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND, #name); \
	} while (0)
	NEEDS(cuInit);
	NEEDS(cuDevicePrimaryCtxRetain);
	NEEDS(cuCtxSetCurrent);
	NEEDS(cuCtxSynchronize);
	NEEDS(cuDeviceGetAttribute);
	NEEDS(cuPointerGetAttribute);
	NEEDS(cuMemAlloc_v2);
	NEEDS(cuMemFree_v2);
	NEEDS(cuMemFreeAsync);
	NEEDS(cuMemsetD32_v2);
	NEEDS(cuMemcpyDtoH_v2);
	NEEDS(cuMemcpyHtoDAsync_v2);
	NEEDS(cuMemAllocHost_v2);
	NEEDS(cuIpcGetMemHandle);
	NEEDS(cuIpcOpenMemHandle_v2);
	NEEDS(cuIpcCloseMemHandle);
	NEEDS(cuStreamCreate);
	NEEDS(cuStreamQuery);
	NEEDS(cuStreamWaitEvent);
	NEEDS(cuStreamWaitValue32_v2);
	NEEDS(cuEventCreate);
	NEEDS(cuEventDestroy_v2);
	NEEDS(cuEventRecord);
	NEEDS(cuEventQuery);
	NEEDS(cuEventSynchronize);
	NEEDS(cuIpcGetEventHandle);
	NEEDS(cuIpcOpenEventHandle);
	NEEDS(cuMemPoolCreate);
	NEEDS(cuMemPoolDestroy);
	NEEDS(cuDeviceGetDefaultMemPool);
	NEEDS(cuDeviceSetMemPool);
	NEEDS(cuMemAllocFromPoolAsync);
	NEEDS(cuMemPoolExportToShareableHandle);
	NEEDS(cuMemPoolImportFromShareableHandle);
	NEEDS(cuMemPoolExportPointer);
	NEEDS(cuMemPoolImportPointer);
	NEEDS(cuMemCreate);
	NEEDS(cuMemRelease);
	NEEDS(cuMemExportToShareableHandle);
	NEEDS(cuMemImportFromShareableHandle);
	need(d.cuInit(0), "cuInit");
	need(d.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	need(d.cuCtxSetCurrent(context), "cuCtxSetCurrent");
	need(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

/* ---- the commands: a and b are their numbers, bytes has the rest; *ret is printed ---- */

static void print_bytes(const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		printf("%02x", ((const unsigned char *)data)[i]);
	printf(" ");
}

/* Prints what a descriptor of the driver contains, and closes it. */
static void print_file(CUresult result, int fd)
{
	char content[64] = { 0 };
	ssize_t n = result == CUDA_SUCCESS ? pread(fd, content, sizeof content, 0) : 0;

	print_bytes(content, n > 0 ? (size_t)n : 0);
	if (result == CUDA_SUCCESS)
		close(fd);
}

/* A file with these contents, as another process has got it. */
static void *file_of(number size)
{
	int fd = memfd_create("passed", 0);

	if (write(fd, bytes, size) != (ssize_t)size)
		exit(1);
	return (void *)(intptr_t)fd;
}

static CUresult fill(number addr, number value, number count)
{
	CUresult result = d.cuMemsetD32_v2(addr, (unsigned)value, count);

	return result == CUDA_SUCCESS ? d.cuCtxSynchronize() : result;
}

/* A copy of pinned memory, which may go on after the call. */
static CUresult upload(number addr, number value, number count)
{
	void *pinned = NULL;
	CUresult result = d.cuMemAllocHost_v2(&pinned, count * sizeof(unsigned));

	for (number i = 0; i < count && pinned; i++)
		((unsigned *)pinned)[i] = (unsigned)value;
	return pinned ? d.cuMemcpyHtoDAsync_v2(addr, pinned, count * sizeof(unsigned), stream)
		      : result;
}

/* How many words are not the value. */
static CUresult count_other(number addr, number value, number count, number *ret)
{
	CUresult result;

	host = realloc(host, count * sizeof *host);
	result = d.cuMemcpyDtoH_v2(host, addr, count * sizeof *host);
	*ret = 0;
	for (number i = 0; i < count; i++)
		*ret += host[i] != (unsigned)value;
	return result;
}

static CUresult memory_command(const char *verb, const number n[3], number *ret)
{
	CUipcMemHandle handle = { { 0 } };
	CUresult result;

	memcpy(&handle, bytes, sizeof handle);
	if (strcmp(verb, "alloc") == 0)
		return d.cuMemAlloc_v2(ret, n[0]);
	if (strcmp(verb, "free") == 0)
		return d.cuMemFree_v2(n[0]);
	if (strcmp(verb, "fill") == 0)
		return fill(n[0], n[1], n[2]);
	if (strcmp(verb, "upload") == 0)
		return upload(n[0], n[1], n[2]);
	if (strcmp(verb, "other") == 0)
		return count_other(n[0], n[1], n[2], ret);
	if (strcmp(verb, "capable") == 0) {
		unsigned capable = 0;

		result = d.cuPointerGetAttribute(
			&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, n[0]);
		*ret = capable;
		return result;
	}
	if (strcmp(verb, "get") == 0) {
		result = d.cuIpcGetMemHandle(&handle, n[0]);
		print_bytes(&handle, sizeof handle);
		return result;
	}
	if (strcmp(verb, "open") == 0)
		return d.cuIpcOpenMemHandle_v2(ret, handle, (unsigned)n[0]);
	if (strcmp(verb, "close") == 0)
		return d.cuIpcCloseMemHandle(n[0]);
	return CUDA_ERROR_UNKNOWN;
}

static CUresult event_command(const char *verb, const number n[3], number *ret)
{
	CUevent event = (CUevent)(uintptr_t)n[0];
	CUipcEventHandle handle;
	CUresult result;

	memcpy(&handle, bytes, sizeof handle);
	if (strcmp(verb, "event") == 0)
		result = d.cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
	else if (strcmp(verb, "eopen") == 0)
		result = d.cuIpcOpenEventHandle(&event, handle);
	else if (strcmp(verb, "eget") == 0) {
		result = d.cuIpcGetEventHandle(&handle, event);
		print_bytes(&handle, sizeof handle);
	} else if (strcmp(verb, "edestroy") == 0)
		result = d.cuEventDestroy_v2(event);
	else if (strcmp(verb, "record") == 0)
		result = d.cuEventRecord(event, stream);
	else if (strcmp(verb, "query") == 0)
		result = d.cuEventQuery(event);
	else if (strcmp(verb, "synchronize") == 0)
		result = d.cuEventSynchronize(event);
	else if (strcmp(verb, "ewait") == 0)
		result = d.cuStreamWaitEvent(stream, event, 0);
	else if (strcmp(verb, "block") == 0) /* until fill writes the value */
		result = d.cuStreamWaitValue32_v2(
			stream, n[0], (cuuint32_t)n[1], CU_STREAM_WAIT_VALUE_EQ);
	else if (strcmp(verb, "idle") == 0)
		result = d.cuStreamQuery(stream);
	else
		return CUDA_ERROR_UNKNOWN;
	*ret = (uintptr_t)event;
	return result;
}

static CUresult pool_command(const char *verb, const number n[3], number *ret)
{
	const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = (CUmemAllocationHandleType)n[0],
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemoryPool pool = (CUmemoryPool)(uintptr_t)n[0];
	CUmemPoolPtrExportData data = { { 0 } };
	CUresult result;
	int fd = -1;

	memcpy(&data, bytes, sizeof data);
	if (strcmp(verb, "pool") == 0)
		result = d.cuMemPoolCreate(&pool, &props);
	else if (strcmp(verb, "pdefault") == 0)
		result = d.cuDeviceGetDefaultMemPool(&pool, 0);
	else if (strcmp(verb, "pset") == 0)
		result = d.cuDeviceSetMemPool(0, pool);
	else if (strcmp(verb, "pdestroy") == 0)
		result = d.cuMemPoolDestroy(pool);
	else if (strcmp(verb, "pexport") == 0) {
		result = d.cuMemPoolExportToShareableHandle(&fd, pool, posix, 0);
		print_file(result, fd);
	} else if (strcmp(verb, "pimport") == 0)
		result = d.cuMemPoolImportFromShareableHandle(&pool, file_of(n[0]), posix, 0);
	else if (strcmp(verb, "palloc") == 0)
		return d.cuMemAllocFromPoolAsync(ret, n[1], pool, stream);
	else if (strcmp(verb, "pfree") == 0)
		return d.cuMemFreeAsync(n[0], stream);
	else if (strcmp(verb, "ppoint") == 0) {
		result = d.cuMemPoolExportPointer(&data, n[0]);
		print_bytes(&data, sizeof data);
	} else if (strcmp(verb, "popen") == 0)
		return d.cuMemPoolImportPointer(ret, pool, &data);
	else
		return CUDA_ERROR_UNKNOWN;
	*ret = (uintptr_t)pool;
	return result;
}

static CUresult create_command(const char *verb, const number n[3], number *ret)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = posix,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemGenericAllocationHandle handle = n[0];
	CUresult result;
	int fd = -1, value = 0;

	if (strcmp(verb, "attribute") == 0) {
		result = d.cuDeviceGetAttribute(&value, (CUdevice_attribute)n[0], 0);
		*ret = (number)(unsigned)value;
		return result;
	}
	if (strcmp(verb, "create") == 0)
		result = d.cuMemCreate(&handle, n[0], &prop, 0);
	else if (strcmp(verb, "release") == 0)
		result = d.cuMemRelease(handle);
	else if (strcmp(verb, "export") == 0) {
		result = d.cuMemExportToShareableHandle(&fd, handle, posix, 0);
		print_file(result, fd);
	} else if (strcmp(verb, "import") == 0)
		result = d.cuMemImportFromShareableHandle(&handle, file_of(n[0]), posix);
	else
		return CUDA_ERROR_UNKNOWN;
	*ret = handle;
	return result;
}

static void bytes_read(const char *text)
{
	unsigned byte;

	memset(bytes, 0, sizeof bytes);
	for (size_t i = 0; i < sizeof bytes && sscanf(text + 2 * i, "%2x", &byte) == 1; i++)
		bytes[i] = (unsigned char)byte;
}

int main(void)
{
	char line[512];

	start();
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		CUresult (*const commands[])(const char *, const number[3],
			number *) = { memory_command, event_command, pool_command, create_command };
		CUresult result = CUDA_ERROR_UNKNOWN;
		char verb[32] = "", text[256] = "";
		number n[3] = { 0, 0, 0 }, ret = 0;

		/* a verb and numbers; or a verb, a number and, behind a colon, bytes */
		if (sscanf(line, "%31s %llx :%255s", verb, &n[0], text) < 3)
			sscanf(line, "%31s %llx %llx %llx", verb, &n[0], &n[1], &n[2]);
		bytes_read(text);
		for (int i = 0; i < 4 && result == CUDA_ERROR_UNKNOWN; i++)
			result = commands[i](verb, n, &ret);
		printf("%d %llx\n", (int)result, ret);
		fflush(stdout);
	}
	return 0;
}
