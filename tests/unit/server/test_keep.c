/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Which method keeps a session's share, by the server's list and what the driver can do. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "protocol/control.h"
#include "protocol/load.h"
#include "protocol/obs_driver.h"
#include "server/common/stats_page.h"
#include "server/layers/keep.h"
#include "server/layers/mps.h"
#include "tests/test.h"

#define UNITS 64u

/* A driver that divides a device of `units` multiprocessors into parts of 8. */
static unsigned units = UNITS, undivided; /* undivided: 1 + the device that has no green contexts */
static int mps_enabled;

static CUresult resource_get(CUdevice device, CUdevResource *ret, CUdevResourceType type)
{
	CHECK_INT(type, CU_DEV_RESOURCE_TYPE_SM);
	if (undivided == (unsigned)device + 1)
		return CUDA_ERROR_NOT_SUPPORTED;
	ret->type = type;
	ret->sm.smCount = units;
	ret->sm.minSmPartitionSize = ret->sm.smCoscheduledAlignment = 8;
	return CUDA_SUCCESS;
}

static CUresult split(CUdevResource *ret, unsigned *n, const CUdevResource *whole,
	CUdevResource *rest, unsigned flags, unsigned least)
{
	(void)rest;
	(void)flags;
	*ret = *whole;
	ret->sm.smCount = (unsigned)ob_round_up(least, 8);
	*n = 1;
	return CUDA_SUCCESS;
}

static CUresult attribute(int *ret, CUdevice_attribute which, CUdevice device)
{
	(void)which;
	(void)device;
	*ret = mps_enabled;
	return CUDA_SUCCESS;
}

static const struct obs_driver driver = { .cuDeviceGetDevResource = resource_get,
	.cuDevSmResourceSplitByCount = split,
	.cuDeviceGetAttribute = attribute };

static struct obp_device devices[2];
static struct obp_welcome welcome = { .n_devices = 2, .devices = devices };

static enum obp_share_by chosen(const char *list, uint32_t share)
{
	struct obs_limits limits = obs_limits_default;
	struct ob_cause cause;

	CHECK_INT(obs_limits_option(&limits, "share-by", list, &cause), OB_ERR_NONE);
	limits.share = share;
	for (unsigned i = 0; i < 2; i++)
		devices[i].attr[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = UNITS;
	obs_keep_choose(&driver, &welcome, &limits);
	CHECK_INT(atomic_load(&obs_stats_page->share_by), obs_keep_by());
	return obs_keep_by();
}

static uint32_t offered(const char *list, uint32_t share, struct ob_cause *ret_cause)
{
	struct obs_limits limits = obs_limits_default;

	CHECK_INT(obs_limits_option(&limits, "share-by", list, NULL), OB_ERR_NONE);
	limits.share = share;
	ret_cause->text[0] = '\0';
	return obs_keep_offered(&driver, 1, &limits, ret_cause);
}

static int told(unsigned device)
{
	return devices[device].attr[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
}

TEST(the_first_method_that_is_possible)
{
	CHECK_INT(chosen("green", OBP_SHARE_ALL), OBP_SHARE_BY_NONE);
	CHECK_INT(told(0), UNITS);
	CHECK_INT(chosen("throttle", 250000), OBP_SHARE_BY_THROTTLE);
	CHECK_INT(told(0), UNITS);
	CHECK_INT(chosen("green", 250000), OBP_SHARE_BY_GREEN);
	CHECK(told(0) == 16 && told(1) == 16);
	CHECK_INT(chosen("green", 250001), OBP_SHARE_BY_GREEN);
	CHECK_INT(told(0), 24);
	CHECK_INT(chosen("mps,green", 250000), OBP_SHARE_BY_GREEN);
	/* rounded up to all of the device */
	CHECK_INT(chosen("green", 900000), OBP_SHARE_BY_THROTTLE);
	CHECK_INT(told(0), UNITS);
	undivided = 2;
	CHECK_INT(chosen("green", 250000), OBP_SHARE_BY_THROTTLE);
	CHECK(told(0) == UNITS && told(1) == UNITS);
}

TEST(what_a_device_offers)
{
	const uint32_t throttle = 1u << OBP_SHARE_BY_THROTTLE, green = 1u << OBP_SHARE_BY_GREEN;
	struct ob_cause cause;

	CHECK_INT(offered("throttle", OBP_SHARE_ALL, &cause), throttle);
	CHECK_STR(cause.text, "");
	CHECK_INT(offered("green,throttle", OBP_SHARE_ALL, &cause), throttle | green);
	CHECK_STR(cause.text, "");
	undivided = 2;
	CHECK_INT(offered("green", OBP_SHARE_ALL, &cause), throttle);
	CHECK(strstr(cause.text, "no green contexts") != NULL);
	undivided = 0;
	units = 8;
	CHECK_INT(offered("green", OBP_SHARE_ALL, &cause), throttle);
	CHECK(strstr(cause.text, "would be all") != NULL);
}

/* A socket listens, but it is the driver that knows whether MPS is used. */
static void mps_tried(int enabled, enum obp_share_by want)
{
	char folder[] = "/tmp/outboard-keep-XXXXXX";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct ob_cause cause;

	unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	CHECK(mkdtemp(folder) != NULL);
	snprintf(address.sun_path, sizeof address.sun_path, "%s/control", folder);
	CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0);
	setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
	CHECK_INT(obs_mps_begin(500000, &cause), OB_ERR_NONE);
	mps_enabled = enabled;
	if (obs_mps_confirm(&driver, 2, &cause))
		obs_mps_refuse(&cause);
	CHECK_INT(chosen("mps", 500000), want);
	CHECK_INT(obs_keep_inside((CUcontext)folder, true), want == OBP_SHARE_BY_MPS);
	CHECK_INT(offered("mps", 500000, &cause) >> OBP_SHARE_BY_MPS, enabled);
	CHECK_INT(cause.text[0] == '\0', enabled);
	/* of a session that asked for less */
	CHECK_INT(chosen("mps", 400000), OBP_SHARE_BY_THROTTLE);
	/* green is offered beside it, but MPS comes first in the list */
	CHECK(offered("mps,green", 500000, &cause) & 1u << OBP_SHARE_BY_GREEN);
	CHECK_INT(chosen("mps,green", 500000), enabled ? OBP_SHARE_BY_MPS : OBP_SHARE_BY_GREEN);
	close(fd);
	unlink(address.sun_path);
	rmdir(folder);
}

TEST(mps_that_the_driver_confirms)
{
	mps_tried(1, OBP_SHARE_BY_MPS);
}

TEST(mps_that_the_driver_denies)
{
	mps_tried(0, OBP_SHARE_BY_THROTTLE);
}

/* The green context of one device is refused: the other one keeps its part. */
TEST(a_part_that_could_not_be_made)
{
	static char first, second;
	struct ob_cause cause;

	ob_cause_set(&cause, OB_ERR_DRIVER, "a test");
	CHECK_INT(chosen("green", 250000), OBP_SHARE_BY_GREEN);
	obs_keep_part_made((CUcontext)&first);
	obs_keep_fall_back(&cause);
	CHECK_INT(obs_keep_by(), OBP_SHARE_BY_THROTTLE);
	CHECK(obs_keep_inside((CUcontext)&first, false));
	CHECK(!obs_keep_inside((CUcontext)&second, false));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
