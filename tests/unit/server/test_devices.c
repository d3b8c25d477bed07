/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The layer that translates the numbers of devices, around a driver that notes what it is asked; and
 * the same translation in the supervisor.
 */
#include "base/check.h"
#include "protocol/control.h"
#include "server/common/place.h"
#include "server/layers/devices.h"
#include "tests/test.h"

static struct obs_driver layer, noting;
static int asked, asked_too;
static unsigned calls;

static CUresult note_name(char *name, int len, CUdevice device)
{
	(void)name;
	(void)len;
	asked = device;
	calls++;
	return CUDA_SUCCESS;
}

static CUresult note_retain(CUcontext *ctx, CUdevice device)
{
	(void)ctx;
	asked = device;
	calls++;
	return CUDA_SUCCESS;
}

static CUresult note_peer(int *can, CUdevice device, CUdevice peer)
{
	*can = 1;
	asked = device;
	asked_too = peer;
	calls++;
	return CUDA_SUCCESS;
}

static CUresult note_create(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	(void)handle;
	(void)bytes;
	(void)flags;
	asked = prop->location.id;
	calls++;
	return CUDA_SUCCESS;
}

static CUresult note_access(
	CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
	(void)ptr;
	(void)bytes;
	asked = desc[0].location.id;
	asked_too = desc[count - 1].location.id;
	calls++;
	return CUDA_SUCCESS;
}

static CUresult tell_device(CUdevice *device)
{
	*device = asked;
	return CUDA_SUCCESS;
}

static CUresult tell_prop(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	prop->location = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)handle };
	return CUDA_SUCCESS;
}

static CUresult note_pool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	(void)pool;
	(void)location;
	(void)type;
	calls++;
	return CUDA_SUCCESS;
}

static void begin(const uint8_t *numbers, uint32_t n)
{
	noting = obs_null_driver;
	noting.cuDeviceGetName = note_name;
	noting.cuDevicePrimaryCtxRetain = note_retain;
	noting.cuDeviceCanAccessPeer = note_peer;
	noting.cuMemCreate = note_create;
	noting.cuMemSetAccess = note_access;
	noting.cuCtxGetDevice = tell_device;
	noting.cuMemGetAllocationPropertiesFromHandle = tell_prop;
	noting.cuMemGetDefaultMemPool = note_pool;
	obs_devices_wrap(&layer, &noting);
	obs_devices_all();
	if (numbers)
		obs_devices_restrict(numbers, n);
}

TEST(without_a_ticket_the_numbers_are_the_drivers)
{
	CUdevice device;

	begin(NULL, 0);
	for (int i = -1; i < 20; i++) {
		CHECK_INT(layer.cuDeviceGetName(NULL, 0, i), CUDA_SUCCESS);
		CHECK_INT(asked, i);
		CHECK_INT(layer.cuCtxGetDevice(&device), CUDA_SUCCESS);
		CHECK_INT(device, i);
	}
	CHECK_INT(layer.cuMemGetDefaultMemPool(NULL, NULL, CU_MEM_ALLOCATION_TYPE_PINNED),
		CUDA_SUCCESS);
}

TEST(numbers_of_the_ticket_are_translated)
{
	const uint8_t numbers[] = { 5, 2 };
	CUmemAllocationProp prop = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemAccessDesc access[2] = { { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } },
		{ .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } } };
	CUdevice device;
	int can;

	begin(numbers, 2);
	CHECK_INT(layer.cuDevicePrimaryCtxRetain(NULL, 0), CUDA_SUCCESS);
	CHECK_INT(asked, 5);
	CHECK_INT(layer.cuDevicePrimaryCtxRetain(NULL, 1), CUDA_SUCCESS);
	CHECK_INT(asked, 2);
	CHECK_INT(layer.cuCtxGetDevice(&device), CUDA_SUCCESS);
	CHECK_INT(device, 1);
	asked = 3; /* a context on another device cannot be: shown as none */
	CHECK_INT(layer.cuCtxGetDevice(&device), CUDA_SUCCESS);
	CHECK_INT(device, CU_DEVICE_INVALID);
	CHECK_INT(layer.cuDeviceCanAccessPeer(&can, 1, 0), CUDA_SUCCESS);
	CHECK(asked == 2 && asked_too == 5);
	prop.location.id = 1;
	CHECK_INT(layer.cuMemCreate(NULL, 1, &prop, 0), CUDA_SUCCESS);
	CHECK(asked == 2 && prop.location.id == 1);
	prop.location.type = CU_MEM_LOCATION_TYPE_INVALID; /* then it is no device */
	prop.location.id = 77;
	CHECK_INT(layer.cuMemCreate(NULL, 1, &prop, 0), CUDA_SUCCESS);
	CHECK_INT(asked, 77);
	CHECK_INT(layer.cuMemSetAccess(0, 1, access, 2), CUDA_SUCCESS);
	CHECK(asked == 2 && asked_too == 5 && access[0].location.id == 1);
	CHECK_INT(layer.cuMemGetAllocationPropertiesFromHandle(&prop, 5), CUDA_SUCCESS);
	CHECK_INT(prop.location.id, 0);
	CHECK_INT(layer.cuMemGetAllocationPropertiesFromHandle(&prop, 4), CUDA_SUCCESS);
	CHECK_INT(prop.location.id, CU_DEVICE_INVALID);
}

TEST(other_numbers_never_reach_the_driver)
{
	static const int others[] = { -1, 2, 3, 5, 15, 16, 255, INT32_MAX, INT32_MIN };
	const uint8_t numbers[] = { 5, 2 };
	CUmemAllocationProp prop = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	CUmemAccessDesc access[OBP_DEVICE_MAX * 5] = {
		{ .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } }
	};
	int can;

	begin(numbers, 2);
	calls = 0;
	for (size_t i = 0; i < ob_count(others); i++) {
		CHECK_INT(layer.cuDeviceGetName(NULL, 0, others[i]), CUDA_ERROR_INVALID_DEVICE);
		CHECK_INT(
			layer.cuDevicePrimaryCtxRetain(NULL, others[i]), CUDA_ERROR_INVALID_DEVICE);
		CHECK_INT(
			layer.cuDeviceCanAccessPeer(&can, 0, others[i]), CUDA_ERROR_INVALID_DEVICE);
		CHECK_INT(
			layer.cuDeviceCanAccessPeer(&can, others[i], 0), CUDA_ERROR_INVALID_DEVICE);
		prop.location.id = others[i];
		CHECK_INT(layer.cuMemCreate(NULL, 1, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
		access[1] = (CUmemAccessDesc){ .location = prop.location };
		CHECK_INT(layer.cuMemSetAccess(0, 1, access, 2), CUDA_ERROR_INVALID_DEVICE);
	}
	CHECK_INT(layer.cuMemSetAccess(0, 1, access, ob_count(access)), CUDA_ERROR_INVALID_VALUE);
	/* The server makes no such call, so its devices are not translated. */
	CHECK_INT(layer.cuMemGetDefaultMemPool(NULL, NULL, CU_MEM_ALLOCATION_TYPE_PINNED),
		CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(calls, 0);
}

TEST(the_supervisor_translates_in_both_directions)
{
	const struct obs_place all = { .reserved = 0 },
			       two = { .reserved = 1, .n_devices = 2, .devices = { 5, 2 } };
	uint32_t number = 99;

	CHECK(obs_place_to_server(&all, 7, &number) && number == 7);
	CHECK(obs_place_to_session(&all, 7, &number) && number == 7);
	CHECK(obs_place_to_server(&two, 0, &number) && number == 5);
	CHECK(obs_place_to_server(&two, 1, &number) && number == 2);
	CHECK(!obs_place_to_server(&two, 2, &number));
	CHECK(!obs_place_to_server(&two, UINT32_MAX, &number));
	CHECK(obs_place_to_session(&two, 2, &number) && number == 1);
	CHECK(!obs_place_to_session(&two, 0, &number));
	CHECK(!obs_place_to_session(&two, 255, &number));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
