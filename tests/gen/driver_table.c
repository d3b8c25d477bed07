/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Tests the server's driver table: binding to a library that lacks a function, which calls and
 * results a layer sees and which result it may return itself, and that the handles of the null
 * driver differ.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/obs_null.h"
#include "tests/test.h"

static const char *lacking; /* the function that this test's library lacks. NULL: none */
static unsigned asked;

static CUresult any(void)
{
	return CUDA_ERROR_ASSERT;
}

static void *find(void *ctx, const char *name)
{
	CUresult (*entry)(void) = any;
	void *ret;
	CHECK(ctx == &asked);
	asked++;
	if (lacking && !strcmp(name, lacking))
		return NULL;
	memcpy(&ret, &entry, sizeof(ret));
	return ret;
}

static unsigned index_of(const char *name)
{
	for (unsigned i = 0; i < OBS_DRIVER_CALLS; i++)
		if (!strcmp(obs_driver_names[i], name))
			return i;
	fprintf(stderr, "the table has no %s\n", name);
	exit(1);
}

TEST(bind)
{
	struct obs_driver drv;
	asked = 0;
	CHECK(obs_driver_bind(&drv, find, &asked) == 0 && asked == OBS_DRIVER_CALLS);
	CHECK(drv.cuInit(0) == CUDA_ERROR_ASSERT && obs_driver_has(&drv, index_of("cuInit")));
	lacking = "cuMemMap";
	CHECK(obs_driver_bind(&drv, find, &asked) == 1);
	CHECK(drv.cuMemMap(0, 0, 0, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
	CHECK(!obs_driver_has(&drv, index_of("cuMemMap")) &&
		obs_driver_has(&drv, index_of("cuMemUnmap")));
	CHECK(!obs_driver_has(&drv, OBS_DRIVER_CALLS));
	CHECK(drv.cuMemUnmap(0, 0) == CUDA_ERROR_ASSERT);
}

static unsigned before_call, after_call, n_before, n_after;
static CUresult before_answer, after_saw;

static CUresult before(unsigned call)
{
	before_call = call;
	n_before++;
	return before_answer;
}

static void after(unsigned call, CUresult result)
{
	after_call = call;
	after_saw = result;
	n_after++;
}

TEST(layers)
{
	static const struct obs_layer_hooks both = { before, after }, none = { NULL, NULL };
	struct obs_driver inner, outer;
	CUstream stream = NULL;
	obs_layer_wrap(&inner, 0, &obs_null_driver, &both);
	obs_layer_wrap(&outer, 1, &inner, &none);
	CHECK(outer.cuStreamCreate(&stream, 0) == CUDA_SUCCESS && stream);
	CHECK(n_before == 1 && n_after == 1 && after_saw == CUDA_SUCCESS);
	CHECK(before_call == index_of("cuStreamCreate") && after_call == before_call);
	before_answer = CUDA_ERROR_OUT_OF_MEMORY;
	stream = NULL;
	CHECK(outer.cuStreamCreate(&stream, 0) == CUDA_ERROR_OUT_OF_MEMORY && !stream);
	CHECK(n_after == 2 && after_saw == CUDA_ERROR_OUT_OF_MEMORY);
	before_answer = CUDA_SUCCESS;
	CHECK(outer.cuCtxSynchronize() == CUDA_SUCCESS &&
		before_call == index_of("cuCtxSynchronize"));
}

TEST(null)
{
	CUstream a, b;
	size_t free = 7, total = 7;
	char name[8] = "1234567";
	CHECK(obs_null_driver.cuStreamCreate(&a, 0) == CUDA_SUCCESS &&
		obs_null_driver.cuStreamCreate(&b, 0) == CUDA_SUCCESS);
	CHECK(a && b && a != b);
	CHECK(obs_null_driver.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS && free == 0 &&
		total == 0);
	CHECK(obs_null_driver.cuDeviceGetName(name, 4, 0) == CUDA_SUCCESS &&
		!memcmp(name,
			"\0\0\0\0"
			"567",
			8));
	CHECK(obs_null_driver.cuDeviceGetName(name, -1, 0) == CUDA_SUCCESS);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
