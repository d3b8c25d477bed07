/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Launch checks with CUDA's codes, configurations, parameters packed; occupancy against figures
 * worked out by hand.
 */
#include "front.h"

static struct obf_ctx *ctx;
static struct obf_func *first, *second, *third;
static CUfunction first_handle;

static void load(void)
{
	CUmodule module;
	CUfunction handle;

	begin();
	OK(obf_ctx_enter(&ctx));
	OK(obf_cuModuleLoadData(&module, ptx_text));
	OK(obf_cuModuleGetFunction(&first_handle, module, "first"));
	OK(obf_func_resolve(first_handle, ctx, &first));
	OK(obf_cuModuleGetFunction(&handle, module, "second"));
	OK(obf_func_resolve(handle, ctx, &second));
	OK(obf_cuModuleGetFunction(&handle, module, "third"));
	OK(obf_func_resolve(handle, ctx, &third));
}

static CUresult check(const struct obf_func *func, uint32_t gx, uint32_t gy, uint32_t gz,
	uint32_t bx, uint32_t by, uint32_t bz, uint32_t shared)
{
	struct obf_launch launch = { .grid = { gx, gy, gz },
		.block = { bx, by, bz },
		.dynamic_shared = shared,
		.cluster = { 1, 1, 1 } };

	return obf_launch_check(ctx, func, &launch);
}

TEST(dimensions)
{
	load();
	OK(check(first, 1, 1, 1, 1, 1, 1, 0));
	OK(check(first, 2147483647, 65535, 65535, 1024, 1, 1, 49152));
	OK(check(first, 1, 1, 1, 4, 4, 64, 0));
	for (int i = 0; i < 6; i++) {
		uint32_t d[6] = { 1, 1, 1, 1, 1, 1 };

		d[i] = 0;
		CHECK_INT(check(first, d[0], d[1], d[2], d[3], d[4], d[5], 0),
			CUDA_ERROR_INVALID_VALUE);
	}
	CHECK_INT(check(first, 2147483648u, 1, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(check(first, 1, 65536, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(check(first, 1, 1, 65536, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(check(first, 1, 1, 1, 1, 1, 65, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(check(first, 1, 1, 1, 1025, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(check(first, 1, 1, 1, 33, 32, 1, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(check(first, 1, 1, 1, 65536, 65536, 1, 0), CUDA_ERROR_INVALID_VALUE);
	OK(check(second, 1, 1, 1, 128, 1, 1, 0));
	CHECK_INT(check(second, 1, 1, 1, 129, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	OK(check(third, 1, 1, 1, 64, 2, 1, 0));
	CHECK_INT(check(third, 1, 1, 1, 64, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

/*
 * The host is asked once whether a function can run; it is asked again after a failure that may
 * pass, and not after one that cannot.
 */
TEST(loading)
{
	load();
	CHECK(fake.func_loads == 0);
	fake.func_load_result = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK_INT(check(first, 1, 1, 1, 1, 1, 1, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(check(first, 0, 1, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuFuncLoad(first_handle), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(fake.func_loads == 2);
	fake.func_load_result = CUDA_SUCCESS;
	OK(check(first, 1, 1, 1, 1024, 1, 1, 0));
	OK(check(first, 1, 1, 1, 1024, 1, 1, 0));
	OK(obf_cuFuncLoad(first_handle));
	CHECK(fake.func_loads == 3);
	fake.func_load_result = CUDA_ERROR_INVALID_PTX;
	CHECK_INT(check(second, 1, 1, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_PTX);
	fake.func_load_result = CUDA_SUCCESS;
	CHECK_INT(check(second, 1, 1, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_PTX);
	CHECK(fake.func_loads == 4);
}

TEST(shared_memory)
{
	load();
	CHECK_INT(check(first, 1, 1, 1, 32, 1, 1, 49153), CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuFuncSetAttribute(
		first_handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	OK(check(first, 1, 1, 1, 32, 1, 1, 100000));
	CHECK_INT(check(first, 1, 1, 1, 32, 1, 1, 100001), CUDA_ERROR_INVALID_VALUE);
}

TEST(cooperative)
{
	struct obf_launch launch = { .grid = { 132 * 8, 1, 1 },
		.block = { 256, 1, 1 },
		.cluster = { 1, 1, 1 },
		.cooperative = true };

	load();
	OK(obf_launch_check(ctx, first, &launch));
	launch.grid[0]++;
	CHECK_INT(obf_launch_check(ctx, first, &launch), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	launch.cooperative = false;
	OK(obf_launch_check(ctx, first, &launch));
}

TEST(clusters)
{
	struct obf_launch launch = {
		.grid = { 16, 2, 1 }, .block = { 32, 1, 1 }, .cluster = { 4, 2, 1 }
	};

	load();
	OK(obf_launch_check(ctx, first, &launch));
	launch.grid[0] = 15;
	CHECK_INT(obf_launch_check(ctx, first, &launch), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	launch.grid[0] = 16;
	launch.cluster[0] = 8;
	CHECK_INT(obf_launch_check(ctx, first, &launch), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	OK(obf_cuFuncSetAttribute(
		first_handle, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	OK(obf_launch_check(ctx, first, &launch));
}

/* The kernel's own clusters, when the launch names none. */
TEST(clusters_of_the_kernel)
{
	struct obf_launch launch = { .grid = { 16, 2, 1 }, .block = { 32, 1, 1 } };

	load();
	first->attrs.cluster[0] = 4;
	first->attrs.cluster[1] = 2;
	first->attrs.cluster[2] = 1;
	OK(obf_launch_check(ctx, first, &launch));
	launch.grid[0] = 15;
	CHECK_INT(obf_launch_check(ctx, first, &launch), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	launch.grid[0] = 16;
	launch.cluster[0] = 2;
	launch.cluster[1] = 2;
	CHECK_INT(obf_launch_check(ctx, first, &launch), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	launch.cluster[0] = 4;
	OK(obf_launch_check(ctx, first, &launch));
}

TEST(configurations)
{
	CUlaunchAttribute attrs[4] = {
		{ .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 },
		{ .id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -3 },
		{ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = { 2, 1, 1 } },
		{ .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
			.value.programmaticStreamSerializationAllowed = 1 },
	};
	CUlaunchConfig config = { .gridDimX = 4,
		.gridDimY = 5,
		.gridDimZ = 6,
		.blockDimX = 7,
		.blockDimY = 8,
		.blockDimZ = 9,
		.sharedMemBytes = 10,
		.attrs = attrs,
		.numAttrs = 4 };
	struct obf_launch launch;

	load();
	OK(obf_launch_from_config(&config, &launch));
	CHECK(launch.grid[0] == 4 && launch.grid[1] == 5 && launch.grid[2] == 6 &&
		launch.block[0] == 7 && launch.block[1] == 8 && launch.block[2] == 9 &&
		launch.dynamic_shared == 10);
	CHECK(launch.cooperative && launch.has_priority && launch.priority == -3 &&
		launch.cluster[0] == 2);
	attrs[3].id = (CUlaunchAttributeID)99;
	CHECK_INT(obf_launch_from_config(&config, &launch), CUDA_ERROR_INVALID_VALUE);
	attrs[3].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
	CHECK_INT(obf_launch_from_config(&config, &launch), CUDA_ERROR_NOT_SUPPORTED);
	config.numAttrs = 0;
	OK(obf_launch_from_config(&config, &launch));
	CHECK(!launch.cooperative && launch.cluster[0] == 1);
	CHECK_INT(obf_launch_from_config(NULL, &launch), CUDA_ERROR_INVALID_VALUE);
	config.numAttrs = 1;
	config.attrs = NULL;
	CHECK_INT(obf_launch_from_config(&config, &launch), CUDA_ERROR_INVALID_VALUE);
}

TEST(parameters)
{
	uint64_t a = 0x1122334455667788, c = 0x99aabbccddeeff00;
	uint32_t b = 0x01020304;
	void *params[] = { &a, &b, &c };
	struct {
		uint64_t a;
		uint32_t b, gap;
		uint64_t c, behind;
	} got, want = { 0x1122334455667788, 0x01020304, 0, 0x99aabbccddeeff00, 0xabababababababab };
	size_t size = 24;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &want, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
		CU_LAUNCH_PARAM_END };
	void *half[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &want, CU_LAUNCH_PARAM_END };
	void *odd[] = { (void *)7, &want, CU_LAUNCH_PARAM_END };
	void *endless[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &want, CU_LAUNCH_PARAM_BUFFER_POINTER,
		&want, CU_LAUNCH_PARAM_BUFFER_POINTER, &want, CU_LAUNCH_PARAM_END };

	load();
	CHECK(first->n_params == 3 && first->param_bytes == 24);
	memset(&got, 0xab, sizeof got);
	OK(obf_launch_pack(first, params, NULL, &got));
	CHECK(memcmp(&got, &want, sizeof got) == 0);
	memset(&got, 0xab, sizeof got);
	OK(obf_launch_pack(first, NULL, extra, &got));
	CHECK(memcmp(&got, &want, sizeof got) == 0);
	size = 32;
	OK(obf_launch_pack(first, NULL, extra, &got));
	size = 16; /* what is not passed is 0 */
	memset(&got, 0xab, sizeof got);
	OK(obf_launch_pack(first, NULL, extra, &got));
	CHECK(got.a == a && got.b == b && got.c == 0 && got.behind == want.behind);
	size = 0;
	CHECK_INT(obf_launch_pack(first, NULL, extra, &got), CUDA_ERROR_INVALID_VALUE);
	size = 24;
	CHECK_INT(obf_launch_pack(first, params, extra, &got), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_launch_pack(first, NULL, NULL, &got), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_launch_pack(first, NULL, half, &got), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_launch_pack(first, NULL, odd, &got), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_launch_pack(first, NULL, endless, &got), CUDA_ERROR_INVALID_VALUE);
	params[1] = NULL;
	CHECK_INT(obf_launch_pack(first, params, NULL, &got), CUDA_ERROR_INVALID_VALUE);
	OK(obf_launch_pack(third, NULL, NULL, &got));
}

static int blocks_of(int threads, size_t shared)
{
	int blocks = -1;

	OK(obf_cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, first_handle, threads, shared));
	return blocks;
}

/* 65536 registers, 2048 threads, 32 blocks, 228 KiB with 1 KiB reserved per block. */
TEST(occupancy)
{
	int grid, size, n;
	size_t shared;
	CUlaunchConfig config = { .gridDimX = 8,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 256,
		.blockDimY = 1,
		.blockDimZ = 1 };

	load();
	CHECK(blocks_of(256, 0) == 8); /* threads */
	CHECK(blocks_of(32, 0) == 32); /* blocks */
	CHECK(blocks_of(1024, 0) == 2);
	CHECK(blocks_of(96, 0) == 21);        /* 64 warps / 3 */
	CHECK(blocks_of(256, 48 << 10) == 4); /* 233472 / 50176 */
	CHECK(blocks_of(1025, 0) == 0);
	CHECK(blocks_of(256, 49153) == 0);
	CHECK_INT(obf_cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, first_handle, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuOccupancyMaxPotentialBlockSize(&grid, &size, first_handle, NULL, 0, 0));
	CHECK(size == 1024 && grid == 2 * 132);
	OK(obf_cuOccupancyMaxPotentialBlockSize(&grid, &size, first_handle, NULL, 0, 100));
	CHECK(size == 64 && grid == 32 * 132); /* 2048 threads; 96 would give 2016, 100 only 1600 */
	OK(obf_cuOccupancyAvailableDynamicSMemPerBlock(&shared, first_handle, 2, 256));
	CHECK(shared == 233472 / 2 - 1024);
	CHECK_INT(obf_cuOccupancyAvailableDynamicSMemPerBlock(&shared, first_handle, 9, 256),
		CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuOccupancyMaxPotentialClusterSize(&n, first_handle, &config));
	CHECK(n == 8);
	OK(obf_cuOccupancyMaxActiveClusters(&n, first_handle, &config));
	CHECK(n == 132 * 8);
}

/* Clusters of blocks of which one fills a multiprocessor: six groups of 16 and two of 18. */
TEST(occupancy_clusters)
{
	static const struct {
		unsigned size;
		int clusters;
	} rows[] = { { 1, 132 }, { 2, 66 }, { 4, 32 }, { 6, 18 }, { 8, 16 }, { 10, 8 }, { 16, 8 },
		{ 18, 2 } };
	CUlaunchAttribute attr = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION };
	CUlaunchConfig config = { 720, 1, 1, 1024, 1, 1, 0, NULL, &attr, 1 };
	int n;

	fake.registers = 64;
	load();
	CHECK(blocks_of(1024, 0) == 1);
	attr.value.clusterDim.y = attr.value.clusterDim.z = 1;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		attr.value.clusterDim.x = rows[i].size;
		OK(obf_cuOccupancyMaxActiveClusters(&n, first_handle, &config));
		CHECK_INT(n, rows[i].clusters);
	}
	attr.value.clusterDim.x = 20;
	CHECK_INT(obf_cuOccupancyMaxActiveClusters(&n, first_handle, &config),
		CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

static size_t shared_of(int threads)
{
	return (size_t)threads * 64;
}

TEST(occupancy_registers)
{
	int grid, size;

	fake.registers = 255;
	load();
	CHECK(blocks_of(256, 0) == 1); /* 8192 a warp: 8 warps */
	CHECK(blocks_of(128, 0) == 2);
	CHECK(blocks_of(512, 0) == 0);
	OK(obf_cuOccupancyMaxPotentialBlockSize(&grid, &size, first_handle, shared_of, 0, 0));
	CHECK(size == 256 && grid == 132);
}

TEST(occupancy_register_rounding)
{
	/* 1056 a warp, rounded to 1280: 51 warps, 48 in whole fours */
	fake.registers = 33;
	load();
	CHECK(blocks_of(256, 0) == 6);
	CHECK(blocks_of(64, 0) == 24);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
