/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Times of copies, for tools/dev/measure. Prints lines of the form "name value"; times are in ns.
 *
 *     copies sizes pageable|pinned KIB...   whole copies, each way
 *     copies async pageable|pinned          how long an asynchronous copy blocks its caller
 *     copies beside MIB                     a small read alone, and while so much is uploaded
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/bench/bench.h"

#define REPEATS_MAX 400
#define WARM_UP     3
#define BLOCK_BYTES ((size_t)256 << 20)
#define READS_MAX   200000
#define READS_ALONE 1000 /* before the upload */

static uint64_t up[REPEATS_MAX], down[REPEATS_MAX];

static void *host_memory(bool pinned, size_t size)
{
	void *memory = NULL;

	if (pinned) {
		NEED(cu.cuMemHostAlloc(&memory, size, 0));
	} else {
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (memory == MAP_FAILED)
			exit(2);
	}
	bench_fill(memory, size);
	return memory;
}

static void host_free(bool pinned, void *memory, size_t size)
{
	if (pinned)
		NEED(cu.cuMemFreeHost(memory));
	else
		munmap(memory, size);
}

static int repeats(size_t size)
{
	size_t n = BLOCK_BYTES / size;

	return n < 3 ? 3 : n < REPEATS_MAX ? (int)n : REPEATS_MAX;
}

static void copy_size(bool pinned, size_t size)
{
	int n = repeats(size);
	void *host = host_memory(pinned, size);
	CUdeviceptr device;
	char name[64];

	NEED(cu.cuMemAlloc_v2(&device, size));
	for (int r = -WARM_UP; r < n; r++) {
		uint64_t began = ob_clock_ns();

		NEED(cu.cuMemcpyHtoD_v2(device, host, size));
		NEED(cu.cuCtxSynchronize());
		up[r < 0 ? 0 : r] = ob_clock_ns() - began;
	}
	for (int r = -WARM_UP; r < n; r++) {
		uint64_t began = ob_clock_ns();

		NEED(cu.cuMemcpyDtoH_v2(host, device, size));
		down[r < 0 ? 0 : r] = ob_clock_ns() - began;
	}
	snprintf(name, sizeof name, "up_%zu", size >> 10);
	bench_say(name, bench_percentile(up, (size_t)n, 0.5));
	snprintf(name, sizeof name, "down_%zu", size >> 10);
	bench_say(name, bench_percentile(down, (size_t)n, 0.5));
	NEED(cu.cuMemFree_v2(device));
	host_free(pinned, host, size);
}

static void async_blocks(bool pinned)
{
	enum { TIMES = 3 };
	void *host = host_memory(pinned, BLOCK_BYTES);
	CUstream stream = bench_stream();
	CUdeviceptr device;

	NEED(cu.cuMemAlloc_v2(&device, BLOCK_BYTES));
	for (int r = -1; r < TIMES; r++) {
		uint64_t began = ob_clock_ns();

		NEED(cu.cuMemcpyHtoDAsync_v2(device, host, BLOCK_BYTES, stream));
		up[r < 0 ? 0 : r] = ob_clock_ns() - began;
		NEED(cu.cuStreamSynchronize(stream));
		began = ob_clock_ns();
		NEED(cu.cuMemcpyDtoHAsync_v2(host, device, BLOCK_BYTES, stream));
		down[r < 0 ? 0 : r] = ob_clock_ns() - began;
		NEED(cu.cuStreamSynchronize(stream));
	}
	bench_say("up_blocks", bench_percentile(up, TIMES, 0.5));
	bench_say("down_blocks", bench_percentile(down, TIMES, 0.5));
}

/* ---- a small read beside a large upload ---- */

struct upload {
	CUdeviceptr device;
	void *host;
	size_t bytes;
	_Atomic bool started, done;
};

static void *upload_main(void *user)
{
	struct upload *upload = user;
	CUstream stream;

	NEED(cu.cuCtxSetCurrent(bench_context));
	stream = bench_stream();
	atomic_store(&upload->started, true);
	NEED(cu.cuMemcpyHtoDAsync_v2(upload->device, upload->host, upload->bytes, stream));
	NEED(cu.cuStreamSynchronize(stream));
	atomic_store(&upload->done, true);
	return NULL;
}

static uint64_t read_small(void *answer, CUdeviceptr from, CUstream stream)
{
	uint64_t began = ob_clock_ns();

	NEED(cu.cuMemcpyDtoHAsync_v2(answer, from, sizeof(uint32_t), stream));
	NEED(cu.cuStreamSynchronize(stream));
	return ob_clock_ns() - began;
}

/* The reads come from a second thread, because the call that starts the upload may block. */
static void read_beside(size_t bytes)
{
	static uint64_t took[READS_MAX];
	struct upload upload = { .host = host_memory(true, bytes), .bytes = bytes };
	CUdeviceptr small;
	size_t n = 0;
	pthread_t thread;
	CUstream stream = bench_stream();
	double alone;
	void *answer;

	NEED(cu.cuMemAlloc_v2(&upload.device, bytes));
	NEED(cu.cuMemAlloc_v2(&small, sizeof(uint32_t)));
	NEED(cu.cuMemHostAlloc(&answer, sizeof(uint32_t), 0));
	NEED(cu.cuCtxSynchronize());
	for (size_t r = 0; r < READS_ALONE; r++)
		took[r] = read_small(answer, small, stream);
	alone = bench_percentile(took, READS_ALONE, 0.5);
	if (pthread_create(&thread, NULL, upload_main, &upload))
		exit(2);
	while (!atomic_load(&upload.started))
		ob_clock_relax();
	while (!atomic_load(&upload.done) && n < READS_MAX)
		took[n++] = read_small(answer, small, stream);
	pthread_join(thread, NULL);
	bench_say("reads", (double)n);
	bench_say("alone_p50", alone);
	bench_say("read_p50", bench_percentile(took, n, 0.5));
	bench_say("read_p99", bench_percentile(took, n, 0.99));
	bench_say("read_worst", bench_percentile(took, n, 1));
	/* what a read waits for, above its time without the upload */
	bench_say("extra_p99", bench_percentile(took, n, 0.99) - alone);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	bool pinned = argc > 2 && strcmp(argv[2], "pinned") == 0;

	if (strcmp(mode, "sizes") == 0 && argc > 3) {
		bench_open();
		for (int i = 3; i < argc; i++)
			copy_size(pinned, (size_t)bench_number(argv[i]) << 10);
	} else if (strcmp(mode, "async") == 0 && argc > 2) {
		bench_open();
		async_blocks(pinned);
	} else if (strcmp(mode, "beside") == 0 && argc > 2) {
		bench_open();
		read_beside((size_t)bench_number(argv[2]) << 20);
	} else {
		fprintf(stderr,
			"copies: sizes pageable|pinned KIB..., async pageable|pinned, beside "
			"MIB\n");
		return 2;
	}
	return 0;
}
