/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The ring of the log with two writers, a sender, a thread that acknowledges, and one that gives
 * memory back, all at a time.
 */
#include <pthread.h>
#include <sched.h>

#include "client-shim/session/ring.h"
#include "tests/test.h"

#define HEADER         ((uint32_t)sizeof(struct obp_record))
#define THREAD_RECORDS (60000u / TEST_SLOWER)

static struct obc_ring ring;
static pthread_mutex_t ack_lock = PTHREAD_MUTEX_INITIALIZER;

static void spin_lock(void)
{
	while (atomic_exchange_explicit(&ring.lock, 1, memory_order_acquire))
		sched_yield();
}

static void *writer_main(void *argument)
{
	uint16_t lane = (uint16_t)(uintptr_t)argument;

	for (uint32_t i = 0; i < THREAD_RECORDS; i++) {
		uint32_t body = 8 + (i * 7 + lane) % 15 * 8;
		struct obp_record *record;
		uint64_t tail = 0;

		for (;;) {
			spin_lock();
			record = obc_ring_reserve(&ring, HEADER + body, 1, &tail);
			atomic_store_explicit(&ring.lock, 0, memory_order_release);
			if (record)
				break;
			while (atomic_load(&ring.tail) == tail)
				sched_yield();
		}
		for (uint32_t k = 0; k < body; k += 4)
			memcpy((uint8_t *)(record + 1) + k, &i, 4);
		obc_ring_commit(record, 1, lane, HEADER + body);
	}
	return NULL;
}

/* What the sender has sent, for the thread that acknowledges. */
static _Atomic uint64_t to_ack;

static void *acker_main(void *unused)
{
	(void)unused;
	while (atomic_load(&ring.acked) < 2ull * THREAD_RECORDS) {
		pthread_mutex_lock(&ack_lock);
		CHECK(obc_ring_ack(&ring, atomic_load(&to_ack)));
		pthread_mutex_unlock(&ack_lock);
		sched_yield();
	}
	return NULL;
}

static _Atomic bool over;

/* Gives memory back all the time, as the control thread does when the log is idle. */
static void *releaser_main(void *unused)
{
	uint64_t at = 0;

	(void)unused;
	while (!atomic_load(&over)) {
		spin_lock();
		at = obc_ring_release(&ring, at);
		atomic_store_explicit(&ring.lock, 0, memory_order_release);
		if (at > ring.mask)
			at = 0;
		sched_yield();
	}
	return NULL;
}

static void threads_run(uint64_t size, bool releases)
{
	uint32_t next[2] = { 0, 0 };
	pthread_t threads[4];
	uint64_t total = 0;

	CHECK_INT(obc_ring_init(&ring, size), OB_ERR_NONE);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, writer_main, (void *)i);
	pthread_create(&threads[2], NULL, acker_main, NULL);
	if (releases)
		pthread_create(&threads[3], NULL, releaser_main, NULL);
	while (total < 2ull * THREAD_RECORDS) {
		struct obc_batch batch;

		if (!obc_ring_pending(&ring) || !obc_ring_gather(&ring, true, &batch)) {
			sched_yield();
			continue;
		}
		obc_ring_leaving(&ring, &batch);
		const uint8_t *p = (const uint8_t *)obc_ring_at(&ring, batch.start);
		for (uint32_t i = 0; i < batch.count; i++) {
			const struct obp_record *record = (const struct obp_record *)p;
			uint32_t value;

			CHECK(record->lane < 2);
			for (uint32_t k = HEADER; k < record->size; k += 4) {
				memcpy(&value, p + k, 4);
				CHECK(value == next[record->lane]);
			}
			next[record->lane]++;
			p += record->size;
		}
		total += batch.count;
		/* the peer may be quicker than the system call returns */
		atomic_store(&to_ack, total);
		pthread_mutex_lock(&ack_lock);
		obc_ring_left(&ring, &batch);
		pthread_mutex_unlock(&ack_lock);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&over, true);
	if (releases)
		pthread_join(threads[3], NULL);
	CHECK(ring.tail == ring.head);
	obc_ring_fini(&ring);
}

TEST(two_writers_a_sender_and_acknowledgements)
{
	threads_run(4096, false);
}

TEST(memory_is_given_back_while_threads_write)
{
	threads_run(64u << 10, true);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
