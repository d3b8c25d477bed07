/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reservations and mappings: the arguments that the front end refuses, which never reach the
 * backend, and what the allocation map holds after each call.
 */
#include "front.h"

#define PAGE    OBF_VMM_PAGE
#define INVALID CUDA_ERROR_INVALID_VALUE

static CUdeviceptr reserve(size_t size)
{
	CUdeviceptr p = 0;

	OK(obf_cuMemAddressReserve(&p, size, 0, 0, 0));
	CHECK(p != 0);
	return p;
}

TEST(not_available)
{
	CUdeviceptr p = 0;

	CHECK_INT(obf_cuMemAddressReserve(&p, PAGE, 0, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_INT(obf_cuMemUnmap(0, 0), CUDA_ERROR_NOT_INITIALIZED);
	begin();
	fake.no_vmm = true;
	/* before any check of the arguments */
	CHECK_INT(obf_cuMemAddressReserve(NULL, 1, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuMemAddressFree(1, 1), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuMemMap(1, 1, 1, 1, 1), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obf_cuMemUnmap(1, 1), CUDA_ERROR_NOT_SUPPORTED);
	fake.no_vmm = false;
	obf_in_host_function = true;
	CHECK_INT(obf_cuMemAddressReserve(&p, PAGE, 0, 0, 0), CUDA_ERROR_NOT_PERMITTED);
	obf_in_host_function = false;
	CHECK(fake.reservations == 0);
}

TEST(reservations)
{
	CUdeviceptr p, q = 0;

	begin();
	p = reserve(4 * PAGE);
	CHECK_INT(obf_cuMemAddressReserve(NULL, PAGE, 0, 0, 0), INVALID);
	CHECK_INT(obf_cuMemAddressReserve(&q, 0, 0, 0, 0), INVALID);
	CHECK_INT(obf_cuMemAddressReserve(&q, PAGE + 1, 0, 0, 0), INVALID);
	CHECK_INT(obf_cuMemAddressReserve(&q, PAGE, 3 * PAGE, 0, 0), INVALID);
	CHECK_INT(obf_cuMemAddressReserve(&q, PAGE, 0, p + 1, 0), INVALID);
	CHECK_INT(obf_cuMemAddressReserve(&q, PAGE, 0, 0, 1), INVALID);
	CHECK(q == 0 && fake.reservations == 1);
	fake.vmm_result = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK_INT(obf_cuMemAddressReserve(&q, PAGE, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
	fake.vmm_result = CUDA_SUCCESS;
	/* an address that is no multiple of the alignment is no wish */
	OK(obf_cuMemAddressReserve(&q, PAGE, 64 * PAGE, p + 65 * PAGE, 0));
	CHECK(q % (64 * PAGE) == 0);
	OK(obf_cuMemAddressFree(q, PAGE));
	OK(obf_cuMemAddressReserve(&q, PAGE, 0, p + 65 * PAGE, 0));
	CHECK(q == p + 65 * PAGE);
	CHECK_INT(obf_cuMemAddressFree(p, PAGE), INVALID);
	CHECK_INT(obf_cuMemAddressFree(p + PAGE, 3 * PAGE), INVALID);
	OK(obf_cuMemAddressFree(p, 4 * PAGE));
	CHECK_INT(obf_cuMemAddressFree(p, 4 * PAGE), INVALID);
	OK(obf_cuMemAddressFree(q, PAGE));
	CHECK(fake.reservations == 0);
}

TEST(mappings)
{
	struct obf_mem mem;
	CUdeviceptr p;

	begin();
	p = reserve(4 * PAGE);
	CHECK_INT(obf_cuMemMap(p, 0, 0, 1, 0), INVALID);
	CHECK_INT(obf_cuMemMap(p, PAGE + 1, 0, 1, 0), INVALID);
	CHECK_INT(obf_cuMemMap(p, PAGE, 1, 1, 0), INVALID);
	CHECK_INT(obf_cuMemMap(p + 1, PAGE, 0, 1, 0), INVALID);
	CHECK_INT(obf_cuMemMap(p, PAGE, 0, 1, 1), INVALID);
	CHECK_INT(obf_cuMemMap(p - PAGE, PAGE, 0, 1, 0), INVALID);
	CHECK_INT(obf_cuMemMap(p + 4 * PAGE, PAGE, 0, 1, 0), INVALID);
	CHECK_INT(obf_cuMemMap(p + PAGE, 4 * PAGE, 0, 1, 0), INVALID);
	CHECK_INT(obf_cuMemMap(p + PAGE, 0 - PAGE, 0, 1, 0), INVALID);
	CHECK(fake.mappings == 0);
	fake.vmm_result = CUDA_ERROR_MAP_FAILED;
	CHECK_INT(obf_cuMemMap(p, PAGE, 0, 1, 0), CUDA_ERROR_MAP_FAILED);
	CHECK(!obf_mem_find(p, NULL));
	fake.vmm_result = CUDA_SUCCESS;
	/* The fake's handle is the number of the device. */
	OK(obf_cuMemMap(p + PAGE, 2 * PAGE, 0, 1, 0));
	CHECK(obf_mem_find(p + 2 * PAGE, &mem) && mem.base == p + PAGE && mem.size == 2 * PAGE);
	CHECK(mem.joins && mem.device == 1 && mem.ctx == obf_ctx_primary(1));
	CHECK_INT(obf_cuMemMap(p, 4 * PAGE, 0, 1, 0), INVALID);
	CHECK_INT(obf_cuMemMap(p + 2 * PAGE, 2 * PAGE, 0, 1, 0), INVALID);
	OK(obf_cuMemMap(p, PAGE, 0, 0, 0));
	CHECK(fake.mappings == 2);
	CHECK_INT(obf_cuMemAddressFree(p, 4 * PAGE), INVALID);
	CHECK_INT(obf_cuMemFree_v2(p), INVALID);
}

/* Whole mappings only, one or several adjacent ones. */
TEST(unmapping)
{
	CUdeviceptr p;

	begin();
	p = reserve(8 * PAGE);
	OK(obf_cuMemMap(p, PAGE, 0, 0, 0));
	OK(obf_cuMemMap(p + PAGE, 2 * PAGE, 0, 0, 0));
	OK(obf_cuMemMap(p + 4 * PAGE, PAGE, 0, 0, 0));
	CHECK_INT(obf_cuMemUnmap(p, 0), INVALID);
	CHECK_INT(obf_cuMemUnmap(p, 2 * PAGE), INVALID);
	CHECK_INT(obf_cuMemUnmap(p + 2 * PAGE, PAGE), INVALID);
	CHECK_INT(obf_cuMemUnmap(p + 2 * PAGE, 2 * PAGE), INVALID);
	CHECK_INT(obf_cuMemUnmap(p, 4 * PAGE), INVALID);
	CHECK_INT(obf_cuMemUnmap(p, 5 * PAGE), INVALID);
	CHECK_INT(obf_cuMemUnmap(p + 3 * PAGE, PAGE), INVALID);
	CHECK_INT(obf_cuMemUnmap(p, 0 - p), INVALID);
	CHECK_INT(obf_cuMemUnmap(p, UINT64_MAX), INVALID);
	CHECK(fake.last_unmapped == 0);
	fake.vmm_result = CUDA_ERROR_UNMAP_FAILED;
	CHECK_INT(obf_cuMemUnmap(p, 3 * PAGE), CUDA_ERROR_UNMAP_FAILED);
	CHECK(obf_mem_find(p, NULL) && obf_mem_find(p + PAGE, NULL));
	fake.vmm_result = CUDA_SUCCESS;
	OK(obf_cuMemUnmap(p, 3 * PAGE));
	CHECK(fake.last_unmapped == 3 * PAGE);
	CHECK(!obf_mem_find(p, NULL) && !obf_mem_find(p + PAGE, NULL));
	CHECK(obf_mem_find(p + 4 * PAGE, NULL));
	OK(obf_cuMemUnmap(p + 4 * PAGE, PAGE));
	OK(obf_cuMemAddressFree(p, 8 * PAGE));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
