/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The same exchanges as those of calls.c and copies.c over a bare connection, for
 * tools/dev/measure. Prints lines of the form "name value"; times are in ns. Both ends of a
 * spinning ping have a processor of their own if this process may use two: sharing one, they would
 * measure the scheduler.
 *
 *     bare ping tcp|unix spin|sleep           round trips of 64 bytes
 *     bare sizes tcp|unix spin|sleep KIB...   that many bytes and one byte back, each way
 *     bare copied tcp|unix spin|sleep KIB...  the same; the other end copies the bytes once more
 *     bare stream tcp|unix spin|sleep MS      one way for MS ms, once a line has arrived on stdin
 *     bare memcpy                             one copy of 256 MiB between touched pages
 */
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/bench/bench.h"
#include "tools/bare.h"

#define WARM_UP     500
#define SAMPLES     5000
#define REPEATS_MAX 400
#define BLOCK_BYTES ((size_t)256 << 20)
#define PIECE_BYTES ((size_t)256 << 10) /* of the other end's copy, as large as a server's */
#define LAP_BYTES \
	((size_t)8 << 20) /* of a stream, between two answers: as much as a client's ring */

static uint64_t samples[SAMPLES];

static void *memory_new(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		exit(2);
	bench_fill(memory, size);
	return memory;
}

static void ping(struct obx_bare *bare)
{
	for (int i = -WARM_UP; i < SAMPLES; i++) {
		uint64_t took = obx_bare_ping(bare);

		if (i >= 0)
			samples[i] = took;
	}
	bench_say("ping_p50", bench_percentile(samples, SAMPLES, 0.5));
	bench_say("ping_p99", bench_percentile(samples, SAMPLES, 0.99));
}

static void exchange(struct obx_bare *bare, size_t size, size_t piece)
{
	size_t n = BLOCK_BYTES / size;
	void *memory = memory_new(size);
	char name[64];

	n = n < 3 ? 3 : n < REPEATS_MAX ? n : REPEATS_MAX;
	for (int down = 0; down < 2; down++) {
		obx_bare_series(bare, down, size, (unsigned)n + 3, piece);
		for (size_t r = 0; r < n + 3; r++)
			samples[r] = obx_bare_next(bare, down, memory, size);
		snprintf(name, sizeof name, "%s_%zu", down ? "down" : "up", size >> 10);
		bench_say(name, bench_percentile(samples + 3, n, 0.5));
	}
	munmap(memory, size);
}

static void stream(struct obx_bare *bare, unsigned ms)
{
	void *memory = memory_new(LAP_BYTES);
	uint64_t began, laps = 0;
	char line[16];

	bench_say("ready", 1);
	if (!fgets(line, sizeof line, stdin))
		exit(2);
	obx_bare_series(bare, false, LAP_BYTES, UINT32_MAX, 0);
	began = ob_clock_ns();
	for (; ob_clock_ns() - began < ms * OB_MS; laps++)
		obx_bare_next(bare, false, memory, LAP_BYTES);
	bench_say("bytes_per_s",
		(double)(laps * LAP_BYTES) * OB_SECOND / (double)(ob_clock_ns() - began));
	munmap(memory, LAP_BYTES);
}

/* This end takes the first of the processors that it may use, the other end the second one. */
static void part(pid_t other)
{
	cpu_set_t mine, all;
	pid_t pid = 0;

	if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
		return;
	for (int core = 0, n = 0; n < 2; core++) {
		if (!CPU_ISSET(core, &all))
			continue;
		CPU_ZERO(&mine);
		CPU_SET(core, &mine);
		if (sched_setaffinity(pid, sizeof mine, &mine) != 0)
			perror("bare: an end has no processor of its own");
		pid = other;
		n++;
	}
}

static void copy_once(void)
{
	enum { TIMES = 5 };
	char *from = memory_new(BLOCK_BYTES), *to = memory_new(BLOCK_BYTES);

	for (int r = 0; r < TIMES; r++) {
		uint64_t began = ob_clock_ns();

		memcpy(to, from, BLOCK_BYTES);
		samples[r] = ob_clock_ns() - began;
	}
	/* The copy has a use, so that the compiler keeps it. */
	if (to[samples[0] % BLOCK_BYTES] != from[samples[0] % BLOCK_BYTES])
		exit(2);
	bench_say("memcpy", bench_percentile(samples, TIMES, 0.5));
}

int main(int argc, char **argv)
{
	struct obt_url url = { .scheme = OBT_TCP };
	struct obx_bare bare;
	bool copied;

	if (argc == 2 && strcmp(argv[1], "memcpy") == 0) {
		copy_once();
		return 0;
	}
	if (argc < 4 || (strcmp(argv[1], "stream") == 0 && argc < 5)) {
		fprintf(stderr,
			"bare: ping, sizes, copied or stream, then tcp or unix, then spin or "
			"sleep\n");
		return 2;
	}
	if (strcmp(argv[2], "unix") == 0)
		url.scheme = OBT_UNIX;
	if (!obx_bare_open(&bare, &url, strcmp(argv[3], "spin") == 0)) {
		perror("bare: no connection");
		return 2;
	}
	if (strcmp(argv[1], "ping") == 0 && bare.spin)
		part(bare.child);
	if (strcmp(argv[1], "ping") == 0)
		ping(&bare);
	if (strcmp(argv[1], "stream") == 0)
		stream(&bare, bench_number(argv[4]));
	copied = strcmp(argv[1], "copied") == 0;
	for (int i = 4; i < argc && (copied || strcmp(argv[1], "sizes") == 0); i++)
		exchange(&bare, (size_t)bench_number(argv[i]) << 10, copied ? PIECE_BYTES : 0);
	obx_bare_close(&bare);
	return 0;
}
