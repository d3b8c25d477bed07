/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Wrong uses of wgmma and of tensor maps: descriptors, maps, coordinates and blocks that are not
 * valid end the kernel with a text that says why, and no byte outside the tensor changes.
 */
#include "softdevice/core/tensor_map.h"
#include "tests/unit/softcore/device.h"

#define HEADER ".version 8.7\n.target sm_90a\n.address_size 64\n"

/* ---- wgmma ---- */

#define PRODUCT(name, before)                                                                    \
	".visible .entry " name "(.param .u64 a, .param .u64 b) {\n"                             \
	".reg .b64 %l<4>; .reg .f32 %f<4>; .reg .b32 %r<4>; .reg .pred %p<4>;\n"                 \
	".shared .align 1024 .b8 image[4096];\n"                                                 \
	"ld.param.u64 %l1, [a]; ld.param.u64 %l2, [b]; mov.u32 %r1, %tid.x;\n"                   \
	"mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n"       \
	"setp.ne.u32 %p1, %r1, -1;\n" before "\nwgmma.fence.sync.aligned;\n"                     \
	"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %l1, %l2, %p1," \
	" 1, 1, 0, 0;\n"                                                                         \
	"wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\nEND: ret; }\n"

TEST(descriptors_stay_in_shared_memory)
{
	/* the start, the distances, the pattern of the swizzle: each beyond the 4096 bytes */
	static const uint64_t bad[] = { 0x3fff, (4096 - 112) / 16, 0x3fffull << 16, 0x3fffull << 32,
		UINT64_MAX, 1ull << 62 | 0xff, 7ull << 49 | 1ull << 62 | 0xf8 };
	struct obd_program *p = device_load_good(HEADER PRODUCT("k", ""));

	CHECK_INT(device_run(p, "k", 1, 128, (uint64_t[]){ 0, 0 }), CUDA_SUCCESS);
	CHECK_INT(device_run(p, "k", 1, 128, (uint64_t[]){ 0, (4096 - 128) / 16 }),
		CUDA_ERROR_ILLEGAL_ADDRESS); /* its second part is outside */
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		for (int a = 0; a < 2; a++) {
			uint64_t params[2] = { a ? bad[i] : 0, a ? 0 : bad[i] };

			if (!a && bad[i] == 0x3fffull << 32) /* B has one group of rows */
				continue;
			CHECK_INT(device_run(p, "k", 1, 128, params), CUDA_ERROR_ILLEGAL_ADDRESS);
			CHECK(strstr(fault.text, "Invalid __shared__ read of size 16 bytes"));
		}
	device_end(p);
}

TEST(parts_of_a_warpgroup_do_not_hang)
{
	struct obd_program *p = device_load_good(HEADER PRODUCT("whole", "")
			PRODUCT("lane", "setp.eq.u32 %p2, %r1, 5; @%p2 bra END;")
				PRODUCT("warp", "setp.ge.u32 %p2, %r1, 96; @%p2 bra END;"));
	static const uint64_t params[2] = { 0 };

	CHECK_INT(device_run(p, "whole", 1, 100, params), CUDA_ERROR_ILLEGAL_INSTRUCTION);
	CHECK(strstr(fault.text, "fewer than 32 lanes"));
	CHECK_INT(device_run(p, "lane", 1, 128, params), CUDA_ERROR_ILLEGAL_INSTRUCTION);
	CHECK(strstr(fault.text, "fewer than 32 lanes"));
	/* three warps wait for a fourth that has left */
	CHECK_INT(device_run(p, "warp", 1, 128, params), CUDA_ERROR_LAUNCH_FAILED);
	CHECK(strstr(fault.text, "deadlock"));
	device_end(p);
}

/* ---- copies of tiles ---- */

#define TILE(name, text)                                                                       \
	".visible .entry " name                                                                \
	"(.param .u64 map, .param .u32 x, .param .u32 y, .param .u32 to, .param .u32 bar) {\n" \
	".reg .b64 %l<4>; .reg .b32 %r<8>;\n"                                                  \
	".shared .align 1024 .b8 image[4096]; .shared .align 8 .b64 b;\n"                      \
	"ld.param.u64 %l1, [map]; ld.param.u32 %r1, [x]; ld.param.u32 %r2, [y];\n"             \
	"ld.param.u32 %r3, [to]; ld.param.u32 %r4, [bar]; mov.u32 %r5, image;\n"               \
	"add.u32 %r3, %r3, %r5; mov.u32 %r5, b; add.u32 %r4, %r4, %r5;\n"                      \
	"mbarrier.init.shared.b64 [%r5], 1;\n" text "\nret; }\n"
#define LOAD                                                                     \
	TILE("load",                                                             \
		"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::" \
		"complete_tx::bytes [%r3], [%l1, {%r1, %r2}], [%r4];")
#define STORE                                                                                  \
	TILE("store",                                                                          \
		"cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%l1, {%r1, %r2}]" \
		", [%r3];")
#define REDUCE(op)                                                      \
	TILE("reduce_" op,                                              \
		"cp.reduce.async.bulk.tensor.2d.global.shared::cta." op \
		".tile.bulk_group [%l1, {%r1, %r2}], [%r3];")

#define SIDE   16u /* elements of the tile in each direction */
#define WIDTH  40u /* of the tensor */
#define GUARD  4096u
#define TENSOR (WIDTH * WIDTH * 4)

struct params {
	struct obd_tensor_map *map;
	int32_t x, y;
	uint32_t to, bar;
};

static struct obd_program *tiles;
static uint8_t *memory; /* GUARD bytes, the tensor, GUARD bytes */
static struct params now;

static void good(void)
{
	if (!memory) {
		memory = device_take(NULL, TENSOR + 2 * GUARD, 128);
		now.map = device_take(NULL, 128, 128);
	}
	memset(memory, 0x5a, TENSOR + 2 * GUARD);
	memset(now.map, 0, 128);
	*now.map = (struct obd_tensor_map){ .magic = OBD_TENSOR_MAGIC,
		.kind = OBD_TENSOR_TILED,
		.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
		.rank = 2,
		.element_strides = { 1, 1, 1, 1, 1 },
		.address = (uintptr_t)memory + GUARD,
		.last = { WIDTH - 1, WIDTH - 1 },
		.strides16 = { WIDTH * 4 / 16 },
		.box = { SIDE, SIDE } };
	now.x = now.y = 0;
	now.to = now.bar = 0;
}

/* Runs the kernel, which must have the result and name the cause. The guards must be as they were. */
static void run(const char *kernel, CUresult want, const char *cause)
{
	CHECK_INT(device_run(tiles, kernel, 1, 1, &now), want);
	if (cause && !strstr(fault.text, cause))
		fprintf(stderr, "%s\n", fault.text);
	CHECK(!cause || strstr(fault.text, cause));
	for (uint32_t i = 0; i < GUARD; i++)
		CHECK(memory[i] == 0x5a && memory[GUARD + TENSOR + i] == 0x5a);
	good();
}

static void load_tiles(void)
{
	tiles = device_load_good(HEADER LOAD STORE REDUCE("add") REDUCE("inc"));
	good();
}

TEST(coordinates_outside_write_nothing)
{
	static const int32_t far[] = { INT32_MIN, INT32_MIN + 1, -17, -15, -1, WIDTH - 1, WIDTH,
		INT32_MAX - 1, INT32_MAX };
	static const char *const kernels[] = { "load", "store", "reduce_add" };

	load_tiles();
	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; i < 9; i++)
			for (size_t j = 0; j < 9; j++) {
				now.x = far[i];
				now.y = far[j];
				run(kernels[k], CUDA_SUCCESS, NULL);
			}
	device_end(tiles);
}

TEST(tiles_stay_in_shared_memory)
{
	static const uint32_t far[] = { 4096 - 512, 0x7fffff80, 0xffffff80, 0x5000000 };

	load_tiles();
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		now.to = far[i];
		run("load", CUDA_ERROR_ILLEGAL_ADDRESS, "Invalid");
		now.to = far[i];
		run("store", CUDA_ERROR_ILLEGAL_ADDRESS, "Invalid");
	}
	now.map->box[0] = now.map->box[1] = 256; /* 256 KiB */
	run("load", CUDA_ERROR_ILLEGAL_ADDRESS, "Invalid __shared__ write");
	now.bar = 0x7ffff8;
	run("load", CUDA_ERROR_ILLEGAL_ADDRESS, "Invalid");
	now.bar = 4;
	run("load", CUDA_ERROR_MISALIGNED_ADDRESS, "Misaligned __shared__");
	now.to = 64;
	run("load", CUDA_ERROR_MISALIGNED_ADDRESS, "Misaligned __shared__");
	device_end(tiles);
}

TEST(maps_are_checked)
{
	load_tiles();
#define WITH(field, value, cause)                           \
	now.map->field = (value);                           \
	run("load", CUDA_ERROR_ILLEGAL_INSTRUCTION, cause); \
	now.map->field = (value);                           \
	run("store", CUDA_ERROR_ILLEGAL_INSTRUCTION, cause)
	WITH(magic, 0, "not a tensor map");
	WITH(kind, OBD_TENSOR_IM2COL, "not tiled");
	WITH(rank, 3, "its dimension");
	WITH(type, UINT8_MAX, "type, interleaving or swizzle");
	WITH(interleave, 1, "type, interleaving or swizzle");
	WITH(swizzle, UINT8_MAX, "type, interleaving or swizzle");
	WITH(box[0], 0, "box of 0 or more than 256");
	WITH(box[1], 257, "box of 0 or more than 256");
	WITH(element_strides[1], 0, "box of 0 or more than 256");
	WITH(box[0], 3, "multiple of 16 bytes");
	WITH(address, (uintptr_t)memory + GUARD + 4, "address is not a multiple of 16");
#undef WITH
	now.map->address = UINT64_MAX - 15;
	run("load", CUDA_ERROR_ILLEGAL_ADDRESS, "Invalid __global__ read");
	now.map->strides16[0] = UINT32_MAX;
	run("store", CUDA_ERROR_ILLEGAL_ADDRESS, "Invalid __global__ write");
	now.map->type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
	run("reduce_add", CUDA_ERROR_ILLEGAL_INSTRUCTION, "no type for this reduction");
	now.map->type = CU_TENSOR_MAP_DATA_TYPE_INT32;
	run("reduce_inc", CUDA_ERROR_ILLEGAL_INSTRUCTION, "no type for this reduction");
	run("reduce_inc", CUDA_SUCCESS, NULL);
	device_end(tiles);
}

/* ---- addresses of shared::cluster ---- */

TEST(addresses_of_a_cluster_stay_in_shared_memory)
{
	/* beyond the block's memory; blocks that are not there */
	static const uint32_t far[] = { 0x100000, 0x7ffff0, 0x3000000, 0x5000000, 0xf0000000 };
	struct obd_program *p = device_load_good(HEADER
		".visible .entry k(.param .u32 to, .param .u32 bar) { .reg .b32 %r<4>;\n"
		".shared .align 16 .b8 cell[64]; .shared .align 8 .b64 b;\n"
		"ld.param.u32 %r0, [to]; ld.param.u32 %r1, [bar]; mov.u32 %r2, b;\n"
		"add.u32 %r1, %r1, %r2; mbarrier.init.shared.b64 [%r2], 1; mov.u32 %r2, cell;\n"
		"add.u32 %r0, %r0, %r2;\n"
		"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r0], %r2, "
		"[%r1];\nst.shared::cluster.u32 [%r0], %r2;\nret; }\n");

	CHECK_INT(device_run(p, "k", 1, 1, (uint32_t[]){ 0, 0 }), CUDA_SUCCESS);
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++)
		for (int bar = 0; bar < 2; bar++) {
			uint32_t params[2] = { bar ? 0 : far[i], bar ? far[i] : 0 };

			CHECK_INT(device_run(p, "k", 1, 1, params), CUDA_ERROR_ILLEGAL_ADDRESS);
		}
	device_end(p);
}

/* Whatever the bytes are, the kernel ends, with an error of its own if it fails. */
TEST(random_maps_end)
{
	uint64_t seed = 1;

	load_tiles();
	for (int i = 0; i < 2000; i++) {
		uint8_t *bytes = (uint8_t *)now.map;

		for (int k = 0; k < 8; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			bytes[4 + (seed >> 33) % (sizeof(*now.map) - 4)] = (uint8_t)(seed >> 56);
		}
		now.x = (int32_t)(seed >> 20);
		CUresult r = device_run(tiles, "load", 1, 1, &now);

		CHECK(r == CUDA_SUCCESS || fault.text[0]);
		CHECK(r == CUDA_SUCCESS || r == CUDA_ERROR_ILLEGAL_ADDRESS ||
			r == CUDA_ERROR_MISALIGNED_ADDRESS || r == CUDA_ERROR_ILLEGAL_INSTRUCTION);
		good();
	}
	device_end(tiles);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
