/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The process around the device: what the environment selects, many devices, leaving while work
 * runs, children.
 */
#include "tests/unit/softapi/api.h"

#include <pthread.h>

static int attribute(CUdevice_attribute attr, CUdevice device)
{
	int value = -12345;

	OK(FRONT(cuDeviceGetAttribute)(&value, attr, device));
	return value;
}

static void eight(void)
{
	CUcontext ctx[8];
	CUdeviceptr p[8];
	CUuuid first, last;
	int n = 0;
	size_t total;
	char name[100];

	OK(FRONT(cuInit)(0));
	OK(FRONT(cuDeviceGetCount)(&n));
	CHECK_INT(n, 8);
	OK(FRONT(cuDeviceGetUuid_v2)(&first, 0));
	OK(FRONT(cuDeviceGetUuid_v2)(&last, 7));
	CHECK(memcmp(&first, &last, sizeof first) != 0);
	OK(FRONT(cuDeviceTotalMem_v2)(&total, 7));
	CHECK_INT(total, 32 << 20);
	OK(FRONT(cuDeviceGetName)(name, sizeof name, 3));
	CHECK(strcmp(name, "Outboard software device (CPU)") == 0);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 5), 13);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 5), 1);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 5), 1);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 5), 1);
	CHECK(attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1) !=
		attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 2));
	for (int i = 0; i < 8; i++) {
		size_t free_bytes, all;

		OK(FRONT(cuDevicePrimaryCtxRetain)(&ctx[i], i));
		OK(FRONT(cuCtxSetCurrent)(ctx[i]));
		p[i] = device_new(24 << 20); /* each has its own memory */
		OK(FRONT(cuMemGetInfo_v2)(&free_bytes, &all));
		CHECK(free_bytes <= 8 << 20);
		module_open();
		OK(launch("store", NULL, p[i], (uint64_t)i + 50));
		OK(FRONT(cuCtxSynchronize)());
	}
	for (int i = 0; i < 7; i++) {
		copy_peer_fn copy = (copy_peer_fn)call_find("cuMemcpyPeer");

		OK(copy(p[7] + 4 + 4 * (CUdeviceptr)i, ctx[7], p[i], ctx[i], 4));
	}
	for (int i = 0; i < 7; i++)
		CHECK_INT(device_u32(p[7] + 4 + 4 * (CUdeviceptr)i), i + 50);
}

static void bad_variable(void)
{
	CHECK(FRONT(cuInit)(0) != CUDA_SUCCESS);
}

static void memcheck(void)
{
	CUdeviceptr p;

	device_open();
	module_open();
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0), 0);
	p = device_new(4);
	OK(launch("store", NULL, p, 3));
	OK(FRONT(cuCtxSynchronize)());
	/* One byte past the end lies in the same page: only the checker sees it. */
	OK(launch("store", NULL, p + 4, 3));
	CHECK_INT(FRONT(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void memcheck_masks(void)
{
	CUdeviceptr p;

	device_open();
	module_open();
	p = device_new(4);
	OK(launch("outside", NULL, p, 0));
	CHECK_INT(FRONT(cuCtxSynchronize)(), CUDA_ERROR_LAUNCH_FAILED);
}

/* Without the check it carries on. */
static void masks(void)
{
	CUdeviceptr p;

	device_open();
	module_open();
	p = device_new(4);
	OK(launch("store", NULL, p, 3));
	OK(launch("outside", NULL, p, 0));
	CHECK_INT(device_u32(p), 0);
}

static void freed(void)
{
	CUdeviceptr p;

	device_open();
	module_open();
	p = device_new(4);
	OK(FRONT(cuMemFree_v2)(p));
	device_new(4);
	OK(launch("store", NULL, p, 3));
	CHECK_INT(FRONT(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void leave_busy(void)
{
	device_open();
	module_open();
	OK(launch("spin", NULL, 600000, 0));
	exit(0); /* the kernel is longer than alarm() lets the test run */
}

static void endless_function(void *user)
{
	(void)user;
	for (;;)
		pause();
}

static void leave_in_function(void)
{
	device_open();
	OK(FRONT(cuLaunchHostFunc)(NULL, endless_function, NULL));
	exit(0);
}

/*
 * A child of a process that had initialised is told so; it leaves without waiting for threads it
 * does not have.
 */
static void forked(void)
{
	pid_t pid;
	int status = -1;
	CUdeviceptr p;

	device_open();
	module_open();
	p = device_new(4);
	OK(launch("store", NULL, p, 3));
	pid = fork();
	if (pid == 0) {
		CUdeviceptr q;

		CHECK_INT(FRONT(cuMemAlloc_v2)(&q, 4), CUDA_ERROR_NOT_INITIALIZED);
		CHECK_INT(FRONT(cuInit)(0), CUDA_ERROR_NOT_INITIALIZED);
		exit(0);
	}
	waitpid(pid, &status, 0);
	CHECK_INT(status, 0);
	CHECK_INT(device_u32(p), 3);
}

static void *thread_main(void *arg)
{
	CUstream s;

	(void)arg;
	OK(FRONT(cuCtxSetCurrent)(context));
	for (int i = 0; i < 30; i++) {
		CUdeviceptr p = device_new(64 + (size_t)i * 1000);

		OK(FRONT(cuStreamCreate)(&s, i & 1));
		OK(FRONT(cuMemsetD32Async)(p, 1, 1, s));
		for (uint64_t k = 0; k < 10; k++)
			OK(launch("add", s, p, k));
		OK(FRONT(cuStreamSynchronize)(s));
		OK(launch("add", CU_STREAM_PER_THREAD, p, 1));
		OK(FRONT(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
		CHECK_INT(device_u32(p), 47);
		OK(FRONT(cuStreamDestroy_v2)(s));
		OK(FRONT(cuMemFree_v2)(p));
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[8];

	device_open();
	module_open();
	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, thread_main, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
}

/* Loads the library again, as a program does that starts with this environment. */
static void library_reload(void)
{
	dlclose(handle);
	handle = dlopen(library, RTLD_NOW);
	CHECK(handle != NULL);
}

TEST(eight_devices)
{
	setenv("OUTBOARD_SOFT_DEVICES", "8", 1);
	setenv("OUTBOARD_SOFT_MEMORY", "32M", 1);
	setenv("OUTBOARD_SOFT_CC", "13.0", 1);
	library_reload();
	eight();
}

TEST(nine_devices)
{
	setenv("OUTBOARD_SOFT_DEVICES", "9", 1);
	library_reload();
	bad_variable();
}

TEST(bad_memory)
{
	setenv("OUTBOARD_SOFT_MEMORY", "lots", 1);
	library_reload();
	bad_variable();
}

TEST(bad_capability)
{
	setenv("OUTBOARD_SOFT_CC", "9", 1);
	library_reload();
	bad_variable();
}

TEST(memcheck)
{
	setenv("OUTBOARD_SOFT_MEMCHECK", "1", 1);
	library_reload();
	memcheck();
}

TEST(memcheck_of_member_masks)
{
	setenv("OUTBOARD_SOFT_MEMCHECK", "1", 1);
	library_reload();
	memcheck_masks();
}

TEST(member_masks)
{
	library_reload();
	masks();
}

TEST(memcheck_of_freed_memory)
{
	setenv("OUTBOARD_SOFT_MEMCHECK", "1", 1);
	library_reload();
	freed();
}

TEST(another_base)
{
	setenv("OUTBOARD_SOFT_BASE", "300000000000", 1);
	library_reload();
	threads();
}

TEST(threads)
{
	library_reload();
	threads();
}

TEST(threads_no_shortcuts)
{
	setenv("OUTBOARD_OPT", "-all", 1);
	library_reload();
	threads();
}

TEST(fork)
{
	library_reload();
	forked();
}

TEST(leaving_while_a_kernel_runs)
{
	library_reload();
	leave_busy();
}

TEST(leaving_from_within_a_function)
{
	library_reload();
	leave_in_function();
}

int main(int argc, char **argv)
{
	return library_main(argc, argv);
}
