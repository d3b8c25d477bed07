/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "client-shim/session/server.h"

bool obc_timeline_on;

/* Written by the track's one writer; the atomic fields are read by the thread that ends. */
struct track {
	_Alignas(64) struct obc_timeline_event *block; /* NULL: none yet */
	_Atomic uint64_t n, dropped;                   /* events */
	/* the wait that has begun and not ended; began 0: none */
	_Atomic uint64_t began;
	uint64_t number;
	uint32_t size;
	uint16_t opcode;
};

struct timeline_state {
	char path[PATH_MAX];
	uint64_t began, limit;
	struct obc_timeline_event *pool;
	_Atomic uint16_t *owners; /* of each block: its track + 1 */
	uint32_t n_blocks;
	_Atomic uint32_t n_used; /* may exceed n_blocks */
	struct track tracks[OBC_TRACKS];
};

static OBC_PER_SERVER struct timeline_state timeline_first;
#define timeline OBC_HERE(timeline_first)

/* ---- start and end ---- */

/* The program may change its working directory before the file is written. */
static bool path_set(const char *path)
{
	char folder[PATH_MAX] = "", server[16] = "";
	int n;

	if (path[0] != '/' && !getcwd(folder, sizeof folder))
		return false;
	if (obc_server_number() > 0)
		snprintf(server, sizeof server, ".%u", obc_server_number() + 1);
	n = snprintf(timeline.path, sizeof timeline.path, "%s%s%s%s", folder,
		path[0] == '/' ? "" : "/", path, server);
	errno = ENAMETOOLONG;
	return n > 0 && (size_t)n < sizeof timeline.path;
}

static bool file_make(const char *path)
{
	/* Does not block on a pipe without a reader. */
	int fd = path_set(path)
		? open(timeline.path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644)
		: -1;

	if (fd >= 0)
		close(fd);
	else
		ob_warn("OUTBOARD_TIMELINE: cannot create %s: %s; no timeline is written", path,
			strerror(errno));
	return fd >= 0;
}

static uint64_t limit_read(void)
{
	const char *text = getenv("OUTBOARD_TIMELINE_EVENTS");
	uint64_t limit = OBC_TIMELINE_EVENTS;

	if (text && *text &&
		!ob_text_parse_number(
			text, OBC_TIMELINE_EVENTS_MIN, OBC_TIMELINE_EVENTS_MAX, &limit)) {
		ob_warn("OUTBOARD_TIMELINE_EVENTS: '%s' is not a number from %u to %u; using %u",
			text, OBC_TIMELINE_EVENTS_MIN, OBC_TIMELINE_EVENTS_MAX,
			OBC_TIMELINE_EVENTS);
		limit = OBC_TIMELINE_EVENTS;
	}
	return ob_round_up(limit, OBC_TIMELINE_BLOCK);
}

void obc_timeline_start(void)
{
	const char *path = getenv("OUTBOARD_TIMELINE");
	void *pool;

	if (!path || !*path || timeline.pool || !file_make(path))
		return;
	timeline.limit = limit_read();
	timeline.n_blocks = (uint32_t)(timeline.limit / OBC_TIMELINE_BLOCK);
	timeline.owners = calloc(timeline.n_blocks, sizeof *timeline.owners);
	pool = mmap(NULL, timeline.limit * sizeof *timeline.pool, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pool == MAP_FAILED || !timeline.owners) {
		ob_warn("OUTBOARD_TIMELINE: no memory for %llu events; no timeline is written. Set "
			"OUTBOARD_TIMELINE_EVENTS to a smaller number",
			(unsigned long long)timeline.limit);
		return;
	}
	timeline.pool = pool;
	timeline.began = ob_clock_ns();
	obc_timeline_on = true;
}

void obc_timeline_stop(void)
{
	obc_timeline_on = false;
}

void obc_timeline_forget(void)
{
	obc_timeline_on = false;
	timeline.path[0] = '\0';
}

const char *obc_timeline_path(void)
{
	return timeline.path;
}

uint64_t obc_timeline_began(void)
{
	return timeline.began;
}

uint64_t obc_timeline_limit(void)
{
	return timeline.limit;
}

/* ---- recording ---- */

static __attribute__((noinline)) bool block_take(struct track *track)
{
	uint32_t at;

	if (atomic_load_explicit(&timeline.n_used, memory_order_relaxed) >= timeline.n_blocks)
		return false;
	at = atomic_fetch_add_explicit(&timeline.n_used, 1, memory_order_relaxed);
	if (at >= timeline.n_blocks)
		return false;
	track->block = timeline.pool + (size_t)at * OBC_TIMELINE_BLOCK;
	/* Release, like n below: whoever sees the owner sees the block's earlier contents. */
	atomic_store_explicit(&timeline.owners[at], (uint16_t)(track - timeline.tracks + 1),
		memory_order_release);
	return true;
}

/* Where the track's next event goes; NULL: it is dropped. */
static inline struct obc_timeline_event *event_next(struct track *track, uint64_t *ret_n)
{
	uint64_t n = atomic_load_explicit(&track->n, memory_order_relaxed);

	if (ob_unlikely(n % OBC_TIMELINE_BLOCK == 0) && !block_take(track)) {
		atomic_store_explicit(&track->dropped,
			atomic_load_explicit(&track->dropped, memory_order_relaxed) + 1,
			memory_order_relaxed);
		return NULL;
	}
	*ret_n = n + 1;
	return &track->block[n % OBC_TIMELINE_BLOCK];
}

void obc_timeline_add(unsigned index, const struct obc_timeline_event *event)
{
	struct track *track = &timeline.tracks[index];
	struct obc_timeline_event *next;
	uint64_t n;

	next = event_next(track, &n);
	if (!next)
		return;
	*next = *event;
	/* Release: whoever sees the number sees the event. */
	atomic_store_explicit(&track->n, n, memory_order_release);
}

void obc_timeline_call(unsigned lane, uint16_t opcode, uint64_t number, uint32_t size, bool waits)
{
	struct track *track = &timeline.tracks[lane];
	struct obc_timeline_event *next;
	uint64_t n;

	if (waits) {
		track->number = number;
		track->opcode = opcode;
		track->size = size;
		atomic_store_explicit(&track->began, ob_clock_ns(), memory_order_release);
		return;
	}
	next = event_next(track, &n);
	if (!next)
		return;
	next->at = ob_clock_ns();
	next->number = number;
	next->size = size;
	next->opcode = opcode;
	/* The pool was zeroed when it was mapped, and no block is used twice. */
	atomic_store_explicit(&track->n, n, memory_order_release);
}

void obc_timeline_waited(unsigned lane, uint64_t ended)
{
	struct track *track = &timeline.tracks[lane];
	uint64_t began = atomic_load_explicit(&track->began, memory_order_relaxed);

	if (!began)
		return;
	atomic_store_explicit(&track->began, 0, memory_order_relaxed);
	obc_timeline_add(lane,
		&(struct obc_timeline_event){ .at = began,
			.took = ob_max(ended, began) - began,
			.number = track->number,
			.size = track->size,
			.opcode = track->opcode,
			.kind = OBC_EVENT_WAIT });
}

/* ---- reading ---- */

void obc_timeline_each(unsigned index,
	void (*fn)(void *user, unsigned track, const struct obc_timeline_event *event), void *user)
{
	uint64_t left = atomic_load_explicit(&timeline.tracks[index].n, memory_order_acquire);

	for (uint32_t b = 0; left && b < timeline.n_blocks; b++) {
		if (atomic_load_explicit(&timeline.owners[b], memory_order_acquire) != index + 1)
			continue;
		for (unsigned i = 0; i < OBC_TIMELINE_BLOCK && left; i++, left--)
			fn(user, index, &timeline.pool[(size_t)b * OBC_TIMELINE_BLOCK + i]);
	}
}

uint64_t obc_timeline_dropped(unsigned track)
{
	return atomic_load_explicit(&timeline.tracks[track].dropped, memory_order_relaxed);
}

bool obc_timeline_waiting(unsigned lane, struct obc_timeline_event *ret)
{
	const struct track *track = &timeline.tracks[lane];
	uint64_t began = atomic_load_explicit(&track->began, memory_order_acquire);

	if (!began)
		return false;
	*ret = (struct obc_timeline_event){ .at = began,
		.number = track->number,
		.size = track->size,
		.opcode = track->opcode,
		.kind = OBC_EVENT_WAIT };
	return true;
}
