/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Threads that work on one loop at a time. The owner creates the pool and frees it; any thread may
 * call obk_pool_run, callers take turns. The calling thread works too, so a pool of one thread
 * starts none and a NULL pool runs everything in the caller. A body must not call obk_pool_run on
 * its own pool.
 */
#ifndef OBK_POOL_H
#define OBK_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define OBK_POOL_MAX_THREADS 1024

struct obk_pool;

/*
 * Whether work should end early: asked by several threads at once, often. Once it says so it goes
 * on saying so. ask NULL: never.
 */
struct obk_stop {
	bool (*ask)(void *arg);
	void *arg;
};

static inline bool obk_stopped(const struct obk_stop *stop)
{
	return stop->ask && stop->ask(stop->arg);
}

/*
 * threads = 0 takes the processors this process may run on. OB_ERR_LIMIT above
 * OBK_POOL_MAX_THREADS.
 */
enum ob_err obk_pool_new(unsigned threads, struct obk_pool **ret_pool);
void obk_pool_free(struct obk_pool *pool);
/* 1 for NULL. */
unsigned obk_pool_threads(const struct obk_pool *pool);
/*
 * Calls body(arg, item, thread) for every item in 0..items-1, each once, in order of start; thread
 * is in 0..threads-1 and no two bodies with the same thread run at once (use it to pick scratch
 * memory). Returns when all are done.
 */
void obk_pool_run(struct obk_pool *pool, size_t items,
	void (*body)(void *arg, size_t item, unsigned thread), void *arg);
/*
 * The same, asking `stop` before each item and at the end. False: it said so; items that had not
 * begun are left out.
 */
bool obk_pool_run_until(struct obk_pool *pool, const struct obk_stop *stop, size_t items,
	void (*body)(void *arg, size_t item, unsigned thread), void *arg);

#endif
