/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Memory of other sessions: descriptors on their way to the driver, and how much may be imported. */
#include <fcntl.h>
#include <unistd.h>

#include "server/common/limits.h"
#include "server/layers/imports.h"
#include "tests/test.h"

static int descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* A client names a descriptor by its ticket only, and only once. */
TEST(tickets)
{
	int first = descriptor(), second = descriptor();
	uint64_t one = obs_imports_put(first, 4096), two = obs_imports_put(second, 8192);
	uint64_t bytes = 0;

	CHECK(one && two && one != two);
	CHECK_INT(obs_imports_take(0, &bytes), -1);
	CHECK_INT(obs_imports_take((uint64_t)first, &bytes), -1);
	CHECK_INT(obs_imports_take(one ^ 1, &bytes), -1);
	CHECK_INT(bytes, 0);
	CHECK_INT(obs_imports_take(two, &bytes), second);
	CHECK_INT(bytes, 8192);
	CHECK_INT(obs_imports_take(two, &bytes), -1);
	CHECK_INT(obs_imports_take(one, &bytes), first);
	CHECK_INT(bytes, 4096);
	close(first);
	close(second);
	obs_imports_discharge(4096);
	obs_imports_discharge(8192);
}

/* Descriptors that are fetched and never imported do not add up. */
TEST(the_oldest_is_closed)
{
	int fds[OBS_TICKETS_MAX + 1];
	uint64_t tickets[OBS_TICKETS_MAX + 1], bytes;

	for (unsigned i = 0; i < OBS_TICKETS_MAX; i++)
		tickets[i] = obs_imports_put(fds[i] = descriptor(), i);
	CHECK(is_open(fds[0]));
	fds[OBS_TICKETS_MAX] = descriptor();
	tickets[OBS_TICKETS_MAX] = obs_imports_put(fds[OBS_TICKETS_MAX], OBS_TICKETS_MAX);
	CHECK(!is_open(fds[0]));
	CHECK_INT(obs_imports_take(tickets[0], &bytes), -1);
	for (unsigned i = 1; i <= OBS_TICKETS_MAX; i++) {
		CHECK_INT(obs_imports_take(tickets[i], &bytes), fds[i]);
		CHECK_INT(bytes, i);
		close(fds[i]);
		obs_imports_discharge(bytes);
	}
}

/* A descriptor keeps the memory: it is charged before it is imported. */
TEST(tickets_are_charged)
{
	uint64_t one, bytes;
	int fd = descriptor();

	obs_limits_now.memory = 1000;
	one = obs_imports_put(descriptor(), 600);
	CHECK(one != 0);
	CHECK_INT(obs_imports_put(fd, 401), 0);
	CHECK(!is_open(fd));
	fd = obs_imports_take(one, &bytes);
	CHECK(fd >= 0);
	close(fd);
	CHECK(!obs_imports_charge(401));
	obs_imports_discharge(bytes);
	CHECK(obs_imports_charge(1000));
	obs_imports_discharge(1000);
	obs_limits_now.memory = 0;
}

TEST(limits)
{
	obs_limits_now.memory = 1000;
	CHECK(obs_imports_charge(600));
	CHECK(!obs_imports_charge(401));
	CHECK(!obs_imports_charge(UINT64_MAX));
	CHECK(obs_imports_charge(400));
	CHECK(!obs_imports_charge(1));
	obs_imports_discharge(600);
	obs_imports_discharge(400);
	obs_limits_now.memory = 0;
	CHECK(obs_imports_charge(1ull << 62));
	obs_imports_discharge(1ull << 62);
	for (unsigned i = 0; i < OBS_IMPORTS_MAX; i++)
		CHECK(obs_imports_charge(1));
	CHECK(!obs_imports_charge(1));
	for (unsigned i = 0; i < OBS_IMPORTS_MAX; i++)
		obs_imports_discharge(1);
	CHECK(obs_imports_charge(1));
	obs_imports_discharge(1);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
