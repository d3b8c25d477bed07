/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The retransmit queue: each reply is contiguous in the queue's memory and unchanged until it is
 * dropped, at every position of the memory's end.
 */
#include "base/check.h"
#include "server/worker/retransmit.h"
#include "tests/test.h"

#define HEAD     ((uint32_t)(sizeof(struct obp_frame) + sizeof(struct obp_reply)))
#define BODY_MAX 4096u

static struct obs_retransmit queue;
static uint8_t body[BODY_MAX];
static uint64_t seed = 1;

static uint32_t dice(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

static uint8_t pattern(uint64_t number, uint32_t i)
{
	return (uint8_t)(number * 31 + i * 7);
}

/* False: no room. */
static bool add(uint32_t size)
{
	struct obs_retransmit_entry *reply;

	for (uint32_t i = 0; i < size; i++)
		body[i] = pattern(queue.next, i);
	reply = obs_retransmit_add(&queue, body, size, NULL);
	if (!reply)
		return false;
	CHECK(reply->bytes >= queue.ring &&
		reply->bytes + reply->size <= queue.ring + OBS_RETRANSMIT_BYTES);
	memset(reply->bytes, 0xee, HEAD);
	return true;
}

static void drop(uint64_t number)
{
	for (uint64_t n = queue.first; n <= number; n++) {
		const struct obs_retransmit_entry *reply = &queue.list[n % OBS_RETRANSMIT_MAX];

		for (uint32_t i = 0; i + HEAD < reply->size - 7; i++)
			CHECK(reply->bytes[HEAD + i] == pattern(n, i));
	}
	obs_retransmit_drop(&queue, number);
}

static void begin(void)
{
	CHECK(obs_retransmit_init(&queue));
}

TEST(a_reply_ends_where_the_memory_does)
{
	/*
	 * For every size: adds replies until the memory is full, then one that fits exactly, then
	 * more while the first ones are dropped.
	 */
	for (uint32_t size = 8; size <= 2048; size += 8) {
		begin();
		while (queue.head + 2 * (HEAD + size) <= OBS_RETRANSMIT_BYTES &&
			queue.next - queue.first < OBS_RETRANSMIT_MAX - 2)
			CHECK(add(size));
		while (queue.head < OBS_RETRANSMIT_BYTES &&
			OBS_RETRANSMIT_BYTES - queue.head >= HEAD + 8 &&
			queue.next - queue.first < OBS_RETRANSMIT_MAX - 2)
			CHECK(add(ob_min(OBS_RETRANSMIT_BYTES - queue.head - HEAD, BODY_MAX)));
		drop(queue.first + 40);
		for (int i = 0; i < 16; i++)
			CHECK(add(size) || size > 512);
		drop(queue.next - 1);
		CHECK_INT(queue.used, 0);
		free(queue.ring);
		free(queue.list);
	}
}

TEST(random_sizes)
{
	begin();
	for (unsigned i = 0; i < 400000 / TEST_SLOWER; i++) {
		if (dice(3) && add(dice(dice(4) ? 256 : BODY_MAX + 1)))
			continue;
		if (queue.next > queue.first && dice(4))
			drop(queue.first + dice(ob_min((uint32_t)(queue.next - queue.first), 64u)));
	}
	drop(queue.next - 1);
	CHECK_INT(queue.used, 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
