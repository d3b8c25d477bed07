/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A dry run: the attributes of the chosen GPU, kernels that are accepted and not executed, true
 * memory and order, and the time that kernels take.
 */
#include "tests/unit/softapi/api.h"

#include "base/clock.h"

static int attribute(CUdevice_attribute attr)
{
	int value = -12345;

	OK(FRONT(cuDeviceGetAttribute)(&value, attr, 0));
	return value;
}

static void dry(const char *model)
{
	setenv("OUTBOARD_DRYRUN", model, 1);
	device_open();
}

TEST(h100)
{
	char name[100];
	size_t total;

	dry("h100");
	OK(FRONT(cuDeviceGetName)(name, sizeof name, 0));
	CHECK(strncmp(name, "NVIDIA H100", 11) == 0 && strstr(name, "computes nothing"));
	OK(FRONT(cuDeviceTotalMem_v2)(&total, 0));
	CHECK(total > 79ull << 30 && total < 80ull << 30);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 132);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), 227 << 10);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH), 1);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE), 50 << 20);
	device_close();
}

TEST(others)
{
	dry("T4"); /* in either case */
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 7);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 5);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR), 1024);
	CHECK_INT(attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH), 0);
	device_close();
}

TEST(memory_limit)
{
	size_t total;

	setenv("OUTBOARD_SOFT_MEMORY", "64M", 1);
	dry("a100");
	OK(FRONT(cuDeviceTotalMem_v2)(&total, 0));
	CHECK_INT(total, 64 << 20);
	device_close();
}

TEST(unknown_model)
{
	setenv("OUTBOARD_DRYRUN", "h1000", 1);
	CHECK_INT(FRONT(cuInit)(0), CUDA_ERROR_INVALID_VALUE);
}

TEST(kernels_do_nothing)
{
	CUdeviceptr p;

	dry("h100");
	module_open();
	p = device_new(64);
	OK(((set32_fn)call_find("cuMemsetD32_v2"))(p, 1234, 16));
	OK(launch("store", NULL, p, 5));
	/* not even one that would fault, or not end */
	OK(launch("fault", NULL, 0, 0));
	OK(launch("spin", NULL, 1000000, 0));
	OK(FRONT(cuCtxSynchronize)());
	CHECK_INT(device_u32(p), 1234);
	device_close();
}

TEST(launches_are_checked)
{
	uint64_t a = 0;
	void *params[] = { &a, &a };

	dry("h100");
	module_open();
	CHECK_INT(
		FRONT(cuLaunchKernel)(kernel_get("store"), 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuLaunchKernel)(
			  kernel_get("store"), 1, 1, 1, 1, 1, 1, 228 << 10, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	device_close();
}

/* The variable's memory exists; PTX's initial values are not read. */
TEST(variables)
{
	CUdeviceptr p = 0;
	size_t size = 0;

	dry("h100");
	module_open();
	OK(FRONT(cuModuleGetGlobal_v2)(&p, &size, module, "counter"));
	CHECK_INT(size, 4);
	CHECK_INT(device_u32(p), 0);
	CHECK_INT(FRONT(cuModuleGetGlobal_v2)(&p, &size, module, "no_such"), CUDA_ERROR_NOT_FOUND);
	OK(FRONT(cuModuleUnload)(module));
	device_close();
}

static float grid_ms(unsigned blocks)
{
	uint64_t a = 0;
	void *params[] = { &a, &a };
	CUevent start, end;
	float ms;

	OK(FRONT(cuEventCreate)(&start, 0));
	OK(FRONT(cuEventCreate)(&end, 0));
	OK(FRONT(cuEventRecord)(start, NULL));
	OK(FRONT(cuLaunchKernel)(
		kernel_get("store"), blocks, 1, 1, 1024, 1, 1, 0, NULL, params, NULL));
	OK(FRONT(cuEventRecord)(end, NULL));
	OK(FRONT(cuEventSynchronize)(end));
	OK(FRONT(cuEventElapsedTime_v2)(&ms, start, end));
	return ms;
}

/* 2^21 blocks of 1024 threads need 16 bytes each: 34.4 GB at 3352 GB/s are 10.25 ms. */
TEST(kernels_take_time)
{
	float small, large;

	dry("h100");
	module_open();
	small = grid_ms(1);
	large = grid_ms(1 << 21);
	CHECK(small >= 0.002 && large >= 10.25);
	CHECK(large < 10000); /* a busy machine, but not the 10 s at most */
	device_close();
}

TEST(no_time)
{
	uint64_t start;

	setenv("OUTBOARD_DRYRUN_TIME", "0", 1);
	dry("t4");
	module_open();
	start = ob_clock_ns();
	grid_ms(0x7fffffff); /* 10 s by the model */
	CHECK(ob_clock_ns() - start < 9 * OB_SECOND);
	device_close();
}

/* A context that ends does not wait for the time of its kernels. */
TEST(ends_early)
{
	uint64_t start = ob_clock_ns(), a = 0;
	void *params[] = { &a, &a };

	dry("t4");
	module_open();
	for (int i = 0; i < 4; i++)
		OK(FRONT(cuLaunchKernel)(
			kernel_get("store"), 0x7fffffff, 1, 1, 1024, 1, 1, 0, NULL, params, NULL));
	device_close();
	CHECK(ob_clock_ns() - start < 30 * OB_SECOND);
}

int main(int argc, char **argv)
{
	return library_main(argc, argv);
}
