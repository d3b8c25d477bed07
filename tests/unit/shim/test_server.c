/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* State that exists once for each server, and which server a thread uses. Each test is a process. */
#include "client-shim/session/server.h"

#include <string.h>

#include "tests/test.h"

static OBC_PER_SERVER int number_first = 7;
#define number OBC_HERE(number_first)
static OBC_PER_SERVER _Alignas(64) char aligned_first[100];
#define aligned OBC_HERE(aligned_first)
static OBC_PER_SERVER pthread_mutex_t lock_first = PTHREAD_MUTEX_INITIALIZER;
#define lock OBC_HERE(lock_first)

TEST(state)
{
	CHECK_INT(obc_servers_count(), 1);
	CHECK(&number == &number_first);
	CHECK(obc_servers_make(OBC_SERVERS_MAX));
	CHECK_INT(obc_servers_count(), OBC_SERVERS_MAX);
	for (uint32_t i = 0; i < OBC_SERVERS_MAX; i++) {
		CHECK_INT(obc_server_enter(i), i ? i - 1 : 0);
		CHECK_INT(obc_server_number(), i);
		CHECK_INT(number, 7);
		CHECK_INT((uintptr_t)aligned % 64, 0);
		CHECK(!pthread_mutex_lock(&lock));
		number = 100 + (int)i;
		memset(aligned, (int)i, sizeof aligned);
	}
	for (uint32_t i = 0; i < OBC_SERVERS_MAX; i++) {
		OBC_AT_SERVER(i);
		CHECK_INT(number, 100 + (int)i);
		CHECK_INT(aligned[99], (int)i);
		CHECK(pthread_mutex_trylock(&lock));
	}
	CHECK_INT(obc_server_number(), OBC_SERVERS_MAX - 1);
	obc_server_enter(OBC_SERVERS_MAX); /* no such server */
	CHECK_INT(obc_server_number(), OBC_SERVERS_MAX - 1);
}

static uint32_t from_last, to_last, changes;

static void changed(uint32_t from, uint32_t to)
{
	from_last = from;
	to_last = to;
	changes++;
}

TEST(changes)
{
	CHECK(obc_servers_make(2));
	obc_server_on_switch(changed);
	obc_server_enter(0);
	CHECK_INT(changes, 0);
	obc_server_enter(1);
	CHECK_INT(changes, 1);
	CHECK_INT(from_last, 0);
	CHECK_INT(to_last, 1);
	CHECK(!obc_server_has_context());
	obc_server_enter_context(1);
	CHECK(obc_server_has_context());
	CHECK_INT(changes, 1);
}

static void *thread_main(void *argument)
{
	*(uint32_t *)argument = obc_server_number() * 10 + obc_here.home;
	return NULL;
}

TEST(threads)
{
	uint32_t seen = 0;
	pthread_t thread;

	CHECK(obc_servers_make(3));
	obc_server_enter(2);
	CHECK(obc_thread_start(thread_main, &seen, 0, &thread));
	pthread_join(thread, NULL);
	CHECK_INT(seen, 22);
}

TEST(arguments)
{
	uint32_t found;

	CHECK(!obc_server_find(0x1000, &found)); /* with one server, no address tells it */
	CHECK(obc_servers_make(2));
	for (uint32_t i = 0; i < 2; i++) {
		OBC_AT_SERVER(i);
		obc_server_set_range(0x100000 + i * 0x100000, 0x100000);
	}
	CHECK(!obc_server_find(0xfffff, &found));
	CHECK(obc_server_find(0x100000, &found));
	CHECK_INT(found, 0);
	CHECK(obc_server_find(0x1fffff, &found));
	CHECK_INT(found, 0);
	CHECK(obc_server_find(0x200000, &found));
	CHECK_INT(found, 1);
	CHECK(!obc_server_find(0x300000, &found));
	{
		OBC_CHOOSES_SERVER();
		CHECK_INT(obc_server_choose(1), CUDA_SUCCESS);
		CHECK_INT(obc_server_number(), 1);
		CHECK_INT(obc_server_choose_at(0x200000), CUDA_SUCCESS);
		CHECK_INT(obc_server_choose_at(0x42), CUDA_SUCCESS);
		CHECK_INT(obc_server_choose_at(0x100000), CUDA_ERROR_NOT_SUPPORTED);
		CHECK_INT(obc_server_number(), 1);
	}
	CHECK_INT(obc_server_number(), 0);
	/* Outside of such a block the server does not change. */
	CHECK_INT(obc_server_choose(1), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_INT(obc_server_number(), 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
