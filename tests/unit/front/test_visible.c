/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Which devices a program sees: lists in every form over devices that are made up, and what the
 * front end makes of the choice.
 */
#include "front/visible.h"
#include "front.h"

static struct obf_device devices[OBF_DEVICE_MAX];

/*
 * n devices whose UUIDs begin with aa0, aa1 ... and whose order on the bus is from the last to the
 * first.
 */
static void devices_make(int n)
{
	memset(devices, 0, sizeof devices);
	for (int i = 0; i < n; i++) {
		snprintf(devices[i].name, sizeof devices[i].name, "Made up %d", i);
		devices[i].uuid.bytes[0] = (char)0xaa;
		devices[i].uuid.bytes[1] = (char)(i << 4);
		devices[i].uuid.bytes[15] = (char)i;
		devices[i].attr[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = n - i;
	}
}

/* The ordinals as one number in base 100, counted from 1, as in 10203 for 0, 1, 2. */
static long chosen(int n, const char *order, const char *list, enum obf_visible_end end)
{
	struct obf_visible visible;
	long sum = 0;

	obf_visible_choose(devices, n, order, list, &visible);
	CHECK(visible.end == end && visible.n <= n);
	CHECK((visible.entry != NULL) == (end != OBF_VISIBLE_WHOLE));
	for (int i = 0; i < visible.n; i++)
		sum = sum * 100 + visible.ordinal[i] + 1;
	return sum;
}

TEST(numbers)
{
	devices_make(4);
	CHECK(chosen(4, NULL, NULL, OBF_VISIBLE_WHOLE) == 1020304);
	CHECK(chosen(4, NULL, "2,0", OBF_VISIBLE_WHOLE) == 301);
	CHECK(chosen(4, NULL, "0,2,-1,1", OBF_VISIBLE_HIDDEN) == 103);
	CHECK(chosen(4, NULL, "", OBF_VISIBLE_HIDDEN) == 0);
	CHECK(chosen(4, NULL, "  ", OBF_VISIBLE_HIDDEN) == 0);
	CHECK(chosen(4, NULL, "-1", OBF_VISIBLE_HIDDEN) == 0);
	CHECK(chosen(4, NULL, "1,", OBF_VISIBLE_HIDDEN) == 2);
	CHECK(chosen(4, NULL, ",1", OBF_VISIBLE_HIDDEN) == 0);
	CHECK(chosen(4, NULL, "3,4,0", OBF_VISIBLE_UNKNOWN) == 4);
	CHECK(chosen(4, NULL, "3,x,0", OBF_VISIBLE_UNKNOWN) == 4);
	CHECK(chosen(4, NULL, "\t3 , 0 ", OBF_VISIBLE_WHOLE) == 401);
	CHECK(chosen(4, NULL, "+1,2nd,0x3", OBF_VISIBLE_WHOLE) == 20301);
	/* no hexadecimal numbers: 0, and 0 again */
	CHECK(chosen(4, NULL, "0x1,0", OBF_VISIBLE_TWICE) == 0);
	CHECK(chosen(4, NULL, "99999999999999999999", OBF_VISIBLE_UNKNOWN) == 0);
	CHECK(chosen(4, NULL, "-", OBF_VISIBLE_UNKNOWN) == 0);
	CHECK(chosen(4, NULL, "1,2,3,1", OBF_VISIBLE_TWICE) == 0);
	/* what follows the end does not count */
	CHECK(chosen(4, NULL, "1,-1,1", OBF_VISIBLE_HIDDEN) == 2);
	CHECK(chosen(0, NULL, "0", OBF_VISIBLE_UNKNOWN) == 0);
}

TEST(hidden_beforehand)
{
	static const char *const lists[] = { "", " ", "-1", "-1,0", " -7", ",0" },
				 *const others[] = { "0", "x", "7,-1", "GPU-", "-" };

	CHECK(!obf_visible_none(NULL));
	for (size_t i = 0; i < ob_count(lists); i++)
		CHECK(obf_visible_none(lists[i]));
	for (size_t i = 0; i < ob_count(others); i++)
		CHECK(!obf_visible_none(others[i]));
}

/*
 * Only what certainly leaves the first device visible; numbers in the order of the bus may mean
 * another device.
 */
TEST(first_beforehand)
{
	static const char *const lists[] = { "0", "0,1", " +0 ", "0,-1" },
				 *const others[] = { "", "1", "1,0", "-1", "GPU-aa", "MIG-", "x" };

	CHECK(obf_visible_first(NULL, NULL) && obf_visible_first("PCI_BUS_ID", NULL));
	for (size_t i = 0; i < ob_count(lists); i++) {
		CHECK(obf_visible_first(NULL, lists[i]) &&
			obf_visible_first("FASTEST_FIRST", lists[i]));
		CHECK(!obf_visible_first("PCI_BUS_ID", lists[i]));
	}
	for (size_t i = 0; i < ob_count(others); i++)
		CHECK(!obf_visible_first(NULL, others[i]));
}

TEST(names)
{
	devices_make(4);
	CHECK(chosen(4, NULL, "GPU-aa200000-0000-0000-0000-000000000002", OBF_VISIBLE_WHOLE) == 3);
	CHECK(chosen(4, NULL, "GPU-aa200000-0000-0000-0000-000000000002f", OBF_VISIBLE_UNKNOWN) ==
		0);
	CHECK(chosen(4, NULL, "GPU-aa200000-0000-0000-0000-000000000003", OBF_VISIBLE_UNKNOWN) ==
		0);
	CHECK(chosen(4, NULL, "GPU-AA3,gpu-aa1", OBF_VISIBLE_WHOLE) == 402);
	CHECK(chosen(4, NULL, "GPU-aa1,GPU-aa,0", OBF_VISIBLE_AMBIGUOUS) == 2);
	CHECK(chosen(4, NULL, "GPU-", OBF_VISIBLE_AMBIGUOUS) == 0);
	CHECK(chosen(1, NULL, "GPU-", OBF_VISIBLE_WHOLE) == 1);
	CHECK(chosen(4, NULL, "GPU-aa1,1", OBF_VISIBLE_TWICE) == 0);
	CHECK(chosen(4, NULL, "2,GPU-aa1", OBF_VISIBLE_WHOLE) == 302);
	CHECK(chosen(4, NULL, "aa1", OBF_VISIBLE_UNKNOWN) == 0);
	CHECK(chosen(4, NULL, "MIG-aa1", OBF_VISIBLE_UNKNOWN) == 0);
	/* A slice of a GPU has a name of its own kind. */
	snprintf(devices[1].name, sizeof devices[1].name, "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
	CHECK(chosen(4, NULL, "MIG-aa1,0", OBF_VISIBLE_WHOLE) == 201);
	CHECK(chosen(4, NULL, "MIG-", OBF_VISIBLE_WHOLE) == 2);
	CHECK(chosen(4, NULL, "GPU-aa1", OBF_VISIBLE_UNKNOWN) == 0);
	CHECK(chosen(4, NULL, "MIG-GPU-aa100000-0000-0000-0000-000000000001/1/0",
		      OBF_VISIBLE_UNKNOWN) == 0);
}

TEST(orders)
{
	devices_make(4);
	CHECK(chosen(4, "PCI_BUS_ID", NULL, OBF_VISIBLE_WHOLE) == 4030201);
	CHECK(chosen(4, "FASTEST_FIRST", NULL, OBF_VISIBLE_WHOLE) == 1020304);
	CHECK(chosen(4, "nonsense", NULL, OBF_VISIBLE_WHOLE) == 1020304);
	CHECK(chosen(4, "PCI_BUS_ID", "0,3", OBF_VISIBLE_WHOLE) == 401);
	CHECK(chosen(4, "PCI_BUS_ID", "GPU-aa0,0", OBF_VISIBLE_WHOLE) == 104);
	/* The domain counts first, then the bus, then the device; equal ones stay as they are. */
	devices[0].attr[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID] = 1;
	devices[2].attr[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = 1;
	devices[3].attr[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID] = 2;
	CHECK(chosen(4, "PCI_BUS_ID", NULL, OBF_VISIBLE_WHOLE) == 3040201);
	devices_make(3);
	for (int i = 0; i < 3; i++)
		devices[i].attr[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = 7;
	CHECK(chosen(3, "PCI_BUS_ID", NULL, OBF_VISIBLE_WHOLE) == 10203);
}

TEST(most)
{
	char list[4 * OBF_DEVICE_MAX] = "";
	struct obf_visible visible;
	size_t used = 0;

	devices_make(OBF_DEVICE_MAX);
	for (int i = OBF_DEVICE_MAX; i-- > 0;)
		used += (size_t)snprintf(list + used, sizeof list - used, i ? "%d," : "%d", i);
	obf_visible_choose(devices, OBF_DEVICE_MAX, NULL, list, &visible);
	CHECK(visible.n == OBF_DEVICE_MAX && visible.end == OBF_VISIBLE_WHOLE &&
		visible.ordinal[0] == OBF_DEVICE_MAX - 1);
	snprintf(list + used, sizeof list - used, ",0");
	obf_visible_choose(devices, OBF_DEVICE_MAX, NULL, list, &visible);
	CHECK(visible.n == 0 && visible.end == OBF_VISIBLE_TWICE);
	obf_visible_choose(devices, OBF_DEVICE_MAX, "PCI_BUS_ID", NULL, &visible);
	CHECK(visible.n == OBF_DEVICE_MAX && visible.ordinal[0] == OBF_DEVICE_MAX - 1);
}

/* The front end: every call counts what is seen, and the library behind is told of its own numbers. */
TEST(front_end)
{
	CUdevice device;
	CUuuid uuid;
	int n;

	fake.n_devices = 4;
	setenv("CUDA_VISIBLE_DEVICES", "3,1", 1);
	begin();
	OK(obf_cuDeviceGetCount(&n));
	CHECK(n == 2 && fake.n_visible == 2 && fake.visible[0] == 3 && fake.visible[1] == 1);
	OK(obf_cuDeviceGetUuid_v2(&uuid, 0));
	CHECK(uuid.bytes[0] == 3 * 16);
	CHECK_INT(obf_cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
	CHECK(obf_ctx_primary(1)->device == 1 && !obf_ctx_primary(2));
}

TEST(face_none)
{
	int n;

	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	fake_attach(NULL, 0);
	CHECK_INT(obf_cuInit(0), CUDA_ERROR_NO_DEVICE);
	CHECK(fake.starts == 0); /* nobody is asked */
	CHECK_INT(obf_cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	CHECK_INT(obf_cuInit(0), CUDA_ERROR_NO_DEVICE);
}

TEST(face_unknown)
{
	setenv("CUDA_VISIBLE_DEVICES", "9", 1);
	fake_attach(NULL, 0);
	CHECK_INT(obf_cuInit(0), CUDA_ERROR_NO_DEVICE);
	CHECK(fake.starts == 1 && fake.n_visible == 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
