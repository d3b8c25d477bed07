/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The stats page: memory that the supervisor shares with one worker, so that each can read the
 * other's numbers at any time without a message, a lock or a system call, also when the worker
 * hangs or has died. The worker writes everything but `yield`. The supervisor creates the memory
 * and passes it to the worker as descriptor OBS_STATS_PAGE_FD; a worker without it (tests) writes
 * to memory of its own.
 *
 * The supervisor trusts nothing in it: a worker that its client has taken over can write anything
 * at any time. Each number is atomic and is read once, so that the value that was checked is the
 * value that is used; there is no bool, which has invalid values; texts are copied first, then
 * terminated and cleaned. Numbers are only shown or summed.
 */
#ifndef OBS_STATS_PAGE_H
#define OBS_STATS_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/control.h"
#include "protocol/load.h"
#include "server/common/limits.h"

#define OBS_STATS_PAGE_FD 4
#define OBS_SHARE_WHY_MAX 256u

struct obs_stats_page_device {
	char name[OBP_LOAD_NAME_MAX];
	uint8_t uuid[16];
	uint64_t total;
	uint32_t units, clock_khz, capability, ptx_only;
	uint32_t share_by;      /* what it offers, as in struct obp_load_device */
	struct obp_facts facts; /* as the driver's attributes tell */
};

struct obs_stats_page {
	/* Written before the worker reports that it is ready; read after that. */
	_Atomic uint32_t n_devices;
	_Atomic uint32_t cuda_version; /* of the driver */
	struct obs_stats_page_device devices[OBP_DEVICE_MAX];
	char sandbox[OBP_SANDBOX_MAX]; /* before there is a client */
	/* why a device does not offer the first method of --share-by; empty: all do */
	char share_why[OBS_SHARE_WHY_MAX];
	/* Written once after the hello, before `introduced` (release). */
	char program[OBP_LOAD_NAME_MAX];
	_Atomic uint64_t pid, memory_limit;
	_Atomic uint32_t share, priority;
	_Atomic uint32_t share_by; /* enum obp_share_by; green may turn into throttle later */
	_Atomic uint32_t introduced;
	/* Independent counters, relaxed. */
	_Atomic uint64_t calls, replies, bytes_in, bytes_out, refusals;
	_Atomic uint64_t device_ns, throttled_ns;
	/* chunks of uploads that the client asked for */
	_Atomic uint64_t cache_hits, cache_misses;
	_Atomic uint64_t cache_bytes; /* copied to devices from the cache */
	/* when a change in executed records was last seen */
	_Atomic uint64_t last_ns;
	_Atomic uint64_t used[OBP_DEVICE_MAX]; /* bytes charged on each device */
	/* bytes of host memory counted in all, and for each purpose */
	_Atomic uint64_t host_used;
	_Atomic uint64_t host[OBS_HOLD_PURPOSES];
	_Atomic uint32_t throttle; /* enum obp_throttle */
	/* the executor waits for bytes from the client: only then a session is idle */
	_Atomic uint32_t waiting;
	/* calls that wait for the device on other threads than the executor's */
	_Atomic uint32_t blocked;
	/*
	 * How many of these threads wait for no device: for the session's share, for sessions of
	 * higher priority, as a penalty, or until the client reads
	 */
	_Atomic uint32_t held_back;
	/*
	 * Written by the supervisor: hold launches back, a session of higher priority is working.
	 */
	_Atomic bool yield;
};

/* This worker's stats page. Never NULL. */
extern struct obs_stats_page *obs_stats_page;

/* Worker, at its start: maps OBS_STATS_PAGE_FD if it is a stats page. */
void obs_stats_page_adopt(void);
/*
 * Supervisor: creates a stats page; the caller passes *ret_fd to the worker and closes it. NULL: no
 * memory.
 */
struct obs_stats_page *obs_stats_page_new(int *ret_fd);
void obs_stats_page_free(struct obs_stats_page *page);

static inline uint64_t obs_stats_page_read(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Worker: this thread, which executes a call, waits for no device until the end. */
static inline void obs_stats_page_hold_begin(void)
{
	atomic_fetch_add_explicit(&obs_stats_page->held_back, 1, memory_order_relaxed);
}

static inline void obs_stats_page_hold_end(void)
{
	atomic_fetch_sub_explicit(&obs_stats_page->held_back, 1, memory_order_relaxed);
}

static inline uint32_t obs_stats_page_read_word(const _Atomic uint32_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

#endif
