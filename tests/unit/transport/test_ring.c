/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * One direction through shared memory: order, wrapping, full and empty, rewinding, wake-ups, and a
 * peer that writes any values into the header.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/check.h"
#include "tests/test.h"
#include "transport/ring.h"

#define SIZE         (64u << 10)
#define PAGE         4096u
#define STREAM_BYTES (32u << 20)

/* Memory between guard pages. */
static uint8_t *guarded(size_t size)
{
	uint8_t *p = mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED && mprotect(p + PAGE, size, PROT_READ | PROT_WRITE) == 0);
	return p + PAGE;
}

static struct obt_ring_shared shared;
static struct obt_ring_writer w;
static struct obt_ring_reader r;
static uint8_t out[2 * SIZE], in[2 * SIZE];

static void begin(uint64_t size)
{
	uint8_t *data = guarded(size);

	memset(&shared, 0, sizeof shared);
	obt_ring_writer_init(&w, &shared, data, size);
	obt_ring_reader_init(&r, &shared, data, size);
	for (size_t i = 0; i < sizeof out; i++)
		out[i] = (uint8_t)(i * 2654435761u >> 9);
}

static ssize_t put(const void *data, size_t size)
{
	struct iovec iov = { (void *)(uintptr_t)data, size };

	return obt_ring_write(&w, &iov, 1, -1);
}

TEST(empty_full_and_around)
{
	uint64_t at = 0;

	begin(SIZE);
	CHECK_INT(obt_ring_read(&r, in, sizeof in, -1), 0);
	CHECK(!obt_ring_readable(&r) && obt_ring_writable(&w) && !obt_ring_unread(&shared));
	for (unsigned turn = 0; turn < 20; turn++) {
		CHECK_INT(put(out + at, SIZE), SIZE);
		CHECK_INT(put(out, 1), 0);
		CHECK(!obt_ring_writable(&w) && obt_ring_readable(&r) && obt_ring_unread(&shared));
		CHECK_INT(obt_ring_read(&r, in, 1000, -1), 1000);
		CHECK(obt_ring_writable(&w));
		CHECK_INT(put(out + at + SIZE, 3000), 1000);
		CHECK_INT(obt_ring_read(&r, in + 1000, sizeof in, -1), SIZE);
		CHECK(memcmp(in, out + at, SIZE + 1000) == 0);
		CHECK_INT(obt_ring_read(&r, in, 1, -1), 0);
		/* a different position in the ring for the next turn */
		CHECK_INT(put(out, turn * 37), turn * 37);
		CHECK_INT(obt_ring_read(&r, in, sizeof in, -1), turn * 37);
		at = (at + 4099) % (SIZE - 1000);
	}
}

TEST(pieces_go_out_together)
{
	struct iovec iov[4] = { { out, 48 }, { out + 48, 0 }, { out + 48, 8 }, { out + 56, 300 } };

	begin(SIZE);
	CHECK_INT(obt_ring_write(&w, iov, 4, -1), 356);
	CHECK_INT(atomic_load(&shared.head), 356);
	CHECK_INT(obt_ring_read(&r, in, sizeof in, -1), 356);
	CHECK(memcmp(in, out, 356) == 0);
}

TEST(short_messages_stay_in_few_pages)
{
	begin(1u << 20);
	for (unsigned i = 0; i < 100000; i++) {
		CHECK_INT(put(out + i % 777, 100), 100);
		CHECK(((w.head - 1) & (w.size - 1)) < OBT_RING_REWIND + 100);
		CHECK_INT(obt_ring_read(&r, in, sizeof in, -1), 100);
		CHECK(memcmp(in, out + i % 777, 100) == 0);
	}
	CHECK(w.head > 100 * w.size); /* it wrapped by rewinding */
	/* It must not rewind while bytes are unread. */
	for (unsigned i = 0; i < 1000; i++)
		CHECK_INT(put(out + i, 100), 100);
	for (unsigned i = 0; i < 1000; i++) {
		CHECK_INT(obt_ring_read(&r, in, 100, -1), 100);
		CHECK(memcmp(in, out + i, 100) == 0);
	}
	CHECK_INT(obt_ring_read(&r, in, 100, -1), 0);
}

TEST(full_right_after_it_started_over)
{
	begin(SIZE);
	CHECK_INT(put(out, OBT_RING_REWIND + 8), OBT_RING_REWIND + 8);
	CHECK_INT(obt_ring_read(&r, in, sizeof in, -1), OBT_RING_REWIND + 8);
	/* all of it, although the reader's last published position is older */
	CHECK_INT(put(out, sizeof out), SIZE);
	CHECK_INT(put(out, 1), 0);
	CHECK_INT(obt_ring_read(&r, in, sizeof in, -1), SIZE);
	CHECK(memcmp(in, out, SIZE) == 0);
}

TEST(who_sleeps_is_woken)
{
	struct iovec iov = { out, 10 };
	char bytes[8];
	int fds[2];

	begin(SIZE);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	CHECK_INT(obt_ring_write(&w, &iov, 1, fds[0]), 10);
	CHECK_INT(recv(fds[1], bytes, sizeof bytes, MSG_DONTWAIT), -1); /* no sleeper: no byte */
	atomic_store(&shared.reader_asleep, OBT_ASLEEP_SOCKET);
	CHECK_INT(obt_ring_write(&w, &iov, 1, fds[0]), 10);
	CHECK_INT(obt_ring_write(&w, &iov, 1, fds[0]), 10);
	CHECK_INT(recv(fds[1], bytes, sizeof bytes, MSG_DONTWAIT), 1); /* once */
	CHECK_INT(atomic_load(&shared.reader_asleep), OBT_AWAKE);
	/* A writer is not woken for every byte that is read. */
	CHECK_INT(put(out, SIZE), SIZE - 30);
	atomic_store(&shared.writer_asleep, OBT_ASLEEP_SOCKET);
	CHECK_INT(obt_ring_read(&r, in, 100, fds[1]), 100);
	CHECK_INT(recv(fds[0], bytes, sizeof bytes, MSG_DONTWAIT), -1);
	CHECK_INT(obt_ring_read(&r, in, SIZE / 4, fds[1]), SIZE / 4);
	CHECK_INT(recv(fds[0], bytes, sizeof bytes, MSG_DONTWAIT), 1);
	close(fds[0]);
	close(fds[1]);
}

static void *futex_sleeper(void *user)
{
	struct timespec ts = { .tv_sec = WAITING_LONG_S };

	atomic_store((_Atomic pid_t *)user, gettid());
	while (atomic_load(&shared.writer_asleep) == OBT_ASLEEP_FUTEX)
		syscall(SYS_futex, &shared.writer_asleep, FUTEX_WAIT, OBT_ASLEEP_FUTEX, &ts, NULL,
			0);
	return NULL;
}

TEST(who_sleeps_on_the_word_is_woken)
{
	_Atomic pid_t tid = 0;
	pthread_t thread;

	begin(SIZE);
	CHECK_INT(put(out, SIZE), SIZE);
	atomic_store(&shared.writer_asleep, OBT_ASLEEP_FUTEX);
	CHECK(pthread_create(&thread, NULL, futex_sleeper, &tid) == 0);
	UNTIL(tid != 0 && thread_asleep(tid));
	CHECK_INT(obt_ring_read(&r, in, SIZE, -1), SIZE);
	CHECK(pthread_join(thread, NULL) == 0);
}

/* ---- two threads ---- */

static uint64_t next(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

static uint8_t byte_at(uint64_t at)
{
	return (uint8_t)(at * 2654435761u >> 11);
}

static void *write_main(void *user)
{
	uint64_t random = 88172645463325252u, at = 0;
	static uint8_t piece[3000];

	(void)user;
	while (at < STREAM_BYTES) {
		size_t size = ob_min(next(&random) % (next(&random) % 8 ? 200 : sizeof piece) + 1,
			       STREAM_BYTES - at),
		       sent = 0;

		for (size_t i = 0; i < size; i++)
			piece[i] = byte_at(at + i);
		while (sent < size) {
			ssize_t n = put(piece + sent, size - sent);

			if (n < 0)
				return "the writer was told that the numbers are wrong";
			if (n == 0)
				sched_yield();
			sent += (size_t)n;
		}
		at += size;
	}
	return NULL;
}

TEST(two_threads)
{
	uint64_t random = 362436069, at = 0;
	pthread_t thread;
	void *wrong;

	begin(SIZE);
	CHECK(pthread_create(&thread, NULL, write_main, NULL) == 0);
	while (at < STREAM_BYTES) {
		ssize_t n = obt_ring_read(&r, in, next(&random) % 5000 + 1, -1);

		CHECK(n >= 0);
		if (n == 0)
			sched_yield();
		for (ssize_t i = 0; i < n; i++)
			if (in[i] != byte_at(at + (uint64_t)i))
				CHECK_INT(at + (uint64_t)i, -1);
		at += (uint64_t)n;
	}
	CHECK(pthread_join(thread, &wrong) == 0);
	CHECK(!wrong);
}

/* ---- a malicious peer ---- */

/* Numbers near the boundaries: the present value, the ring's size, the ends of the range. */
static uint64_t hostile(uint64_t *random, uint64_t have)
{
	switch (next(random) % 8) {
	case 0:
		return have;
	case 1:
		return have + next(random) % (2 * SIZE + 2);
	case 2:
		return have - next(random) % (2 * SIZE + 2);
	case 3:
		return ob_round_up(have, SIZE) + SIZE * (next(random) % 3);
	case 4:
		return UINT64_MAX - next(random) % (2 * SIZE);
	case 5:
		return 1ull << (next(random) % 64);
	case 6:
		return have + SIZE;
	default:
		return next(random);
	}
}

/*
 * Guard pages end the test on a wrong access. A result is never larger than requested, and never
 * larger than the ring without reading the header again.
 */
TEST(numbers_that_cannot_be)
{
	uint64_t random = 521288629, refused = 0, moved = 0;

	begin(SIZE);
	for (unsigned i = 0; i < 200000; i++) {
		size_t size = next(&random) % 3 ? next(&random) % 300 : next(&random) % sizeof in;
		ssize_t n;

		if (next(&random) % 3 == 0)
			atomic_store(&shared.head, hostile(&random, r.tail));
		if (next(&random) % 8 == 0)
			atomic_store(&shared.base, hostile(&random, r.tail));
		if (next(&random) % 3 == 0)
			atomic_store(&shared.tail, hostile(&random, w.head));
		n = next(&random) % 2 ? put(out, size) : obt_ring_read(&r, in, size, -1);
		CHECK(n <= (ssize_t)size && n >= -1);
		CHECK(n >= 0 || errno == EPROTO);
		CHECK(w.head - w.tail <= SIZE && r.head - r.tail <= SIZE);
		obt_ring_readable(&r);
		obt_ring_writable(&w);
		refused += n < 0;
		moved += n > 0;
		if (i % 1000 == 0) { /* a refused stream has ended: begin another */
			memset(&shared, 0, sizeof shared);
			obt_ring_writer_init(&w, &shared, w.data, SIZE);
			obt_ring_reader_init(&r, &shared, w.data, SIZE);
		}
	}
	CHECK(refused > 10000 && moved > 10000);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
