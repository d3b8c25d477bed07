/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Asynchronous copies between pinned memory and the device, mixed at random with everything that
 * must keep its order with them. A model of the device's memory says what each read must bring.
 * Exit code 0: every read was right and every call succeeded.
 *
 *     background SEED STEPS THREADS
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tests/e2e/calls.h"

#define STREAMS 4
#define BUFFERS 6
#define EVENTS  8
#define BYTES   (3u << 20)
#define THREADS 8

static CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext),
	(*synchronize)(void), (*alloc)(CUdeviceptr *, size_t), (*release)(CUdeviceptr),
	(*host_alloc)(void **, size_t, unsigned), (*host_release)(void *),
	(*up)(CUdeviceptr, const void *, size_t), (*down)(void *, CUdeviceptr, size_t),
	(*up_async)(CUdeviceptr, const void *, size_t, CUstream),
	(*down_async)(void *, CUdeviceptr, size_t, CUstream),
	(*across)(CUdeviceptr, CUdeviceptr, size_t, CUstream),
	(*fill)(CUdeviceptr, unsigned char, size_t, CUstream), (*stream_new)(CUstream *, unsigned),
	(*stream_drop)(CUstream), (*stream_sync)(CUstream), (*stream_query)(CUstream),
	(*stream_wait)(CUstream, CUevent, unsigned), (*event_new)(CUevent *, unsigned),
	(*event_drop)(CUevent), (*event_record)(CUevent, CUstream), (*event_sync)(CUevent),
	(*event_query)(CUevent), (*host_func)(CUstream, CUhostFn, void *);
static CUcontext ctx;

struct buffer {
	CUdeviceptr device;
	uint8_t *up, *down;        /* pinned */
	uint8_t *model, *expected; /* of the device's memory; of `down` */
	unsigned owner;            /* stream whose work the buffer belongs to */
	int up_at, down_at;        /* streams that may still use them; -1: none */
	size_t down_size;
	_Atomic int called; /* host functions that are not over */
};

struct work {
	unsigned index, steps;
	uint64_t seed;
	CUstream streams[STREAMS];
	bool apart[STREAMS]; /* does not wait for the legacy stream */
	struct buffer buffers[BUFFERS];
	CUevent events[EVENTS];
	uint8_t *small;
};

static uint64_t next(struct work *w)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return w->seed;
}

static size_t below(struct work *w, size_t n)
{
	return (size_t)(next(w) >> 11) % n;
}

static void wrong(const struct work *w, const struct buffer *b, const char *where)
{
	size_t at = 0;

	while (at < b->down_size && b->down[at] == b->expected[at])
		at++;
	printf("thread %u: %s: byte %zu of %zu of buffer %ld is %u, not %u\n", w->index, where, at,
		b->down_size, (long)(b - w->buffers), b->down[at], b->expected[at]);
	fflush(stdout);
	_Exit(1);
}

static void read_check(const struct work *w, struct buffer *b, const char *where)
{
	if (memcmp(b->down, b->expected, b->down_size) != 0)
		wrong(w, b, where);
}

/* All work of the stream has been waited for. */
static void passed(struct work *w, unsigned stream, const char *how)
{
	for (unsigned i = 0; i < BUFFERS; i++) {
		struct buffer *b = &w->buffers[i];

		if (b->up_at == (int)stream)
			b->up_at = -1;
		if (b->down_at == (int)stream) {
			read_check(w, b, how);
			b->down_at = -1;
		}
	}
}

static void wait_for(struct work *w, unsigned stream)
{
	CUevent event = w->events[below(w, EVENTS)];
	CUresult result;

	switch (below(w, 5)) {
	case 0:
		need(stream_sync(w->streams[stream]), "cuStreamSynchronize");
		passed(w, stream, "after cuStreamSynchronize");
		break;
	case 1:
		need(event_record(event, w->streams[stream]), "cuEventRecord");
		need(event_sync(event), "cuEventSynchronize");
		passed(w, stream, "after cuEventSynchronize");
		break;
	case 2:
		need(event_record(event, w->streams[stream]), "cuEventRecord");
		while ((result = event_query(event)) == CUDA_ERROR_NOT_READY)
			sched_yield();
		need(result, "cuEventQuery");
		passed(w, stream, "after cuEventQuery");
		break;
	case 3:
		while ((result = stream_query(w->streams[stream])) == CUDA_ERROR_NOT_READY)
			sched_yield();
		need(result, "cuStreamQuery");
		passed(w, stream, "after cuStreamQuery");
		break;
	default:
		need(synchronize(), "cuCtxSynchronize");
		for (unsigned i = 0; i < STREAMS; i++)
			passed(w, i, "after cuCtxSynchronize");
		break;
	}
}

static size_t some_size(struct work *w)
{
	static const size_t limits[] = { 64, 5000, 70000, 300000, 1u << 20, BYTES };
	size_t size = 1 + below(w, limits[below(w, 6)]);

	return size;
}

static void upload(struct work *w, struct buffer *b)
{
	size_t size = some_size(w), at = below(w, BYTES - size + 1);

	if (b->up_at >= 0)
		wait_for(w, (unsigned)b->up_at);
	if (b->up_at >= 0)
		return;
	for (size_t i = 0; i < size; i += 64)
		b->up[at + i] = (uint8_t)next(w);
	memset(b->up + at, (int)below(w, 256), size < 64 ? size : 64);
	need(up_async(b->device + at, b->up + at, size, w->streams[b->owner]), "cuMemcpyHtoDAsync");
	memcpy(b->model + at, b->up + at, size);
	b->up_at = (int)b->owner;
}

static void download(struct work *w, struct buffer *b)
{
	size_t size = some_size(w), at = below(w, BYTES - size + 1);

	if (b->down_at >= 0)
		wait_for(w, (unsigned)b->down_at);
	while (atomic_load(&b->called))
		sched_yield();
	memset(b->down, 0xdd, size);
	need(down_async(b->down, b->device + at, size, w->streams[b->owner]), "cuMemcpyDtoHAsync");
	memcpy(b->expected, b->model + at, size);
	b->down_size = size;
	b->down_at = (int)b->owner;
}

struct call {
	struct work *work;
	struct buffer *buffer;
};

static void called(void *user)
{
	struct call *call = user;

	read_check(call->work, call->buffer, "in a host function");
	atomic_fetch_sub(&call->buffer->called, 1);
	free(call);
}

static void call_back(struct work *w, struct buffer *b)
{
	struct call *call = malloc(sizeof *call);

	if (!call || b->down_at < 0) {
		free(call);
		return;
	}
	*call = (struct call){ w, b };
	atomic_fetch_add(&b->called, 1);
	need(host_func(w->streams[b->down_at], called, call), "cuLaunchHostFunc");
}

/* Through the legacy stream, which waits for blocking streams only. */
static void blocking(struct work *w, struct buffer *b)
{
	size_t size = some_size(w), at = below(w, BYTES - size + 1);

	if (w->apart[b->owner]) {
		need(stream_sync(w->streams[b->owner]), "cuStreamSynchronize");
		passed(w, b->owner, "before a blocking copy");
	}
	if (below(w, 2)) {
		need(down(w->small, b->device + at, size), "cuMemcpyDtoH");
		if (memcmp(w->small, b->model + at, size) != 0) {
			printf("thread %u: cuMemcpyDtoH brought wrong bytes\n", w->index);
			fflush(stdout);
			_Exit(1);
		}
	} else {
		memset(w->small, (int)below(w, 256), size);
		need(up(b->device + at, w->small, size), "cuMemcpyHtoD");
		memcpy(b->model + at, w->small, size);
		/* Up to 64 KiB it may return before the bytes are on the device. */
		if (w->apart[b->owner] && size <= 64u << 10)
			need(stream_sync(NULL), "cuStreamSynchronize");
	}
}

/* The buffer's further work goes to another stream. */
static void move(struct work *w, struct buffer *b)
{
	CUevent event = w->events[below(w, EVENTS)];
	unsigned to = (unsigned)below(w, STREAMS);

	need(event_record(event, w->streams[b->owner]), "cuEventRecord");
	need(stream_wait(w->streams[to], event, 0), "cuStreamWaitEvent");
	b->owner = to;
}

static void across_copy(struct work *w, struct buffer *b)
{
	struct buffer *from = &w->buffers[below(w, BUFFERS)];
	size_t size = some_size(w), at = below(w, BYTES - size + 1);

	if (from == b || from->owner != b->owner)
		return;
	need(across(b->device + at, from->device + at, size, w->streams[b->owner]),
		"cuMemcpyDtoDAsync");
	memcpy(b->model + at, from->model + at, size);
}

static void filled(struct work *w, struct buffer *b)
{
	size_t size = some_size(w), at = below(w, BYTES - size + 1);
	uint8_t value = (uint8_t)next(w);

	need(fill(b->device + at, value, size, w->streams[b->owner]), "cuMemsetD8Async");
	memset(b->model + at, value, size);
}

/* Ends something and makes it anew. */
static void renew(struct work *w, struct buffer *b)
{
	unsigned i = (unsigned)below(w, EVENTS), s = 1 + (unsigned)below(w, STREAMS - 1);

	switch (below(w, 4)) {
	case 0:
		need(event_drop(w->events[i]), "cuEventDestroy");
		need(event_new(&w->events[i], 0), "cuEventCreate");
		break;
	case 1:
		need(stream_sync(w->streams[s]), "cuStreamSynchronize");
		passed(w, s, "before cuStreamDestroy");
		need(stream_drop(w->streams[s]), "cuStreamDestroy");
		w->apart[s] = below(w, 2) != 0;
		need(stream_new(&w->streams[s], w->apart[s]), "cuStreamCreate");
		break;
	case 2:
		need(release(b->device), "cuMemFree");
		need(alloc(&b->device, BYTES), "cuMemAlloc");
		need(fill(b->device, 7, BYTES, w->streams[b->owner]), "cuMemsetD8Async");
		memset(b->model, 7, BYTES);
		break;
	default:
		/* Freeing pinned memory waits for the copies that use it. */
		while (atomic_load(&b->called))
			sched_yield();
		need(host_release(b->up), "cuMemFreeHost");
		need(host_alloc((void **)&b->up, BYTES, 0), "cuMemHostAlloc");
		b->up_at = -1;
		break;
	}
}

static void *work_main(void *argument)
{
	static void (*const steps[])(struct work * w, struct buffer * b) = { upload, upload, upload,
		download, download, download, filled, across_copy, move, blocking, call_back,
		renew };
	struct work *w = argument;

	need(set(ctx), "cuCtxSetCurrent");
	w->small = malloc(BYTES);
	for (unsigned i = 0; i < EVENTS; i++)
		need(event_new(&w->events[i], 0), "cuEventCreate");
	for (unsigned i = 1; i < STREAMS; i++) {
		w->apart[i] = i > 1;
		need(stream_new(&w->streams[i], w->apart[i]), "cuStreamCreate");
	}
	for (unsigned i = 0; i < BUFFERS; i++) {
		struct buffer *b = &w->buffers[i];

		b->owner = i % STREAMS;
		b->up_at = b->down_at = -1;
		b->model = calloc(1, BYTES);
		b->expected = calloc(1, BYTES);
		need(host_alloc((void **)&b->up, BYTES, 0), "cuMemHostAlloc");
		need(host_alloc((void **)&b->down, BYTES, 0), "cuMemHostAlloc");
		need(alloc(&b->device, BYTES), "cuMemAlloc");
		need(fill(b->device, 0, BYTES, w->streams[b->owner]), "cuMemsetD8Async");
	}
	for (unsigned i = 0; i < w->steps; i++)
		steps[below(w, sizeof steps / sizeof *steps)](w, &w->buffers[below(w, BUFFERS)]);
	need(synchronize(), "cuCtxSynchronize");
	for (unsigned i = 0; i < STREAMS; i++)
		passed(w, i, "at the end");
	for (unsigned i = 0; i < BUFFERS; i++) {
		need(down(w->small, w->buffers[i].device, BYTES), "cuMemcpyDtoH");
		if (memcmp(w->small, w->buffers[i].model, BYTES) != 0) {
			printf("thread %u: buffer %u is wrong at the end\n", w->index, i);
			fflush(stdout);
			_Exit(1);
		}
		while (atomic_load(&w->buffers[i].called))
			sched_yield();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct work works[THREADS];
	pthread_t threads[THREADS];
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	unsigned steps = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 300,
		 n = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1;
	void *library = library_open();

#define GET(name, symbol) *(void **)&name = dlsym(library, symbol)
	GET(init, "cuInit");
	GET(retain, "cuDevicePrimaryCtxRetain");
	GET(set, "cuCtxSetCurrent");
	GET(synchronize, "cuCtxSynchronize");
	GET(alloc, "cuMemAlloc_v2");
	GET(release, "cuMemFree_v2");
	GET(host_alloc, "cuMemHostAlloc");
	GET(host_release, "cuMemFreeHost");
	GET(up, "cuMemcpyHtoD_v2");
	GET(down, "cuMemcpyDtoH_v2");
	GET(up_async, "cuMemcpyHtoDAsync_v2");
	GET(down_async, "cuMemcpyDtoHAsync_v2");
	GET(across, "cuMemcpyDtoDAsync_v2");
	GET(fill, "cuMemsetD8Async");
	GET(stream_new, "cuStreamCreate");
	GET(stream_drop, "cuStreamDestroy_v2");
	GET(stream_sync, "cuStreamSynchronize");
	GET(stream_query, "cuStreamQuery");
	GET(stream_wait, "cuStreamWaitEvent");
	GET(event_new, "cuEventCreate");
	GET(event_drop, "cuEventDestroy_v2");
	GET(event_record, "cuEventRecord");
	GET(event_sync, "cuEventSynchronize");
	GET(event_query, "cuEventQuery");
	GET(host_func, "cuLaunchHostFunc");
	need(init(0), "cuInit");
	need(retain(&ctx, 0), "cuDevicePrimaryCtxRetain");
	if (n < 1 || n > THREADS)
		return 2;
	for (unsigned i = 0; i < n; i++) {
		works[i] = (struct work){
			.index = i, .steps = steps, .seed = (seed + i) * 0x9e3779b97f4a7c15u | 1
		};
		pthread_create(&threads[i], NULL, work_main, &works[i]);
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("done\n");
	return 0;
}
