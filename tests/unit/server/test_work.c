/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The list of busy streams. */
#include "server/worker/work.h"

#include "tests/test.h"

static struct obs_session session;

static struct obs_handle *stream_make(uint64_t id)
{
	const struct obs_handle value = { .driver = &session };

	CHECK(obs_handles_put(&session.streams, id, &value));
	return obs_handles_find(&session.streams, id);
}

/* A program that makes a stream for each request and never waits for a context. */
TEST(destroyed_streams_need_no_memory)
{
	for (uint64_t i = 0; i < 100; i++)
		obs_work_mark(&session, stream_make(1000 + i));
	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t id = (i << 32) + 10 + i % 50;

		obs_work_mark(&session, stream_make(id));
		CHECK(obs_handles_remove(&session.streams, id, NULL));
	}
	CHECK(session.work.room <= 512);
	/* None of those that live was lost. */
	for (uint64_t i = 0; i < 100; i++) {
		uint32_t found = 0;

		for (uint32_t k = 0; k < session.work.n; k++)
			found += session.work.ids[k] == 1000 + i;
		CHECK_INT(found, 1);
	}
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
