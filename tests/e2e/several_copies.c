/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Copies and fills between the servers, and peers. */
#include "tests/e2e/several.h"

static void peers(void)
{
	int value = -1;

	NEED(cuDeviceGetP2PAttribute(
		&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, sides[1].device));
	EXPECT(value == 0);
	current(0);
	EXPECT_CODE(cuCtxEnablePeerAccess(sides[1].context, 0), ERROR_PEER_ACCESS_UNSUPPORTED);
}

static void copies_row(unsigned from, size_t size)
{
	const struct side *src = &sides[from], *dst = &sides[!from];

	refill(from);
	NEED(cuMemcpyPeer(dst->memory, dst->context, src->memory, src->context, size));
	EXPECT(holds(!from, size));
	for (unsigned at = 0; at < 2; at++) {
		refill(from);
		current(at);
		NEED(cuMemcpyDtoD_v2(dst->memory, src->memory, size));
		EXPECT(holds(!from, size));
		refill(from);
		current(at);
		NEED(cuMemcpy(dst->memory, src->memory, size));
		EXPECT(holds(!from, size));
		refill(from);
		current(at);
		NEED(cuMemcpyDtoDAsync_v2(dst->memory, src->memory, size, sides[at].stream));
		NEED(cuStreamSynchronize(sides[at].stream));
		EXPECT(holds(!from, size));
		refill(from);
		current(at);
		NEED(cuMemcpyPeerAsync(dst->memory, dst->context, src->memory, src->context, size,
			sides[at].stream));
		NEED(cuStreamSynchronize(sides[at].stream));
		EXPECT(holds(!from, size));
	}
}

/* Calls about one side's memory while the other side's context is current. */
static void copies_elsewhere(unsigned side, size_t size)
{
	CUdeviceptr memory = sides[side].memory;

	pattern_set(77);
	current(!side);
	NEED(cuMemcpyHtoD_v2(memory, pattern, size));
	EXPECT(holds(side, size));
	pattern_set(78);
	current(!side);
	NEED(cuMemcpyHtoDAsync_v2(memory, pattern, size, sides[!side].stream));
	memset(back, 0, size);
	NEED(cuMemcpyDtoHAsync_v2(back, memory, size, sides[!side].stream));
	NEED(cuStreamSynchronize(sides[!side].stream));
	EXPECT(memcmp(back, pattern, size) == 0);
	NEED(cuMemsetD8_v2(memory, 9, size));
	memset(pattern, 9, size);
	EXPECT(holds(side, size));
}

/* A box of a pitched array of rows to another place of another one. */
static void copies_box(unsigned from, size_t width, size_t height, size_t depth)
{
	const size_t pitch = width + 13, rows = height + 2;
	CUDA_MEMCPY3D_PEER c = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = sides[from].memory,
		.srcContext = sides[from].context,
		.srcPitch = pitch,
		.srcHeight = rows,
		.srcXInBytes = 3,
		.srcY = 1,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = sides[!from].memory,
		.dstContext = sides[!from].context,
		.dstPitch = pitch + 5,
		.dstHeight = rows,
		.dstXInBytes = 2,
		.dstY = 2,
		.WidthInBytes = width,
		.Height = height,
		.Depth = depth };
	size_t all = (pitch + 5) * rows * depth, bad = 0;

	refill(from);
	NEED(cuMemcpy3DPeer(&c));
	current(!from);
	NEED(cuMemcpyDtoH_v2(back, sides[!from].memory, all));
	for (size_t i = 0; i < all; i++) {
		size_t x = i % (pitch + 5), y = i / (pitch + 5) % rows, z = i / (pitch + 5) / rows;
		bool inside = x >= 2 && x < 2 + width && y >= 2 && y < 2 + height;
		uint8_t want = inside ? pattern[(z * rows + y - 2 + 1) * pitch + x - 2 + 3] : 0x55;

		bad += back[i] != want;
	}
	EXPECT(bad == 0);
}

static void copies_batch(void)
{
	CUdeviceptr dsts[] = { sides[1].memory, sides[1].memory + 5000, sides[0].memory + 65536 };
	CUdeviceptr srcs[] = { sides[0].memory, sides[0].memory + 5000, sides[0].memory };
	size_t sizes[] = { 5000, 4000, 100 }, first = 0;
	CUmemcpyAttributes attributes = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };

	refill(0);
	current(0);
	NEED(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 3, &attributes, &first, 1, sides[0].stream));
	NEED(cuStreamSynchronize(sides[0].stream));
	EXPECT(holds(1, 9000));
}

/* Pinned memory of one side is a source and a destination of copies of both. */
static void copies_pinned(void)
{
	uint8_t *pinned;

	current(0);
	NEED(cuMemHostAlloc((void **)&pinned, LARGE, CU_MEMHOSTALLOC_PORTABLE));
	pattern_set(5);
	for (unsigned i = 0; i < 2; i++) {
		memcpy(pinned, pattern, LARGE);
		current(i);
		NEED(cuMemcpyHtoDAsync_v2(sides[i].memory, pinned, LARGE, sides[i].stream));
		NEED(cuStreamSynchronize(sides[i].stream));
		memset(pinned, 0, LARGE);
		NEED(cuMemcpyDtoHAsync_v2(pinned, sides[i].memory, LARGE, sides[i].stream));
		NEED(cuStreamSynchronize(sides[i].stream));
		EXPECT(memcmp(pinned, pattern, LARGE) == 0);
	}
}

/* Memory of cuMemCreate on one side, made and mapped while the other side is current. */
static void copies_mapped(unsigned side)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, sides[side].device } };
	CUmemAccessDesc access = { .location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemAccessDesc other = access;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	size_t size;

	current(!side);
	NEED(cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	NEED(cuMemCreate(&handle, size, &prop, 0));
	current(side); /* an address belongs to the server of the current context */
	NEED(cuMemAddressReserve(&at, size, 0, 0, 0));
	current(!side);
	NEED(cuMemMap(at, size, 0, handle, 0));
	other.location.id = sides[!side].device;
	EXPECT_CODE(cuMemSetAccess(at, size, &other, 1), ERROR_NOT_SUPPORTED);
	NEED(cuMemSetAccess(at, size, &access, 1));
	NEED(cuMemRelease(handle));
	pattern_set(60 + side);
	NEED(cuMemcpyHtoD_v2(at, pattern, 70000));
	memset(back, 0, 70000);
	NEED(cuMemcpyDtoH_v2(back, at, 70000));
	EXPECT(memcmp(back, pattern, 70000) == 0);
	NEED(cuMemUnmap(at, size));
	NEED(cuMemCreate(&handle, size, &prop, 0));
	NEED(cuMemAddressReserve(&at, size, 0, 0, 0));
	EXPECT_CODE(cuMemMap(at, size, 0, handle, 0), ERROR_NOT_SUPPORTED);
	NEED(cuMemRelease(handle));
}

void several_copies(void)
{
	static const size_t sizes[] = { 1, 4096, 100001, (2u << 20) + 1, LARGE };

	for (unsigned from = 0; from < 2; from++) {
		for (size_t i = 0; i < ob_count(sizes); i++) {
			copies_row(from, sizes[i]);
			copies_elsewhere(from, sizes[i]);
		}
		copies_box(from, 100, 7, 3);
		copies_box(from, 5000, 300, 2);
		copies_box(from, (2u << 20) + 100, 2, 1);
		copies_mapped(from);
	}
	copies_batch();
	copies_pinned();
	peers();
}
