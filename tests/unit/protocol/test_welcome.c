/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/welcome.h"
#include "base/cuda_types.h"
#include "tests/test.h"

#define MIB    (1ull << 20)
#define FIRST  0x200000000000ull
#define SECOND 0x300000000000ull

static struct obp_message hello, answer;
static struct obp_device devices[2];

/* A correct server's answer: the second of two ranges, halved between two devices. */
static void honest(void)
{
	memset(&hello, 0, sizeof hello);
	memset(&answer, 0, sizeof answer);
	memset(devices, 0, sizeof devices);
	hello.type = OBP_MSG_HELLO;
	hello.shm = 1;
	hello.hello.codecs = 6;
	hello.hello.n_ranges = 2;
	hello.hello.ranges[0] = (struct obp_range){ FIRST, 64 * MIB };
	hello.hello.ranges[1] = (struct obp_range){ SECOND, 64 * MIB };
	answer.type = OBP_MSG_WELCOME;
	answer.shm = 1;
	answer.welcome.route = 7;
	answer.welcome.codecs = 4;
	answer.welcome.vmm = answer.welcome.range_ok = true;
	answer.welcome.range = hello.hello.ranges[1];
	answer.welcome.devices = devices;
	answer.welcome.n_devices = 2;
	for (unsigned i = 0; i < 2; i++) {
		devices[i].range = (struct obp_range){ SECOND + i * 32 * MIB, 32 * MIB };
		devices[i].grant = 4 * MIB;
		devices[i].attr_known[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = true;
		devices[i].attr[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32;
	}
}

static bool good(void)
{
	struct ob_cause cause = { OB_ERR_NONE, 0, "" };
	enum ob_err err = obp_welcome_check(&hello, &answer, &cause);

	CHECK_INT(err, cause.code);
	CHECK(err == OB_ERR_NONE || (err == OB_ERR_PROTOCOL && cause.text[0]));
	return err == OB_ERR_NONE;
}

TEST(an_honest_welcome)
{
	honest();
	CHECK(good());
	answer.shm = 0;
	answer.welcome.codecs = 0;
	CHECK(good());
	answer.welcome.n_devices = 0;
	CHECK(good());
}

TEST(a_server_s_own_range)
{
	honest();
	answer.welcome.range_ok = false;
	CHECK(good());
	answer.welcome.range = (struct obp_range){ 0x302000000ull, 64 * MIB };
	devices[0].range.base = 0x302000000ull;
	devices[1].range.base = 0x302000000ull + 32 * MIB;
	CHECK(good());
	answer.welcome.range.size = 0; /* the server has no range */
	CHECK(good());
}

TEST(no_addresses)
{
	honest();
	answer.welcome.vmm = false;
	answer.welcome.range = devices[0].range = devices[1].range = (struct obp_range){ 0, 0 };
	CHECK(good());
}

/* Without virtual memory management: a slab on the first device. */
static void slab(void)
{
	honest();
	hello.hello.slabs = 1;
	answer.welcome.vmm = false;
	answer.welcome.slabs = OBP_SLAB_MAX;
	answer.welcome.range = devices[1].range = (struct obp_range){ 0, 0 };
	devices[0].range = (struct obp_range){ 0x7f0000000000, 64 * MIB };
	devices[0].grant = 64 * MIB;
}

TEST(a_first_slab)
{
	struct obp_range *range = &devices[0].range;

	slab();
	CHECK(good());
	slab();
	devices[0].grant = range->size = OBP_SLAB_MAX;
	CHECK(good());
	range->base = UINT64_MAX - OBP_SLAB_MAX - OBP_SLAB_PAGE + 1;
	CHECK(good());
	slab();
	range->size = 0; /* none */
	CHECK(good());
#define WRONG(...)              \
	do {                    \
		slab();         \
		__VA_ARGS__;    \
		CHECK(!good()); \
	} while (0)
	WRONG(hello.hello.slabs = 0);
	WRONG(answer.welcome.slabs = OBP_SLAB_MAX + 1);
	WRONG(answer.welcome.slabs = 64 * MIB - 1);
	WRONG(answer.welcome.slabs = 0);
	WRONG(devices[0].grant--);
	WRONG(devices[0].grant = 0);
	WRONG(range->base = 0);
	WRONG(range->base += 512);
	WRONG(devices[0].grant = range->size = 64 * MIB - 512);
	WRONG(devices[0].grant = range->size = OBP_SLAB_MAX + OBP_SLAB_PAGE);
	WRONG(range->base = UINT64_MAX - 64 * MIB + 1);
	WRONG(devices[1] = devices[0]);
	WRONG(devices[1] = devices[0]; devices[1].range.base += 63 * MIB);
#undef WRONG
}

/* One error each. */
TEST(a_hostile_welcome)
{
#define WRONG(...)              \
	do {                    \
		honest();       \
		__VA_ARGS__;    \
		CHECK(!good()); \
	} while (0)
	struct obp_welcome *w = &answer.welcome;

	WRONG(answer.type = OBP_MSG_JOINED);
	WRONG(answer.type = OBP_MSG_PING);
	WRONG(w->route = 0);
	WRONG(w->codecs = 1);
	WRONG(w->codecs = UINT32_MAX);
	WRONG(answer.shm = 2);
	WRONG(hello.shm = 0);
	/* the range */
	WRONG(w->range.base = 0x400000);
	WRONG(w->range.base += 2 * MIB);
	WRONG(w->range.size = 1ull << 62);
	WRONG(w->range.size = 32 * MIB);
	WRONG(w->range.base = FIRST); /* the devices' parts are outside of it */
	WRONG(hello.hello.n_ranges = 0);
	WRONG(w->range_ok = false; w->range.base = 0);
	WRONG(w->range_ok = false; w->range.base = devices[0].range.base = 1; w->n_devices = 1);
	WRONG(w->range_ok = false; w->range.base = UINT64_MAX - 2 * MIB + 1;
		w->range.size = 2 * MIB);
	WRONG(w->range_ok = false; w->range.base = OBP_RANGE_END - 32 * MIB);
	WRONG(w->range_ok = false; w->range.size = 65 * MIB);
	/* the devices' parts */
	WRONG(devices[1].range.base = SECOND + 34 * MIB);
	WRONG(devices[1].range.base = SECOND - 2 * MIB);
	WRONG(devices[1].range.base = SECOND + 30 * MIB);
	WRONG(devices[1].range.base++);
	WRONG(devices[1].range.size = 0);
	WRONG(devices[0].range.size = UINT64_MAX - 1);
	WRONG(devices[1].range = devices[0].range);
	WRONG(devices[0].grant = 32 * MIB + 1);
	/* values that the client computes with */
	WRONG(devices[1].attr[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 0);
	WRONG(devices[1].attr[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = -32);
	WRONG(devices[0].attr_known[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = true;
		devices[0].attr[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = INT32_MAX);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
