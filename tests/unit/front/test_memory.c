/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The allocation map against a model, pointer questions, pinned memory, copies made plain. */
#include <malloc.h>

#include "front/copy.h"
#include "front.h"

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

/* One byte per unit of a small address space says which range holds it. */
TEST(map_against_model)
{
	enum { SPACE = 4096, STEPS = 200000 };
	static uint16_t owner[SPACE]; /* 0 free, else base + 1 */
	static uint64_t ids[SPACE];
	struct obf_mem mem;

	for (int step = 0; step < STEPS; step++) {
		uint32_t base = draw(SPACE), size = 1 + draw(step % 3 ? 16 : 200);
		bool overlaps = base + size > SPACE, found;

		for (uint32_t i = base; !overlaps && i < base + size; i++)
			overlaps = owner[i] != 0;
		switch (draw(3)) {
		case 0:
			if (base + size > SPACE)
				break;
			mem = (struct obf_mem){
				.base = base + 1, .size = size, .kind = OBF_MEM_DEVICE
			};
			CHECK(obf_mem_insert(&mem) == !overlaps);
			if (!overlaps) {
				ids[base] = mem.buffer_id;
				for (uint32_t i = base; i < base + size; i++)
					owner[i] = (uint16_t)(base + 1);
			}
			break;
		case 1:
			found = owner[base] == base + 1;
			CHECK(obf_mem_remove(base + 1, &mem) == found);
			for (uint32_t i = base; found && i < base + mem.size; i++) {
				CHECK(owner[i] == base + 1);
				owner[i] = 0;
			}
			break;
		default:
			found = obf_mem_find(base + 1, &mem);
			CHECK(found == (owner[base] != 0));
			CHECK(!found ||
				(mem.base == owner[base] && mem.buffer_id == ids[mem.base - 1]));
		}
	}
}

TEST(map_edges)
{
	struct obf_mem mem = { .base = 0x1000, .size = 0, .kind = OBF_MEM_DEVICE };

	CHECK(!obf_mem_insert(&mem));
	mem.size = UINT64_MAX;
	CHECK(!obf_mem_insert(&mem));
	mem.size = 0x100;
	CHECK(obf_mem_insert(&mem) && mem.buffer_id != 0);
	CHECK(!obf_mem_remove(0x1001, NULL) && obf_mem_remove(0x1000, NULL) &&
		!obf_mem_remove(0x1000, NULL));
}

TEST(pointers)
{
	CUcontext ctx = begin(), got;
	struct obf_mem mem = { .base = 0x200000000000,
		.size = 4096,
		.kind = OBF_MEM_DEVICE,
		.device = 0,
		.ctx = obf_ctx_primary(0) };
	CUpointer_attribute attrs[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
	unsigned type = 77, managed = 77;
	int ordinal = 77;
	CUdeviceptr addr = 77, base;
	uint64_t id;
	void *data[] = { &type, &addr, &ordinal }, *host;
	size_t size;

	CHECK(obf_mem_insert(&mem));
	OK(obf_cuPointerGetAttributes(3, attrs, data, mem.base + 100));
	CHECK(type == CU_MEMORYTYPE_DEVICE && addr == mem.base + 100 && ordinal == 0);
	OK(obf_cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_CONTEXT, mem.base));
	CHECK(got == ctx);
	OK(obf_cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, mem.base));
	CHECK(id == mem.buffer_id);
	OK(obf_cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, mem.base));
	CHECK(managed == 0);
	OK(obf_cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, mem.base + 4095));
	CHECK(size == 4096);
	CHECK_INT(obf_cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, mem.base),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_P2P_TOKENS, mem.base),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(
		obf_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mem.base + 4096),
		CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuPointerGetAttributes(3, attrs, data, (uintptr_t)&type));
	CHECK(type == 0 && addr == 0 && ordinal == -2);
	OK(obf_cuMemGetAddressRange_v2(&base, &size, mem.base + 5));
	CHECK(base == mem.base && size == 4096);
	OK(obf_cuMemGetAddressRange_v2(NULL, NULL, mem.base));
	CHECK_INT(obf_cuMemGetAddressRange_v2(&base, &size, 5), CUDA_ERROR_NOT_FOUND);
	type = 1;
	OK(obf_cuPointerSetAttribute(&type, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, mem.base));
	OK(obf_cuMemHostAlloc(&host, 100, 0));
	OK(obf_cuPointerGetAttribute(
		&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)host + 99));
	CHECK(type == CU_MEMORYTYPE_HOST);
	OK(obf_cuPointerGetAttribute(&data[0], CU_POINTER_ATTRIBUTE_HOST_POINTER, (uintptr_t)host));
	CHECK(data[0] == host);
}

TEST(pinned)
{
	static char mine[10000];
	CUcontext ctx = begin();
	void *p, *q;
	unsigned flags;
	CUdeviceptr addr, again;
	struct obf_mem mem;

	(void)ctx;
	OK(obf_cuMemHostAlloc(&p, 5000, CU_MEMHOSTALLOC_PORTABLE));
	CHECK(((uintptr_t)p & 4095) == 0 && fake.ranges == 1);
	memset(p, 1, 5000);
	OK(obf_cuMemHostGetFlags(&flags, (char *)p + 4999));
	CHECK(flags == CU_MEMHOSTALLOC_PORTABLE);
	/* Its mirror on the device is made once, and only pinned memory's end ends it. */
	OK(obf_cuMemHostGetDevicePointer_v2(&addr, p, 0));
	OK(obf_cuMemHostGetDevicePointer_v2(&again, (char *)p + 100, 0));
	CHECK(again == addr + 100);
	CHECK_INT(obf_mem_classify(addr, 5000, NULL).kind, OBF_PLACE_DEVICE);
	CHECK_INT(obf_cuMemFree_v2(addr), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuMemHostGetDevicePointer_v2(&again, (char *)p + 5000, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuMemHostAlloc(&q, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuMemHostAlloc(&q, 8, 8), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuMemHostAlloc(&q, 1ull << 60, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(obf_cuMemFreeHost((char *)p + 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuMemHostUnregister(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	OK(obf_cuMemFreeHost(p));
	CHECK(obf_mem_classify(addr, 1, NULL).kind != OBF_PLACE_DEVICE);
	CHECK_INT(obf_cuMemFreeHost(p), CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuMemFreeHost(NULL));
	CHECK(fake.ranges == 0);

	OK(obf_cuMemHostRegister_v2(mine, 5000, 0));
	CHECK_INT(obf_cuMemHostRegister_v2(mine + 4000, 5000, 0),
		CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(obf_cuMemHostRegister_v2(mine + 5000, 5000, CU_MEMHOSTREGISTER_DEVICEMAP));
	CHECK_INT(obf_cuMemHostRegister_v2(&p, 8, CU_MEMHOSTREGISTER_READ_ONLY),
		CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuMemHostRegister_v2(NULL, 8, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuMemFreeHost(mine), CUDA_ERROR_INVALID_VALUE);
	OK(obf_cuMemHostUnregister(mine));
	CHECK_INT(obf_cuMemHostUnregister(mine), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	CHECK_INT(obf_cuMemHostUnregister(mine + 5001), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	/* What is left goes with the context; registered memory stays the program's. */
	OK(obf_cuMemAllocHost_v2(&p, 100));
	CHECK(fake.ranges == 2);
	OK(obf_cuDevicePrimaryCtxReset_v2(0));
	CHECK(fake.ranges == 0 && !obf_mem_find((uintptr_t)p, &mem) &&
		!obf_mem_find((uintptr_t)mine + 6000, &mem));
	mine[6000] = 1;
}

TEST(copies_2d)
{
	static char host[1000];
	struct obf_mem mem = { .base = 0x200000000000, .size = 1000, .kind = OBF_MEM_DEVICE };
	CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = host,
		.srcPitch = 100,
		.srcXInBytes = 3,
		.srcY = 2,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = mem.base,
		.dstPitch = 64,
		.dstXInBytes = 4,
		.dstY = 1,
		.WidthInBytes = 50,
		.Height = 7 };
	struct obf_copy got;

	begin();
	CHECK(obf_mem_insert(&mem));
	OK(obf_copy_from_2d(&copy, &got));
	CHECK(!got.src_device && got.dst_device && got.src == (uintptr_t)host + 203 &&
		got.dst == mem.base + 68);
	CHECK(got.src_pitch == 100 && got.dst_pitch == 64 && got.width == 50 && got.height == 7 &&
		got.depth == 1);
	copy.Height = 15; /* (15 + 1) * 64 > 1000, yet the last row ends at 64 * 15 + 54 > 1000 */
	CHECK_INT(obf_copy_from_2d(&copy, &got), CUDA_ERROR_INVALID_VALUE);
	copy.Height = 14;
	OK(obf_copy_from_2d(&copy, &got));
	copy.WidthInBytes = 61;
	CHECK_INT(
		obf_copy_from_2d(&copy, &got), CUDA_ERROR_INVALID_VALUE); /* wider than the pitch */
	copy.WidthInBytes = 50;
	copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	OK(obf_copy_from_2d(&copy, &got));
	CHECK(got.dst_device);
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	CHECK_INT(obf_copy_from_2d(&copy, &got), CUDA_ERROR_INVALID_VALUE);
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY; /* front/array_copy.c */
	CHECK_INT(obf_copy_from_2d(&copy, &got), CUDA_ERROR_INVALID_VALUE);
	copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.dstDevice = 5;
	CHECK_INT(obf_copy_from_2d(&copy, &got), CUDA_ERROR_INVALID_VALUE);
	copy.dstDevice = mem.base;
	copy.dstY = SIZE_MAX / 32;
	CHECK_INT(obf_copy_from_2d(&copy, &got), CUDA_ERROR_INVALID_VALUE);
	copy.Height = 0;
	OK(obf_copy_from_2d(&copy, &got));
	CHECK(got.height == 0);
	/* One row needs no pitch. */
	copy = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = (uintptr_t)host,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = mem.base,
		.WidthInBytes = 1000,
		.Height = 1 };
	OK(obf_copy_from_2d(&copy, &got));
	CHECK(!got.src_device && got.src == (uintptr_t)host && got.src_pitch == 1000);
}

TEST(copies_3d)
{
	struct obf_mem from = { .base = 0x200000000000, .size = 10000, .kind = OBF_MEM_DEVICE };
	struct obf_mem to = { .base = 0x200000100000, .size = 10000, .kind = OBF_MEM_DEVICE };
	CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = from.base,
		.srcPitch = 40,
		.srcHeight = 10,
		.srcXInBytes = 1,
		.srcY = 2,
		.srcZ = 3,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to.base,
		.dstPitch = 32,
		.dstHeight = 8,
		.WidthInBytes = 30,
		.Height = 5,
		.Depth = 4 };
	struct obf_copy got;

	begin();
	CHECK(obf_mem_insert(&from) && obf_mem_insert(&to));
	OK(obf_copy_from_3d(&copy, &got));
	CHECK(got.src == from.base + 3 * 400 + 2 * 40 + 1 && got.src_slice == 400 &&
		got.dst == to.base && got.dst_slice == 256);
	CHECK(got.depth == 4 && got.src_device && got.dst_device);
	copy.Depth = 23; /* from slice 3: (3 + 22) * 400 + 6 * 40 + 31 is past 10000 */
	CHECK_INT(obf_copy_from_3d(&copy, &got), CUDA_ERROR_INVALID_VALUE);
	copy.Depth = 22;
	OK(obf_copy_from_3d(&copy, &got));
	copy.srcHeight = 6; /* rows 2 to 6 do not fit a slice of six */
	CHECK_INT(obf_copy_from_3d(&copy, &got), CUDA_ERROR_INVALID_VALUE);
	copy.srcHeight = 10;
	copy.srcLOD = 1;
	CHECK_INT(obf_copy_from_3d(&copy, &got), CUDA_ERROR_INVALID_VALUE);
	copy.srcLOD = 0;
	copy.srcZ = SIZE_MAX / 4;
	CHECK_INT(obf_copy_from_3d(&copy, &got), CUDA_ERROR_INVALID_VALUE);
}

/* The kind, the bytes up to the end and the range that the map has for an address. */
static void place_is(uint64_t addr, uint64_t size, enum obf_place_kind kind, uint64_t left,
	const struct obf_mem *mem)
{
	struct obf_mem found = { .buffer_id = 0 };
	struct obf_place place = obf_mem_classify(addr, size, &found);

	CHECK(place.kind == kind && place.left == left);
	CHECK(found.buffer_id == (mem ? mem->buffer_id : 0));
	CHECK(obf_mem_find(addr, NULL) == (mem != NULL));
}

/* Every kind of address: first byte, last byte, one past, and sizes that wrap. */
TEST(places)
{
	struct obf_mem mem = { .base = 0x200000000000, .size = 1000, .kind = OBF_MEM_DEVICE };
	struct obf_mem joined[3];
	struct obf_mem pinned = { .kind = OBF_MEM_HOST, .size = 4096 };
	uint64_t end;
	void *p;

	begin();
	obf_mem_window(mem.base, 1 << 20);
	CHECK(obf_mem_insert(&mem));
	place_is(mem.base, 1000, OBF_PLACE_DEVICE, 1000, &mem);
	place_is(mem.base, 1001, OBF_PLACE_DEVICE, 1000, &mem);
	place_is(mem.base + 999, 1, OBF_PLACE_DEVICE, 1, &mem);
	place_is(mem.base + 999, UINT64_MAX, OBF_PLACE_DEVICE, 1, &mem);
	place_is(mem.base + 1000, 1, OBF_PLACE_UNUSED, 0, NULL);
	place_is(mem.base + (1 << 20) - 1, 2, OBF_PLACE_UNUSED, 0, NULL);
	place_is(mem.base + (1 << 20), 1, OBF_PLACE_HOST, 0, NULL);
	place_is(mem.base - 1, 1, OBF_PLACE_HOST, 0, NULL);
	place_is(0, 1, OBF_PLACE_INVALID, 0, NULL);
	place_is(OBF_HOST_LOWEST - 1, 1, OBF_PLACE_INVALID, 0, NULL);
	place_is(OBF_HOST_LOWEST, 1, OBF_PLACE_HOST, 0, NULL);
	place_is(UINT64_MAX, 2, OBF_PLACE_HOST, 0, NULL);
	OK(obf_cuMemHostAlloc(&p, 4096, 0));
	CHECK(obf_mem_find((uintptr_t)p, &pinned));
	place_is(pinned.base, 4096, OBF_PLACE_PINNED, 4096, &pinned);
	place_is(pinned.base + 4095, UINT64_MAX, OBF_PLACE_PINNED, 1, &pinned);
	/* Two mappings that join, and next to them an allocation that does not. */
	for (unsigned i = 0; i < 3; i++) {
		joined[i] = (struct obf_mem){ .base = mem.base + 0x10000 + i * 0x1000,
			.size = 0x1000,
			.kind = OBF_MEM_DEVICE,
			.joins = i < 2 };
		CHECK(obf_mem_insert(&joined[i]));
	}
	end = joined[2].base;
	place_is(joined[0].base, 1, OBF_PLACE_DEVICE, 0x1000, &joined[0]);
	place_is(joined[0].base, 0x1000, OBF_PLACE_DEVICE, 0x1000, &joined[0]);
	place_is(joined[0].base, 0x1001, OBF_PLACE_DEVICE, 0x2000, &joined[0]);
	place_is(end - 0x1001, UINT64_MAX, OBF_PLACE_DEVICE, 0x1001, &joined[0]);
	place_is(end - 1, 2, OBF_PLACE_DEVICE, 1, &joined[1]);
	place_is(end, UINT64_MAX, OBF_PLACE_DEVICE, 0x1000, &joined[2]);
	/* An allocation with a mapping right behind it. */
	joined[0] = (struct obf_mem){
		.base = end + 0x1000, .size = 0x1000, .kind = OBF_MEM_DEVICE, .joins = true
	};
	CHECK(obf_mem_insert(&joined[0]));
	place_is(end, UINT64_MAX, OBF_PLACE_DEVICE, 0x1000, &joined[2]);
	/* Two mappings with a gap between them. */
	for (unsigned i = 0; i < 2; i++) {
		joined[i] = (struct obf_mem){ .base = mem.base + 0x20000 + i * 0x2000,
			.size = 0x1000,
			.kind = OBF_MEM_DEVICE,
			.joins = true };
		CHECK(obf_mem_insert(&joined[i]));
	}
	place_is(joined[0].base, UINT64_MAX, OBF_PLACE_DEVICE, 0x1000, &joined[0]);
}

/* With unified addressing the address tells where a side lies, whatever the call says. */
TEST(windows_come_and_go)
{
	enum { N = 40 };
	const uint64_t low = 0x200000000000, apart = 2 << 20, size = 1 << 20;

	begin();
	for (uint64_t i = 0; i < N; i++) /* in another order than that of the addresses */
		CHECK(obf_mem_window(low + i * 7 % N * apart, size));
	for (uint64_t i = 0; i < N; i++) {
		place_is(low + i * apart, 1, OBF_PLACE_UNUSED, 0, NULL);
		place_is(low + i * apart + size - 1, 1, OBF_PLACE_UNUSED, 0, NULL);
		place_is(low + i * apart + size, 1, OBF_PLACE_HOST, 0, NULL);
	}
	for (uint64_t i = 0; i < N; i += 2)
		obf_mem_window_end(low + i * apart);
	obf_mem_window_end(low + 1); /* there is none */
	for (uint64_t i = 0; i < N; i++)
		place_is(low + i * apart, 1, i % 2 ? OBF_PLACE_UNUSED : OBF_PLACE_HOST, 0, NULL);
}

TEST(sides)
{
	struct obf_mem mem = { .base = 0x200000000000, .size = 1000, .kind = OBF_MEM_DEVICE };
	static char host[64];
	bool device;
	void *pinned;

	begin();
	obf_mem_window(mem.base, 1 << 20);
	CHECK(obf_mem_insert(&mem));
	OK(obf_cuMemHostAlloc(&pinned, 4096, 0));
	for (int said = 0; said < 2; said++) {
		OK(obf_mem_side(mem.base + 1, 999, said, &device));
		CHECK(device);
		CHECK_INT(
			obf_mem_side(mem.base + 1, 1000, said, &device), CUDA_ERROR_INVALID_VALUE);
		OK(obf_mem_side((uintptr_t)pinned, 4096, said, &device));
		CHECK(!device);
		/* in no allocation, at an address that only device memory has */
		CHECK_INT(
			obf_mem_side(mem.base + 5000, 1, said, &device), CUDA_ERROR_INVALID_VALUE);
		CHECK_INT(obf_mem_side(0, 1, said, &device), CUDA_ERROR_INVALID_VALUE);
		CHECK_INT(obf_mem_side(OBF_HOST_LOWEST - 1, 1, said, &device),
			CUDA_ERROR_INVALID_VALUE);
	}
	/* pinned only at its start: as a parameter that is no CUdeviceptr it is host memory */
	OK(obf_mem_side((uintptr_t)pinned, 4097, false, &device));
	CHECK(!device);
	OK(obf_mem_side((uintptr_t)host, sizeof host, false, &device));
	CHECK(!device);
	CHECK_INT(obf_mem_side((uintptr_t)host, 1, true, &device), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_mem_side((uintptr_t)pinned, 4097, true, &device), CUDA_ERROR_INVALID_VALUE);
}

/* The backend sees no copy of nothing, and no copy that cannot be. */
TEST(copies_that_reach_the_backend)
{
	struct obf_mem mem = { .base = 0x200000000000, .size = 1000, .kind = OBF_MEM_DEVICE };
	CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = mem.base,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = mem.base + 500,
		.WidthInBytes = 10,
		.Height = 1 };

	begin();
	CHECK(obf_mem_insert(&mem));
	OK(obf_cuMemcpy2D_v2(&copy, NULL));
	CHECK(fake.copies == 1 && fake.last_copy.dst == mem.base + 500);
	copy.Height = 0;
	OK(obf_cuMemcpy2D_v2(&copy, NULL));
	OK(obf_cuMemcpyDtoD_v2(mem.base, mem.base, 0, NULL));
	CHECK_INT(obf_cuMemcpy2D_v2(NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(
		obf_cuMemcpyDtoD_v2(mem.base, mem.base + 1, 1000, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuMemcpyDtoD_v2(mem.base, mem.base, 1, (CUstream)0x1234),
		CUDA_ERROR_INVALID_HANDLE);
	CHECK(fake.copies == 1);
}

static int gone;

static void count_gone(const struct obf_mem *mem)
{
	CHECK(mem->ctx == obf_ctx_primary(0));
	gone++;
}

TEST(ranges_of_a_context)
{
	struct obf_mem mem;

	begin();
	for (uint64_t i = 0; i < 1000; i++) {
		mem = (struct obf_mem){ .base = (i + 1) * 0x1000,
			.size = 0x800,
			.kind = OBF_MEM_DEVICE,
			.ctx = obf_ctx_primary(i % 3 ? 0 : 1) };
		CHECK(obf_mem_insert(&mem));
	}
	obf_mem_remove_ctx(obf_ctx_primary(0), count_gone);
	CHECK(gone == 666);
	for (uint64_t i = 0; i < 1000; i++)
		CHECK(obf_mem_find((i + 1) * 0x1000, NULL) == (i % 3 == 0));
}

/* Its memory goes back to its pool, to another one, or to the device, whoever is faster. */
static void *free_all(void *user)
{
	CUdeviceptr *ptrs = user;

	OK(obf_cuCtxSetCurrent(obf_ctx_primary(0)->handle));
	for (int i = 0; i < 64; i++)
		OK(obf_cuMemFreeAsync(ptrs[i], NULL));
	return NULL;
}

TEST(destroyed_pools_are_used_again)
{
	const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUdeviceptr ptrs[64];
	CUmemoryPool pool, last = NULL;
	pthread_t thread;
	size_t before = 0;

	begin();
	for (int round = 0; round < 300; round++) {
		OK(obf_cuMemPoolCreate(&pool, &props));
		CHECK(pool != last);
		for (int i = 0; i < 64; i++)
			OK(obf_cuMemAllocFromPoolAsync(&ptrs[i], 256, pool, NULL));
		CHECK(pthread_create(&thread, NULL, free_all, ptrs) == 0);
		OK(obf_cuMemPoolDestroy(pool));
		CHECK_INT(obf_cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
		pthread_join(thread, NULL);
		last = pool;
		if (round == 20)
			before = mallinfo2().uordblks;
	}
	CHECK(mallinfo2().uordblks < before + 500000);
	for (int i = 0; i < 64; i++)
		CHECK(!obf_mem_find(ptrs[i], NULL));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
