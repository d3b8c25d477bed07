/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Times and counts of calls, for tools/dev/measure. Prints lines of the form "name value"; times
 * are in ns unless the name says otherwise.
 *
 *     calls MODE [NUMBER]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/waiting.h"

#define WARM_UP     500
#define SAMPLES     5000
#define SMALL_BYTES 4096
#define ROUNDS      7
#define THREADS_MAX 64
#define MANY        20000 /* modules */

static uint64_t samples[SAMPLES];

static void say_times(const char *name)
{
	char line[64];

	snprintf(line, sizeof line, "%s_p50", name);
	bench_say(line, bench_percentile(samples, SAMPLES, 0.5));
	snprintf(line, sizeof line, "%s_p99", name);
	bench_say(line, bench_percentile(samples, SAMPLES, 0.99));
}

static void sample(const char *name, void (*call)(void))
{
	for (int i = -WARM_UP; i < SAMPLES; i++) {
		uint64_t began = ob_clock_ns();

		call();
		if (i >= 0)
			samples[i] = ob_clock_ns() - began;
	}
	say_times(name);
}

/* ---- one call after another ---- */

static CUdeviceptr memory;
static CUevent before, after;

static void launch_and_wait(void)
{
	bench_launch(NULL);
	NEED(cu.cuCtxSynchronize());
}

static void read_four(void)
{
	uint32_t value;

	NEED(cu.cuMemcpyDtoH_v2(&value, memory, sizeof value));
}

static void launch_timed(void)
{
	float ms;

	NEED(cu.cuEventRecord(before, NULL));
	bench_launch(NULL);
	NEED(cu.cuEventRecord(after, NULL));
	NEED(cu.cuEventSynchronize(after));
	NEED(cu.cuEventElapsedTime(&ms, before, after));
}

static void mode_latency(unsigned unused)
{
	(void)unused;
	NEED(cu.cuMemAlloc_v2(&memory, SMALL_BYTES));
	NEED(cu.cuEventCreate(&before, 0));
	NEED(cu.cuEventCreate(&after, 0));
	sample("sync", launch_and_wait);
	sample("read", read_four);
	sample("timed", launch_timed);
}

/* Calls without a result; `each` of the printed times: until the server has executed them. */
static void mode_async(unsigned unused)
{
	enum { LAUNCHES = 50000, COPIES = 20000 };
	uint64_t issue[ROUNDS], each[ROUNDS], copy[ROUNDS];
	static uint8_t bytes[SMALL_BYTES];

	(void)unused;
	bench_fill(bytes, sizeof bytes);
	NEED(cu.cuMemAlloc_v2(&memory, 1 << 20));
	for (int r = 0; r < ROUNDS; r++) {
		uint64_t began = ob_clock_ns();

		for (int i = 0; i < LAUNCHES; i++)
			bench_launch(NULL);
		issue[r] = ob_clock_ns() - began;
		NEED(cu.cuCtxSynchronize());
		each[r] = ob_clock_ns() - began;
		began = ob_clock_ns();
		for (unsigned i = 0; i < COPIES; i++)
			NEED(cu.cuMemcpyHtoD_v2(
				memory + (i & 255) * SMALL_BYTES, bytes, SMALL_BYTES));
		NEED(cu.cuCtxSynchronize());
		copy[r] = ob_clock_ns() - began;
	}
	bench_say("launch_issue", bench_percentile(issue, ROUNDS, 0.5) / LAUNCHES);
	bench_say("launch_each", bench_percentile(each, ROUNDS, 0.5) / LAUNCHES);
	bench_say("copy_4k_each", bench_percentile(copy, ROUNDS, 0.5) / COPIES);
}

/* Allocations of sizes that a program uses again at once. */
static void mode_allocate(unsigned unused)
{
	enum { PAIRS = 10000, BYTES = 65536 };
	uint64_t took[ROUNDS];

	(void)unused;
	for (int r = 0; r < ROUNDS; r++) {
		uint64_t began = ob_clock_ns();

		for (int i = 0; i < PAIRS; i++) {
			NEED(cu.cuMemAlloc_v2(&memory, BYTES));
			NEED(cu.cuMemFree_v2(memory));
		}
		NEED(cu.cuCtxSynchronize());
		took[r] = ob_clock_ns() - began;
	}
	bench_say("pair_each", bench_percentile(took, ROUNDS, 0.5) / PAIRS);
}

/* The calls of a program that adds two vectors, for its number of round trips. */
static void mode_vectors(unsigned unused)
{
	static float a[1024], b[1024], c[1024];
	CUdeviceptr device[3];

	(void)unused;
	for (int i = 0; i < 3; i++)
		NEED(cu.cuMemAlloc_v2(&device[i], sizeof a));
	NEED(cu.cuMemcpyHtoD_v2(device[0], a, sizeof a));
	NEED(cu.cuMemcpyHtoD_v2(device[1], b, sizeof b));
	bench_launch(NULL);
	NEED(cu.cuMemcpyDtoH_v2(c, device[2], sizeof c));
	for (int i = 0; i < 3; i++)
		NEED(cu.cuMemFree_v2(device[i]));
}

/*
 * Training steps as a framework makes them: many launches on one stream, an upload, an event, and
 * four scalars read back, each with an asynchronous copy and a synchronisation.
 */
static void mode_steps(unsigned n)
{
	enum { LAUNCHES = 200, SCALARS = 4, BATCH = 4096 };
	static uint8_t pageable[BATCH];
	CUstream stream = bench_stream();
	void *pinned;

	NEED(cu.cuMemAlloc_v2(&memory, BATCH));
	NEED(cu.cuMemHostAlloc(&pinned, BATCH, 0));
	NEED(cu.cuEventCreate(&after, 0));
	for (unsigned step = 0; step < n; step++) {
		NEED(cu.cuMemcpyHtoDAsync_v2(memory, pinned, BATCH, stream));
		for (int i = 1; i <= LAUNCHES; i++) {
			bench_launch(stream);
			if (i % (LAUNCHES / SCALARS))
				continue;
			NEED(cu.cuEventRecord(after, stream));
			NEED(cu.cuMemcpyDtoHAsync_v2(
				step % 2 ? pinned : pageable, memory, sizeof(float), stream));
			NEED(cu.cuStreamSynchronize(stream));
		}
	}
}

/* ---- threads ---- */

static _Atomic bool go, stop;
static _Atomic uint64_t pairs;

static void *launch_and_wait_thread(void *unused)
{
	CUstream stream;
	uint64_t mine = 0;

	NEED(cu.cuCtxSetCurrent(bench_context));
	stream = bench_stream();
	bench_launch(stream);
	NEED(cu.cuStreamSynchronize(stream));
	while (!atomic_load(&go))
		ob_clock_relax();
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		bench_launch(stream);
		NEED(cu.cuStreamSynchronize(stream));
		mine++;
	}
	atomic_fetch_add(&pairs, mine);
	return unused;
}

/* Pairs of a launch and a synchronisation per second, of all threads together. */
static void mode_threads(unsigned n)
{
	pthread_t threads[THREADS_MAX];
	uint64_t began;

	n = n < THREADS_MAX ? n : THREADS_MAX;
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, launch_and_wait_thread, NULL))
			exit(2);
	let_pass(100000, "until all threads have made their first calls");
	began = ob_clock_ns();
	atomic_store(&go, true);
	let_pass(700000, "the time that is measured");
	atomic_store(&stop, true);
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	bench_say("pairs_per_s",
		(double)atomic_load(&pairs) * OB_SECOND / (double)(ob_clock_ns() - began));
}

static void *call_once(void *unused)
{
	NEED(cu.cuCtxSetCurrent(bench_context));
	launch_and_wait();
	atomic_store(&go, true);
	while (!atomic_load(&stop))
		waiting_look();
	return unused;
}

/* The same for one thread, while another that has also made calls sleeps. */
static void mode_second_thread(unsigned unused)
{
	CUstream stream = bench_stream();
	uint64_t began, n = 0;
	pthread_t thread;

	(void)unused;
	if (pthread_create(&thread, NULL, call_once, NULL))
		exit(2);
	while (!atomic_load(&go))
		waiting_look();
	began = ob_clock_ns();
	while (ob_clock_ns() - began < OB_SECOND / 2) {
		bench_launch(stream);
		NEED(cu.cuStreamSynchronize(stream));
		n++;
	}
	bench_say("pairs_per_s", (double)n * OB_SECOND / (double)(ob_clock_ns() - began));
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

/* ---- polling ---- */

enum { STEPS = 200 };

static void poll_until_ready(const char *what, CUresult (*query)(void))
{
	uint64_t polls = 0, spent = 0;

	for (int i = 0; i < STEPS; i++) {
		CUresult result = CUDA_ERROR_NOT_READY;
		uint64_t began;

		bench_launch(NULL);
		NEED(cu.cuEventRecord(after, NULL));
		began = ob_clock_ns();
		for (; result == CUDA_ERROR_NOT_READY; polls++)
			result = query();
		spent += ob_clock_ns() - began;
		need(result, what);
	}
	bench_say("polls", (double)polls);
	bench_say("poll_each", (double)spent / (double)polls);
}

static CUresult query_event(void)
{
	return cu.cuEventQuery(after);
}

static CUresult query_stream(void)
{
	return cu.cuStreamQuery(NULL);
}

static void mode_poll_event(unsigned unused)
{
	(void)unused;
	NEED(cu.cuEventCreate(&after, 0));
	poll_until_ready("cuEventQuery", query_event);
}

static void mode_poll_stream(unsigned unused)
{
	(void)unused;
	NEED(cu.cuEventCreate(&after, 0));
	poll_until_ready("cuStreamQuery", query_stream);
}

/* Synchronisations of a stream whose work is known to be done. */
static void mode_idle_sync(unsigned unused)
{
	CUstream stream = bench_stream();
	uint64_t began;

	(void)unused;
	bench_launch(stream);
	NEED(cu.cuStreamSynchronize(stream));
	began = ob_clock_ns();
	for (int i = 0; i < SAMPLES; i++)
		NEED(cu.cuStreamSynchronize(stream));
	bench_say("polls", SAMPLES);
	bench_say("poll_each", (double)(ob_clock_ns() - began) / SAMPLES);
}

/* ---- memory, modules, sessions ---- */

static double resident_kib(void)
{
	FILE *in = fopen("/proc/self/smaps_rollup", "r");
	unsigned long kib = 0;
	char line[256];

	while (in && fgets(line, sizeof line, in))
		if (sscanf(line, "Rss: %lu", &kib) == 1)
			break;
	if (in)
		fclose(in);
	return (double)kib;
}

/* Memory of this process: at first, after more launches than a ring holds, and idle after that. */
static void mode_memory(unsigned idle_s)
{
	bench_say("rss_start_kib", resident_kib());
	for (int i = 0; i < 1000000; i++)
		bench_launch(NULL);
	NEED(cu.cuCtxSynchronize());
	bench_say("rss_burst_kib", resident_kib());
	let_pass(idle_s * 1000000, "the process is idle");
	bench_say("rss_idle_kib", resident_kib());
}

static double unload(CUmodule *modules, int loaded, int n)
{
	uint64_t began;

	for (int i = 0; i < loaded; i++)
		NEED(cu.cuModuleLoadData(&modules[i], bench_image));
	NEED(cu.cuCtxSynchronize());
	began = ob_clock_ns();
	for (int i = 0; i < n; i++)
		NEED(cu.cuModuleUnload(modules[i]));
	NEED(cu.cuCtxSynchronize());
	return (double)(ob_clock_ns() - began) / n;
}

static void mode_modules(unsigned unused)
{
	enum { FEW = 1000 };
	static CUmodule modules[MANY];

	(void)unused;
	bench_say("unload_few", unload(modules, FEW, FEW));
	bench_say("unload_many", unload(modules, MANY, FEW));
}

/* Launches for some ms, once a line has arrived on stdin. */
static void mode_session(unsigned ms)
{
	uint64_t began, n = 0;
	char line[16];

	bench_say("ready", 1);
	if (!fgets(line, sizeof line, stdin))
		exit(2);
	began = ob_clock_ns();
	while (ob_clock_ns() - began < ms * OB_MS)
		for (int i = 0; i < 100; i++, n++)
			bench_launch(NULL);
	NEED(cu.cuCtxSynchronize());
	bench_say("launches_per_s", (double)n * OB_SECOND / (double)(ob_clock_ns() - began));
}

static const struct {
	const char *name;
	void (*run)(unsigned number);
	unsigned number; /* unless another is given */
} modes[] = {
	{ "latency", mode_latency, 0 },
	{ "async", mode_async, 0 },
	{ "allocate", mode_allocate, 0 },
	{ "vectors", mode_vectors, 0 },
	{ "steps", mode_steps, 1 },
	{ "threads", mode_threads, 8 },
	{ "second-thread", mode_second_thread, 0 },
	{ "poll-event", mode_poll_event, 0 },
	{ "poll-stream", mode_poll_stream, 0 },
	{ "idle-sync", mode_idle_sync, 0 },
	{ "memory", mode_memory, 5 },
	{ "modules", mode_modules, 0 },
	{ "session", mode_session, 1000 },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		if (argc < 2 || strcmp(argv[1], modes[i].name) != 0)
			continue;
		bench_open();
		modes[i].run(argc > 2 ? bench_number(argv[2]) : modes[i].number);
		return 0;
	}
	fprintf(stderr, "calls: the first argument is not one of the modes in %s\n", __FILE__);
	return 2;
}
