/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Two processes use the same memory of cuMemCreate, passed as a descriptor, and order their kernels
 * by events of cuIpcGetEventHandle. The memory remains in the second process after the first has
 * released it. Handles of mapped memory; refused calls.
 */
#include <sched.h>
#include <stdatomic.h>

#include "driver.h"
#include "pair.h"

#define PAGE   ((size_t)2 << 20)
#define COUNT  ((unsigned)(PAGE / sizeof(unsigned)))
#define ROUNDS 5
#define BEFORE 10 /* kernels that run before an event */

/* for (i = thread; i < n; i += threads) p[i] += i */
static const char ptx[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
			  ".visible .entry add(.param .u64 at, .param .u32 count)\n{\n"
			  ".reg .u64 %rd<4>;\n.reg .u32 %r<8>;\n.reg .pred %p;\n"
			  "ld.param.u64 %rd1, [at];\nld.param.u32 %r1, [count];\n"
			  "mov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"
			  "mad.lo.u32 %r2, %r3, %r4, %r2;\nmov.u32 %r5, %nctaid.x;\n"
			  "mul.lo.u32 %r4, %r4, %r5;\n"
			  "again:\nsetp.ge.u32 %p, %r2, %r1;\n@%p bra done;\n"
			  "mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd2, %rd1, %rd2;\n"
			  "ld.global.u32 %r6, [%rd2];\nadd.u32 %r6, %r6, %r2;\n"
			  "st.global.u32 [%rd2], %r6;\nadd.u32 %r2, %r2, %r4;\nbra again;\n"
			  "done:\nret;\n}\n";

static unsigned host[COUNT];
static CUfunction add;
static CUstream stream;
static CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };

static void start(void)
{
	CUcontext context;
	CUmodule module;

	CU(cuInit(0));
	CU(cuDevicePrimaryCtxRetain(&context, 0));
	CU(cuCtxSetCurrent(context));
	CU(cuModuleLoadData(&module, ptx));
	CU(cuModuleGetFunction(&add, module, "add"));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle)
{
	CUmemAccessDesc access = { .location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUdeviceptr at;

	CU(cuMemAddressReserve(&at, PAGE, 0, 0, 0));
	CU(cuMemMap(at, PAGE, 0, handle, 0));
	CU(cuMemSetAccess(at, PAGE, &access, 1));
	return at;
}

static void unmap(CUdeviceptr at)
{
	CU(cuMemUnmap(at, PAGE));
	CU(cuMemAddressFree(at, PAGE));
}

static void launch(CUdeviceptr at, unsigned times)
{
	unsigned count = COUNT;
	void *params[] = { &at, &count };

	for (unsigned i = 0; i < times; i++)
		CU(cuLaunchKernel(add, 16, 1, 1, 128, 1, 1, 0, stream, params, NULL));
}

/* The number of elements that are not first + times * index. */
static unsigned wrong(CUdeviceptr at, unsigned first, unsigned times)
{
	unsigned n = 0;

	CU(cuMemcpyDtoHAsync(host, at, sizeof host, stream));
	CU(cuStreamSynchronize(stream));
	for (unsigned i = 0; i < COUNT; i++)
		n += host[i] != first + times * i;
	return n;
}

/* Each process's event, and the other's. */
static CUevent mine, other;

static void events_exchange(void)
{
	CUipcEventHandle handle;

	CU(cuEventCreate(&mine, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuEventQuery(mine) == CUDA_SUCCESS);
	CU(cuIpcGetEventHandle(&handle, mine));
	pair_send(&handle, sizeof handle, -1);
	pair_receive(&handle, sizeof handle);
	CU(cuIpcOpenEventHandle(&other, handle));
}

/* Work of this process; the other one's later work in a stream waits for it. */
static void turn(CUdeviceptr at)
{
	char done = 1;

	launch(at, BEFORE);
	CU(cuEventRecord(mine, stream));
	pair_send(&done, 1, -1);
}

static void turn_await(void)
{
	char done;

	pair_receive(&done, 1);
	CU(cuStreamWaitEvent(stream, other, 0));
}

static atomic_bool gate;

static void at_gate(void *user)
{
	(void)user;
	while (!atomic_load(&gate))
		sched_yield();
}

/* Records an event that it has opened twice, of which one is closed before the recording is complete. */
static void twice_in_second(void)
{
	CUipcEventHandle handle;
	CUevent one, two;
	char byte = 0;

	pair_receive(&handle, sizeof handle);
	CU(cuIpcOpenEventHandle(&one, handle));
	CU(cuIpcOpenEventHandle(&two, handle));
	CU(cuLaunchHostFunc(stream, at_gate, NULL));
	CU(cuEventRecord(one, stream));
	CU(cuEventDestroy(two));
	pair_send(&byte, 1, -1);
	pair_receive(&byte, 1);
	atomic_store(&gate, true);
	CU(cuStreamSynchronize(stream));
	CU(cuEventDestroy(one));
}

static void twice(void)
{
	CUipcEventHandle handle;
	CUevent event;
	char byte = 0;

	CU(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	CU(cuIpcGetEventHandle(&handle, event));
	pair_send(&handle, sizeof handle, -1);
	pair_receive(&byte, 1);
	printf("opened twice, closed once: %s\n",
		cuEventQuery(event) == CUDA_ERROR_NOT_READY ? "not ready" : "ready too early");
	pair_send(&byte, 1, -1);
	CU(cuEventSynchronize(event));
	OK(cuEventQuery(event) == CUDA_SUCCESS);
	CU(cuEventDestroy(event));
}

static int second(void)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp got;
	unsigned result[3];
	CUdeviceptr at;
	char byte;
	int fd = pair_receive(&byte, 1);

	start();
	CU(cuMemImportFromShareableHandle(
		&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	CU(cuMemGetAllocationPropertiesFromHandle(&got, handle));
	OK(got.type == prop.type && got.location.id == prop.location.id);
	at = map(handle);
	CU(cuMemRelease(handle));
	result[0] = wrong(at, 7, 0);
	events_exchange();
	for (unsigned i = 0; i < ROUNDS; i++) {
		turn_await();
		turn(at);
	}
	CU(cuEventSynchronize(mine));
	result[1] = wrong(at, 7, 2 * ROUNDS * BEFORE);
	pair_send(&byte, 1, -1);
	pair_receive(&byte, 1); /* the first process has released the memory */
	launch(at, 1);
	result[2] = wrong(at, 7, 2 * ROUNDS * BEFORE + 1);
	pair_send(result, sizeof result, -1);
	CU(cuEventDestroy(other));
	CU(cuEventDestroy(mine));
	unmap(at);
	twice_in_second();
	return check_failures != 0;
}

static void sharing(void)
{
	CUmemGenericAllocationHandle handle;
	unsigned result[3];
	CUdeviceptr at;
	char byte = 0;
	int fd = -1;

	CU(cuMemCreate(&handle, PAGE, &prop, 0));
	at = map(handle);
	CU(cuMemsetD32(at, 7, COUNT));
	CU(cuCtxSynchronize());
	CU(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	pair_send(&byte, 1, fd);
	close(fd);
	events_exchange();
	for (unsigned i = 0; i < ROUNDS; i++) {
		turn(at);
		turn_await();
	}
	printf("first: %u wrong after the turns\n", wrong(at, 7, 2 * ROUNDS * BEFORE));
	CU(cuEventSynchronize(other));
	OK(cuEventQuery(other) == CUDA_SUCCESS);
	pair_receive(&byte, 1);
	unmap(at);
	CU(cuMemRelease(handle));
	CU(cuCtxSynchronize());
	pair_send(&byte, 1, -1);
	pair_receive(result, sizeof result);
	printf("second: %u wrong at first, %u after the turns, %u alone\n", result[0], result[1],
		result[2]);
	twice();
	printf("second ended with %d\n", pair_end());
	CU(cuEventDestroy(other));
	CU(cuEventDestroy(mine));
}

/* A handle of mapped memory, by any address in it. */
static void retaining(void)
{
	CUmemGenericAllocationHandle handle, again = 0;
	CUdeviceptr at, plain;

	CU(cuMemCreate(&handle, PAGE, &prop, 0));
	at = map(handle);
	CU(cuMemRelease(handle));
	CU(cuMemsetD32(at, 9, COUNT));
	CU(cuCtxSynchronize());
	CU(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(at + 4096)));
	unmap(at);
	at = map(again);
	CU(cuMemRelease(again));
	printf("retained: %u wrong\n", wrong(at, 9, 0));
	unmap(at);
	CU(cuMemAlloc(&plain, 4096));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)plain));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&again, (void *)&plain));
	CU(cuMemFree(plain));
}

static void refused_memory(void)
{
	const CUmemAllocationHandleType posix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	CUmemAllocationProp alone = prop;
	CUmemGenericAllocationHandle handle, shared;
	int fd = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	alone.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	CU(cuMemCreate(&handle, PAGE, &alone, 0));
	CU(cuMemCreate(&shared, PAGE, &prop, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, handle, posix, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(NULL, shared, posix, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, shared, posix, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemExportToShareableHandle(&fd, shared, CU_MEM_HANDLE_TYPE_NONE, 0));
	CU(cuMemRelease(handle));
	CU(cuMemRelease(shared));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, shared, posix, 0));
	OK(fd == -1);
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)null, posix));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)-1, posix));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuMemImportFromShareableHandle(NULL, (void *)(intptr_t)null, posix));
	close(null);
}

static void refused_events(void)
{
	CUipcEventHandle handle = { { 0 } };
	CUevent plain, opened;

	EXPECT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&opened, CU_EVENT_INTERPROCESS));
	CU(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&handle, plain));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetEventHandle(NULL, plain));
	CU(cuEventDestroy(plain));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&handle, plain));
	memset(&handle, 0x5a, sizeof handle);
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenEventHandle(&opened, handle));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenEventHandle(NULL, handle));
}

int main(int argc, char **argv)
{
	int posix = 0, events = 0;

	if (pair_start(argc, argv, "share"))
		return second();
	start();
	CU(cuDeviceGetAttribute(
		&posix, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
	CU(cuDeviceGetAttribute(&events, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0));
	printf("descriptors %d, events %d\n", posix, events);
	sharing();
	retaining();
	refused_memory();
	refused_events();
	return verdict("driver_share");
}
