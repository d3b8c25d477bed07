/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The table of sessions that supervisor and admission process share. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/common/options.h"
#include "server/common/routes.h"
#include "tests/test.h"

static struct obs_routes *table;
static const struct obs_routes *adopted;

static void begin(void)
{
	int fd;

	table = obs_routes_new(&fd);
	CHECK(table);
	CHECK(dup2(fd, OBS_ROUTES_FD) == OBS_ROUTES_FD);
	/* A process that gets the descriptor must not be able to write to the table. */
	if (fd != OBS_ROUTES_FD) {
		CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
		CHECK_INT(write(fd, "x", 1), -1);
		close(fd);
	}
	adopted = obs_routes_adopt();
	CHECK(adopted);
}

static void end(void)
{
	obs_routes_free(table);
	obs_routes_free((struct obs_routes *)(uintptr_t)adopted);
}

/* A secret that is derived from its route. */
static void secret_of(uint64_t route, uint8_t ret[OBP_SECRET_BYTES])
{
	for (unsigned i = 0; i < OBP_SECRET_BYTES; i++)
		ret[i] = (uint8_t)(route * 31 + route / 256 + i);
}

static bool has(uint64_t route)
{
	uint8_t got[OBP_SECRET_BYTES], want[OBP_SECRET_BYTES];

	if (!obs_routes_find(adopted, route, got))
		return false;
	secret_of(route, want);
	CHECK_INT(memcmp(got, want, sizeof got), 0);
	return true;
}

static bool put(uint64_t route)
{
	uint8_t secret[OBP_SECRET_BYTES];

	secret_of(route, secret);
	return obs_routes_put(table, route, secret);
}

TEST(the_other_process_sees_what_is_there)
{
	begin();
	CHECK(!has(0) && !has(7));
	CHECK(put(7) && put(8));
	CHECK(has(7) && has(8) && !has(9) && !has(0));
	obs_routes_remove(table, 7);
	obs_routes_remove(table, 99);
	obs_routes_remove(table, 0);
	CHECK(!has(7) && has(8));
	CHECK(!put(0));
	end();
}

TEST(it_holds_as_many_as_there_can_be)
{
	begin();
	for (uint64_t i = 1; i <= OBS_SESSIONS_MAX; i++)
		CHECK(put(i));
	CHECK(!put(OBS_SESSIONS_MAX + 1));
	for (uint64_t i = 1; i <= OBS_SESSIONS_MAX; i++)
		CHECK(has(i));
	obs_routes_remove(table, 17);
	CHECK(put(OBS_SESSIONS_MAX + 1));
	CHECK(has(OBS_SESSIONS_MAX + 1) && !has(17));
	end();
}

static _Atomic bool reading;

static void *look(void *unused)
{
	(void)unused;
	while (atomic_load(&reading)) {
		has(1);
		has(2);
	}
	return NULL;
}

/* Two sessions use one entry in turn: a reader must never get the secret of the other. */
TEST(a_secret_belongs_to_its_route)
{
	pthread_t reader;

	begin();
	atomic_store(&reading, true);
	CHECK_INT(pthread_create(&reader, NULL, look, NULL), 0);
	for (unsigned i = 0; i < 200000 / TEST_SLOWER; i++) {
		CHECK(put(1 + i % 2));
		obs_routes_remove(table, 1 + i % 2);
	}
	atomic_store(&reading, false);
	CHECK_INT(pthread_join(reader, NULL), 0);
	end();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
