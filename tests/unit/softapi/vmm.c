/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Addresses reserved where they are asked for, memory made, mapped, aliased and taken away: as a
 * server does for its clients.
 */
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "tests/unit/softapi/api.h"

#define MIB  ((size_t)1 << 20)
#define UNIT (2 * MIB)
#define BASE 0x200000000000ull

static const CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
};
static const CUmemAccessDesc both_ways = {
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static CUmemGenericAllocationHandle create(size_t size)
{
	CUmemGenericAllocationHandle h = 0;

	OK(CALL(cuMemCreate)(&h, size, &prop, 0));
	return h;
}

static size_t free_now(void)
{
	size_t free_bytes, total;

	OK(FRONT(cuMemGetInfo_v2)(&free_bytes, &total));
	return free_bytes;
}

DEVICE_TEST(granularity)
{
	size_t g = 0;
	int supported = 0;

	OK(FRONT(cuDeviceGetAttribute)(
		&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	CHECK_INT(supported, 1);
	OK(CALL(cuMemGetAllocationGranularity)(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK_INT(g, UNIT);
}

/* The address is the one asked for, unless it is taken. */
static CUdeviceptr requested(void)
{
	CUdeviceptr p = 0, q = 0, r = 0;

	OK(FRONT(cuMemAddressReserve)(&p, 64 * MIB, UNIT, BASE + (1ull << 40), 0));
	if (p != BASE + (1ull << 40))
		printf("the usual window is taken: at %#llx\n", p);
	OK(FRONT(cuMemAddressReserve)(&q, 64 * MIB, 0, p, 0));
	CHECK(q != p && (q + 64 * MIB <= p || q >= p + 64 * MIB));
	OK(FRONT(cuMemAddressFree)(q, 64 * MIB));
	OK(FRONT(cuMemAddressReserve)(&r, UNIT, 0, p - UNIT, 0));
	CHECK(r == p - UNIT);
	OK(FRONT(cuMemAddressFree)(r, UNIT));
	CHECK_INT(FRONT(cuMemAddressReserve)(&r, UNIT + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuMemAddressReserve)(&r, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuMemAddressFree)(p, UNIT), CUDA_ERROR_INVALID_VALUE);
	return p;
}

static void map(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle h)
{
	OK(FRONT(cuMemMap)(at, size, offset, h, 0));
	OK(CALL(cuMemSetAccess)(at, size, &both_ways, 1));
}

static void mapped(CUdeviceptr p)
{
	size_t before = free_now();
	CUmemGenericAllocationHandle a = create(4 * UNIT), b = create(UNIT);
	CUdeviceptr base;
	size_t size;
	unsigned long long flags = 9;
	unsigned char *host = malloc(5 * UNIT);

	CHECK_INT(free_now(), before - 5 * UNIT);
	CHECK_INT(FRONT(cuMemsetD8Async)(p, 1, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(FRONT(cuMemMap)(p, 4 * UNIT, 0, a, 0));
	CHECK_INT(FRONT(cuMemsetD8Async)(p, 1, 1, NULL),
		CUDA_ERROR_INVALID_VALUE); /* no access yet */
	CHECK_INT(FRONT(cuStreamWriteValue32_v2)(NULL, p, 1, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuStreamWaitValue32_v2)(NULL, p, 0, 0), CUDA_ERROR_INVALID_VALUE);
	OK(CALL(cuMemGetAccess)(&flags, &both_ways.location, p));
	CHECK_INT(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(CALL(cuMemSetAccess)(p, 4 * UNIT, &both_ways, 1));
	OK(CALL(cuMemGetAccess)(&flags, &both_ways.location, p));
	CHECK_INT(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	map(p + 4 * UNIT, UNIT, 0, b);
	/* Neighbours are one range to copies and kernels. */
	OK(FRONT(cuMemsetD8Async)(p, 7, 5 * UNIT, NULL));
	OK(launch("store", NULL, p + 4 * UNIT, 0x01010101));
	OK(DTOH(host, p, 5 * UNIT));
	CHECK(host[0] == 7 && host[4 * UNIT - 1] == 7 && host[4 * UNIT] == 1 &&
		host[4 * UNIT + 4] == 7 && host[5 * UNIT - 1] == 7);
	CHECK_INT(FRONT(cuMemsetD8Async)(p, 7, 5 * UNIT + 1, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(FRONT(cuMemGetAddressRange_v2)(&base, &size, p + 4 * UNIT + 5));
	CHECK(base == p + 4 * UNIT && size == UNIT);
	CHECK_INT(FRONT(cuMemMap)(p, UNIT, 0, b, 0), CUDA_ERROR_INVALID_VALUE); /* taken */
	/* more than there is */
	CHECK_INT(FRONT(cuMemMap)(p + 8 * UNIT, 2 * UNIT, 0, b, 0), CUDA_ERROR_INVALID_VALUE);
	/* not reserved */
	CHECK_INT(FRONT(cuMemMap)(p + 64 * MIB, UNIT, 0, b, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuMemUnmap)(p, UNIT), CUDA_ERROR_INVALID_VALUE);           /* a part */
	CHECK_INT(FRONT(cuMemAddressFree)(p, 64 * MIB), CUDA_ERROR_INVALID_VALUE); /* in use */
	/* Memory lives while it is mapped, and goes with the last of handle and mapping. */
	OK(CALL(cuMemRelease)(a));
	CHECK_INT(CALL(cuMemRelease)(a), CUDA_ERROR_INVALID_VALUE);
	OK(DTOH(host, p, 4 * UNIT));
	CHECK(host[UNIT] == 7);
	OK(FRONT(cuMemUnmap)(p, 5 * UNIT));
	CHECK_INT(DTOH(host, p, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(free_now(), before - UNIT);
	OK(CALL(cuMemRelease)(b));
	CHECK_INT(free_now(), before);
	free(host);
}

/* One piece of memory at two addresses; fresh memory is zero. */
static void aliased(CUdeviceptr p)
{
	CUmemGenericAllocationHandle h = create(2 * UNIT);

	map(p, 2 * UNIT, 0, h);
	map(p + 8 * UNIT, UNIT, UNIT, h);
	CHECK_INT(device_u32(p), 0);
	CHECK_INT(device_u32(p + 8 * UNIT), 0);
	OK(FRONT(cuMemsetD32Async)(p + UNIT + 16, 0xcafe, 1, NULL));
	CHECK_INT(device_u32(p + 8 * UNIT + 16), 0xcafe);
	OK(FRONT(cuMemUnmap)(p, 2 * UNIT));
	CHECK_INT(device_u32(p + 8 * UNIT + 16), 0xcafe);
	OK(FRONT(cuMemUnmap)(p + 8 * UNIT, UNIT));
	OK(CALL(cuMemRelease)(h));
}

DEVICE_TEST(full)
{
	CUmemGenericAllocationHandle h = 1, some = create(16 * UNIT);

	CHECK_INT(CALL(cuMemCreate)(&h, 128 * MIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(h, 1);
	OK(CALL(cuMemRelease)(some));
	CHECK_INT(CALL(cuMemCreate)(&h, UNIT / 2, &prop, 0), CUDA_ERROR_INVALID_VALUE);
}

DEVICE_TEST(mappings)
{
	CUdeviceptr p = requested();

	mapped(p);
	aliased(p);
	OK(FRONT(cuMemAddressFree)(p, 64 * MIB));
}

/* A fill that runs is finished before its memory is unmapped. */
DEVICE_TEST(unmapped_during_a_fill)
{
	CUmemGenericAllocationHandle h = create(64 * MIB);
	CUdeviceptr p = requested();

	map(p, 64 * MIB, 0, h);
	for (unsigned i = 0; i < 5; i++) {
		OK(FRONT(cuMemsetD32Async)(p, 100 + i, 16 * MIB, NULL));
		OK(FRONT(cuMemUnmap)(p, 64 * MIB));
		map(p, 64 * MIB, 0, h);
		CHECK_INT(device_u32(p), 100 + i);
		CHECK_INT(device_u32(p + 64 * MIB - 4), 100 + i);
	}
	OK(FRONT(cuMemUnmap)(p, 64 * MIB));
	OK(CALL(cuMemRelease)(h));
	OK(FRONT(cuMemAddressFree)(p, 64 * MIB));
}

static _Atomic bool gate;

static void at_gate(void *user)
{
	(void)user;
	while (!gate)
		sched_yield();
}

/* A fill that cannot run before its memory is unmapped fails as a kernel does. */
DEVICE_TEST(unmapped_before_a_fill)
{
	CUmemGenericAllocationHandle h = create(64 * MIB);
	CUdeviceptr p = requested();

	map(p, 64 * MIB, 0, h);
	OK(FRONT(cuLaunchHostFunc)(NULL, at_gate, NULL));
	OK(FRONT(cuMemsetD32Async)(p, 1, 16 * MIB, NULL));
	OK(FRONT(cuMemUnmap)(p, 64 * MIB));
	gate = true;
	CHECK_INT(FRONT(cuStreamSynchronize)(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(FRONT(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static CUresult create_under(rlim_t limit, const CUmemAllocationProp *p, size_t size)
{
	struct rlimit before, now;
	CUmemGenericAllocationHandle h = 0;

	CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
	now = before;
	now.rlim_cur = limit;
	CHECK(setrlimit(RLIMIT_FSIZE, &now) == 0);
	CUresult result = CALL(cuMemCreate)(&h, size, p, 0);

	CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
	if (!result)
		OK(CALL(cuMemRelease)(h));
	return result;
}

/* Memory that needs a larger file than the process may make: an error, and no signal. */
BARE_TEST(limit_of_file_size)
{
	CUmemAllocationProp shared = prop;

	if (!soft())
		return;
	shared.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	CHECK_INT(create_under(128 * MIB - 1, &prop, UNIT), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(create_under(128 * MIB, &prop, UNIT), CUDA_SUCCESS);
	CHECK_INT(create_under(UNIT, &shared, UNIT), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(create_under(2 * UNIT, &shared, UNIT), CUDA_SUCCESS);
}

int main(int argc, char **argv)
{
	setenv("OUTBOARD_SOFT_MEMORY", "128M", 1);
	test_fds_allowed = 1; /* the memory of the device is a file */
	return library_main(argc, argv);
}
