/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cuMemAllocAsync and pools: stream order, accounts, and what is refused. */
#include "tests/unit/softapi/api.h"

static cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute attr)
{
	cuuint64_t value = 0;

	OK(FRONT(cuMemPoolGetAttribute)(pool, attr, &value));
	return value;
}

DEVICE_TEST(in_stream_order)
{
	CUmemoryPool pool = NULL;
	CUdeviceptr p = 0, q = 0;
	CUstream s;
	struct gate gate;
	uint32_t seen = 0;

	OK(FRONT(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
	OK(FRONT(cuDeviceGetDefaultMemPool)(&pool, 0));
	gate_set(&gate, s);
	OK(FRONT(cuMemAllocAsync)(&p, 1000, s));
	OK(FRONT(cuMemsetD32Async)(p, 6, 1, s));
	CHECK_INT(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1000);
	OK(FRONT(cuMemAllocAsync)(&q, 16, s));
	OK(FRONT(cuMemcpyDtoDAsync_v2)(q, p, 4, s));
	OK(FRONT(cuMemFreeAsync)(p, s));
	CHECK_INT(FRONT(cuMemFreeAsync)(p, s), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuMemFree_v2)(p), CUDA_ERROR_INVALID_VALUE);
	/* What is freed is out of use at the call; it stays reserved until its turn has come. */
	CHECK_INT(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 16);
	CHECK_INT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 1016);
	gate_open(&gate);
	OK(FRONT(cuStreamSynchronize)(s));
	CHECK_INT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 16);
	CHECK_INT(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1016);
	OK(DTOH(&seen, q, 4));
	CHECK_INT(seen, 6);
	OK(FRONT(cuMemFree_v2)(q)); /* either way of freeing will do */
	CHECK_INT(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	OK(FRONT(cuMemAlloc_v2)(&p, 16));
	OK(FRONT(cuMemFreeAsync)(p, s));
	OK(FRONT(cuStreamSynchronize)(s));
	CHECK_INT(FRONT(cuMemFree_v2)(p), CUDA_ERROR_INVALID_VALUE);
	OK(FRONT(cuStreamDestroy_v2)(s));
}

/* Memory that a queued free will give back is not out of memory. */
DEVICE_TEST(waits_for_frees)
{
	CUdeviceptr p = 0;

	for (int i = 0; i < 20; i++) {
		OK(FRONT(cuMemAllocAsync)(&p, 48 << 20, NULL));
		OK(launch("spin", NULL, 2, 0));
		OK(FRONT(cuMemFreeAsync)(p, NULL));
	}
	OK(FRONT(cuCtxSynchronize)());
	CHECK_INT(FRONT(cuMemAllocAsync)(&p, 65 << 20, NULL), CUDA_ERROR_OUT_OF_MEMORY);
}

DEVICE_TEST(own_pool)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.maxSize = 4096 };
	CUmemoryPool pool = NULL, current = NULL, usual = NULL;
	CUdeviceptr p, q;
	cuuint64_t threshold = 12345, zero = 0;
	int reuse = -1;
	CUmemAccess_flags flags;

	OK(FRONT(cuMemPoolCreate)(&pool, &props));
	OK(FRONT(cuMemAllocFromPoolAsync)(&p, 4000, pool, NULL));
	CHECK_INT(FRONT(cuMemAllocFromPoolAsync)(&q, 100, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	OK(FRONT(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	CHECK_INT(attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 12345);
	OK(FRONT(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
	CHECK_INT(reuse, 1);
	CHECK_INT(FRONT(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero),
		CUDA_ERROR_INVALID_VALUE);
	OK(FRONT(cuMemPoolGetAccess)(&flags, pool, &props.location));
	CHECK_INT(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(FRONT(cuDeviceSetMemPool)(0, pool));
	OK(FRONT(cuDeviceGetMemPool)(&current, 0));
	CHECK(current == pool);
	OK(FRONT(cuMemPoolDestroy)(pool)); /* with memory in it */
	OK(FRONT(cuDeviceGetMemPool)(&current, 0));
	OK(FRONT(cuDeviceGetDefaultMemPool)(&usual, 0));
	CHECK(current == usual);
	CHECK_INT(FRONT(cuMemPoolDestroy)(pool), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(FRONT(cuMemPoolDestroy)(usual), CUDA_ERROR_INVALID_VALUE);
	OK(FRONT(cuMemFreeAsync)(p, NULL));
	OK(FRONT(cuCtxSynchronize)());
}

int main(int argc, char **argv)
{
	setenv("OUTBOARD_SOFT_MEMORY", "64M", 1);
	return library_main(argc, argv);
}
