/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reservations and mappings: the arguments that the front end refuses, which never reach the
 * backend, and what the allocation map holds after each call.
 */
#include "harness.h"

#define PAGE    OBF_VMM_PAGE
#define INVALID CUDA_ERROR_INVALID_VALUE

static CUdeviceptr reserve(size_t size)
{
	CUdeviceptr p = 0;

	OK(obf_cuMemAddressReserve(&p, size, 0, 0, 0));
	CHECK(p != 0);
	return p;
}

static void not_available(void)
{
	CUdeviceptr p = 0;

	GIVES(CUDA_ERROR_NOT_INITIALIZED, obf_cuMemAddressReserve(&p, PAGE, 0, 0, 0));
	GIVES(CUDA_ERROR_NOT_INITIALIZED, obf_cuMemUnmap(0, 0));
	begin();
	fake.no_vmm = true;
	/* before any check of the arguments */
	GIVES(CUDA_ERROR_NOT_SUPPORTED, obf_cuMemAddressReserve(NULL, 1, 0, 0, 0));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, obf_cuMemAddressFree(1, 1));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, obf_cuMemMap(1, 1, 1, 1, 1));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, obf_cuMemUnmap(1, 1));
	fake.no_vmm = false;
	obf_in_host_function = true;
	GIVES(CUDA_ERROR_NOT_PERMITTED, obf_cuMemAddressReserve(&p, PAGE, 0, 0, 0));
	obf_in_host_function = false;
	CHECK(fake.reservations == 0);
}

static void reservations(void)
{
	CUdeviceptr p, q = 0;

	begin();
	p = reserve(4 * PAGE);
	GIVES(INVALID, obf_cuMemAddressReserve(NULL, PAGE, 0, 0, 0));
	GIVES(INVALID, obf_cuMemAddressReserve(&q, 0, 0, 0, 0));
	GIVES(INVALID, obf_cuMemAddressReserve(&q, PAGE + 1, 0, 0, 0));
	GIVES(INVALID, obf_cuMemAddressReserve(&q, PAGE, 3 * PAGE, 0, 0));
	GIVES(INVALID, obf_cuMemAddressReserve(&q, PAGE, 0, p + 1, 0));
	GIVES(INVALID, obf_cuMemAddressReserve(&q, PAGE, 0, 0, 1));
	CHECK(q == 0 && fake.reservations == 1);
	fake.vmm_result = CUDA_ERROR_OUT_OF_MEMORY;
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, obf_cuMemAddressReserve(&q, PAGE, 0, 0, 0));
	fake.vmm_result = CUDA_SUCCESS;
	/* an address that is no multiple of the alignment is no wish */
	OK(obf_cuMemAddressReserve(&q, PAGE, 64 * PAGE, p + 65 * PAGE, 0));
	CHECK(q % (64 * PAGE) == 0);
	OK(obf_cuMemAddressFree(q, PAGE));
	OK(obf_cuMemAddressReserve(&q, PAGE, 0, p + 65 * PAGE, 0));
	CHECK(q == p + 65 * PAGE);
	GIVES(INVALID, obf_cuMemAddressFree(p, PAGE));
	GIVES(INVALID, obf_cuMemAddressFree(p + PAGE, 3 * PAGE));
	OK(obf_cuMemAddressFree(p, 4 * PAGE));
	GIVES(INVALID, obf_cuMemAddressFree(p, 4 * PAGE));
	OK(obf_cuMemAddressFree(q, PAGE));
	CHECK(fake.reservations == 0);
}

static void mappings(void)
{
	struct obf_mem mem;
	CUdeviceptr p;

	begin();
	p = reserve(4 * PAGE);
	GIVES(INVALID, obf_cuMemMap(p, 0, 0, 1, 0));
	GIVES(INVALID, obf_cuMemMap(p, PAGE + 1, 0, 1, 0));
	GIVES(INVALID, obf_cuMemMap(p, PAGE, 1, 1, 0));
	GIVES(INVALID, obf_cuMemMap(p + 1, PAGE, 0, 1, 0));
	GIVES(INVALID, obf_cuMemMap(p, PAGE, 0, 1, 1));
	GIVES(INVALID, obf_cuMemMap(p - PAGE, PAGE, 0, 1, 0));
	GIVES(INVALID, obf_cuMemMap(p + 4 * PAGE, PAGE, 0, 1, 0));
	GIVES(INVALID, obf_cuMemMap(p + PAGE, 4 * PAGE, 0, 1, 0));
	GIVES(INVALID, obf_cuMemMap(p + PAGE, 0 - PAGE, 0, 1, 0));
	CHECK(fake.mappings == 0);
	fake.vmm_result = CUDA_ERROR_MAP_FAILED;
	GIVES(CUDA_ERROR_MAP_FAILED, obf_cuMemMap(p, PAGE, 0, 1, 0));
	CHECK(!obf_mem_find(p, NULL));
	fake.vmm_result = CUDA_SUCCESS;
	/* The fake's handle is the number of the device. */
	OK(obf_cuMemMap(p + PAGE, 2 * PAGE, 0, 1, 0));
	CHECK(obf_mem_find(p + 2 * PAGE, &mem) && mem.base == p + PAGE && mem.size == 2 * PAGE);
	CHECK(mem.joins && mem.device == 1 && mem.ctx == obf_ctx_primary(1));
	GIVES(INVALID, obf_cuMemMap(p, 4 * PAGE, 0, 1, 0));
	GIVES(INVALID, obf_cuMemMap(p + 2 * PAGE, 2 * PAGE, 0, 1, 0));
	OK(obf_cuMemMap(p, PAGE, 0, 0, 0));
	CHECK(fake.mappings == 2);
	GIVES(INVALID, obf_cuMemAddressFree(p, 4 * PAGE));
	GIVES(INVALID, obf_cuMemFree_v2(p));
}

/* Whole mappings only, one or several adjacent ones. */
static void unmapping(void)
{
	CUdeviceptr p;

	begin();
	p = reserve(8 * PAGE);
	OK(obf_cuMemMap(p, PAGE, 0, 0, 0));
	OK(obf_cuMemMap(p + PAGE, 2 * PAGE, 0, 0, 0));
	OK(obf_cuMemMap(p + 4 * PAGE, PAGE, 0, 0, 0));
	GIVES(INVALID, obf_cuMemUnmap(p, 0));
	GIVES(INVALID, obf_cuMemUnmap(p, 2 * PAGE));
	GIVES(INVALID, obf_cuMemUnmap(p + 2 * PAGE, PAGE));
	GIVES(INVALID, obf_cuMemUnmap(p, 4 * PAGE));
	GIVES(INVALID, obf_cuMemUnmap(p, 5 * PAGE));
	GIVES(INVALID, obf_cuMemUnmap(p + 3 * PAGE, PAGE));
	GIVES(INVALID, obf_cuMemUnmap(p, 0 - p));
	GIVES(INVALID, obf_cuMemUnmap(p, UINT64_MAX));
	CHECK(fake.last_unmapped == 0);
	fake.vmm_result = CUDA_ERROR_UNMAP_FAILED;
	GIVES(CUDA_ERROR_UNMAP_FAILED, obf_cuMemUnmap(p, 3 * PAGE));
	CHECK(obf_mem_find(p, NULL) && obf_mem_find(p + PAGE, NULL));
	fake.vmm_result = CUDA_SUCCESS;
	OK(obf_cuMemUnmap(p, 3 * PAGE));
	CHECK(fake.last_unmapped == 3 * PAGE);
	CHECK(!obf_mem_find(p, NULL) && !obf_mem_find(p + PAGE, NULL));
	CHECK(obf_mem_find(p + 4 * PAGE, NULL));
	OK(obf_cuMemUnmap(p + 4 * PAGE, PAGE));
	OK(obf_cuMemAddressFree(p, 8 * PAGE));
}

int main(void)
{
	static const struct test_case cases[] = {
		CASE(not_available),
		CASE(reservations),
		CASE(mappings),
		CASE(unmapping),
	};

	return RUN(cases);
}
