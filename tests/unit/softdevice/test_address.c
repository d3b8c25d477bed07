/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_address_classify for every kind of address: the first byte, the last byte, one past the end,
 * and sizes that wrap. The program contains the software device's objects.
 */
#include <stdint.h>

#include "base/check.h"
#include "front/front.h"
#include "protocol/obd_locals.h"
#include "protocol/obf_calls.h"
#include "softdevice/address.h"
#include "softdevice/alloc.h"
#include "softdevice/chunk.h"
#include "softdevice/mapping.h"
#include "softdevice/memory.h"
#include "softdevice/scratch.h"
#include "softdevice/window.h"
#include "tests/test.h"

#define OK(call) CHECK_INT(call, CUDA_SUCCESS)

static struct obd_ctx *device_open(void)
{
	CUcontext context;

	OK(obf_cuInit(0));
	OK(obf_cuDevicePrimaryCtxRetain(&context, 0));
	OK(obf_cuCtxSetCurrent(context));
	return obf_ctx_primary(0)->backend;
}

static void classified(uint64_t addr, uint64_t size, enum obd_address_kind kind, uint64_t left)
{
	struct obd_address at = obd_address_classify(addr, size);

	CHECK_INT(at.kind, kind);
	CHECK(at.left == left);
}

/* What copies and kernels may do with [addr, addr + size). */
static void usable(uint64_t addr, uint64_t size, bool copies, bool kernels)
{
	CHECK_INT(obd_address_check(addr, size), copies ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obd_address_kernel_may_access(addr, size), kernels);
}

/* One piece of memory of `size` bytes at base, with nothing behind it. */
static void piece(
	uint64_t base, uint64_t size, enum obd_address_kind kind, bool copies, bool kernels)
{
	classified(base, 1, kind, size);
	classified(base, size, kind, size);
	classified(base, size + 1, kind, size);
	classified(base, UINT64_MAX, kind, size);
	classified(base + size - 1, 1, kind, 1);
	classified(base + size - 1, UINT64_MAX, kind, 1);
	classified(base + size, 1, OBD_ADDRESS_UNUSED, 0);
	usable(base, size, copies, kernels);
	usable(base + size - 1, 1, copies, kernels);
	usable(base, size + 1, false, false);
	usable(base + size - 1, 2, false, false);
	usable(base + size - 1, UINT64_MAX, false, false);
	usable(base + 1, 0 - base, false, false);
	usable(base + size, 1, false, false);
}

TEST(allocations)
{
	static const size_t sizes[] = { 1, 255, 256, 257, OBD_SMALL_MAX - 1, OBD_SMALL_MAX,
		OBD_SMALL_MAX + 1, OBD_UNIT - OBD_PAGE, OBD_UNIT, 3 * OBD_UNIT + 5 };

	device_open();
	for (unsigned i = 0; i < ob_count(sizes); i++) {
		CUdeviceptr p;

		OK(obf_cuMemAlloc_v2(&p, sizes[i]));
		piece(p, sizes[i], OBD_ADDRESS_MEMORY, true, true);
		CHECK(obd_address_classify(p, 1).alloc->span.base == p);
		OK(obf_cuMemFree_v2(p));
		classified(p, 1, OBD_ADDRESS_UNUSED, 0);
		usable(p, 1, false, false);
	}
}

TEST(memory_of_modules_and_kernels)
{
	struct obd_ctx *ctx = device_open();
	void *global = obd_memory_env_alloc(ctx, 100, 16), *heap = obd_memory_heap_alloc(ctx, 100);
	void *scratch = obd_scratch_alloc(NULL, 2 * OBD_SCRATCH_SMALL_MAX, 16);

	CHECK(global && heap && scratch);
	piece((uint64_t)global, 100, OBD_ADDRESS_MEMORY, true, true);
	CHECK_INT(obd_address_classify((uint64_t)global, 1).alloc->kind, OBD_ALLOC_GLOBAL);
	piece((uint64_t)heap, 100, OBD_ADDRESS_HEAP, false, true);
	piece((uint64_t)scratch, 2 * OBD_SCRATCH_SMALL_MAX, OBD_ADDRESS_SCRATCH, false, true);
	/* only the kind for which they are meant frees them */
	obd_memory_env_free(ctx, heap);
	obd_memory_heap_free(ctx, global);
	obd_memory_heap_free(ctx, (char *)heap + 1);
	classified((uint64_t)global, 1, OBD_ADDRESS_MEMORY, 100);
	classified((uint64_t)heap, 1, OBD_ADDRESS_HEAP, 100);
	obd_memory_env_free(ctx, global);
	obd_memory_heap_free(ctx, heap);
	obd_scratch_free(NULL, scratch, 2 * OBD_SCRATCH_SMALL_MAX);
	classified((uint64_t)global, 1, OBD_ADDRESS_UNUSED, 0);
	classified((uint64_t)heap, 1, OBD_ADDRESS_UNUSED, 0);
}

TEST(mappings)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
	const CUmemAccessDesc access = { .location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle;
	CUdeviceptr p;

	device_open();
	OK(obf_cuMemAddressReserve(&p, 8 * OBD_UNIT, 0, 0, 0));
	classified(p, 1, OBD_ADDRESS_UNUSED, 0);
	OK(obd_cuMemCreate(&handle, OBD_UNIT, &prop, 0));
	for (unsigned i = 0; i < 3; i++)
		OK(obf_cuMemMap(p + i * OBD_UNIT, OBD_UNIT, 0, handle, 0));
	classified(p, UINT64_MAX, OBD_ADDRESS_NO_ACCESS, OBD_UNIT);
	usable(p, 1, false, false);
	OK(obd_cuMemSetAccess(p, 2 * OBD_UNIT, &access, 1));
	/* two mappings with access, followed by one without */
	classified(p, 1, OBD_ADDRESS_MAPPED, OBD_UNIT);
	classified(p, OBD_UNIT, OBD_ADDRESS_MAPPED, OBD_UNIT);
	classified(p, OBD_UNIT + 1, OBD_ADDRESS_MAPPED, 2 * OBD_UNIT);
	classified(p + 1, UINT64_MAX, OBD_ADDRESS_MAPPED, 2 * OBD_UNIT - 1);
	classified(p + 2 * OBD_UNIT - 1, 2, OBD_ADDRESS_MAPPED, 1);
	classified(p + 2 * OBD_UNIT, 1, OBD_ADDRESS_NO_ACCESS, OBD_UNIT);
	classified(p + 3 * OBD_UNIT, 1, OBD_ADDRESS_UNUSED, 0);
	usable(p, 2 * OBD_UNIT, true, true);
	usable(p, 2 * OBD_UNIT + 1, false, false);
	usable(p + OBD_UNIT, 0 - (p + OBD_UNIT) + 1, false, false);
	OK(obd_cuMemSetAccess(p + 2 * OBD_UNIT, OBD_UNIT, &access, 1));
	/* now followed by nothing */
	classified(p, UINT64_MAX, OBD_ADDRESS_MAPPED, 3 * OBD_UNIT);
	CHECK(obd_address_classify(p + OBD_UNIT + 5, 1).mapping->span.base == p + OBD_UNIT);
	OK(obf_cuMemUnmap(p, 3 * OBD_UNIT));
	classified(p, 1, OBD_ADDRESS_UNUSED, 0);
	OK(obd_cuMemRelease(handle));
	OK(obf_cuMemAddressFree(p, 8 * OBD_UNIT));
}

TEST(window_and_host_memory)
{
	uint64_t end, pageable;
	static char bytes[64];
	void *p;

	device_open();
	end = obd_window.base + obd_window.size;
	classified(obd_window.base, 1, OBD_ADDRESS_UNUSED, 0);
	classified(end - 1, UINT64_MAX, OBD_ADDRESS_UNUSED, 0);
	classified(end, 1, OBD_ADDRESS_HOST, 0);
	classified(obd_window.base - 1, 2, OBD_ADDRESS_HOST, 0);
	classified(0, 1, OBD_ADDRESS_INVALID, 0);
	classified(OBF_HOST_LOWEST - 1, 1, OBD_ADDRESS_INVALID, 0);
	classified(OBF_HOST_LOWEST, 1, OBD_ADDRESS_HOST, 0);
	classified(UINT64_MAX, 2, OBD_ADDRESS_HOST, 0);
	pageable = (uintptr_t)bytes;
	classified(pageable, sizeof bytes, OBD_ADDRESS_HOST, 0);
	usable(pageable, 1, false, false);
	CHECK_INT(obd_address_check(pageable, 0), CUDA_SUCCESS);
	OK(obf_cuMemHostRegister_v2(bytes, sizeof bytes, 0));
	classified(pageable, UINT64_MAX, OBD_ADDRESS_PINNED, sizeof bytes);
	classified(pageable + sizeof bytes - 1, 1, OBD_ADDRESS_PINNED, 1);
	classified(pageable + sizeof bytes, 1, OBD_ADDRESS_HOST, 0);
	usable(pageable, 1, false, false);
	OK(obf_cuMemHostUnregister(bytes));
	classified(pageable, 1, OBD_ADDRESS_HOST, 0);
	OK(obf_cuMemHostAlloc(&p, 5000, 0));
	classified((uint64_t)p, 1, OBD_ADDRESS_PINNED, 5000);
	OK(obf_cuMemFreeHost(p));
}

int main(int argc, char **argv)
{
	test_fds_allowed = 1; /* the file that backs a device's memory */
	return test_main(argc, argv);
}
