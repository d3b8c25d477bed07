/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A pool of threads that executes one parallel loop at a time. The owner creates the pool and frees
 * it. Any thread may call obk_pool_run; concurrent callers take turns. The calling thread takes
 * part in the work, so a pool of one thread starts no threads, and with a NULL pool the caller does
 * everything. A body must not call obk_pool_run on its own pool.
 */
#ifndef OBK_POOL_H
#define OBK_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define OBK_POOL_MAX_THREADS 1024

struct obk_pool;

/*
 * A condition for ending work early. `ask` is called often and by several threads at once. Once it
 * has returned true it must return true for ever. ask NULL: never stop.
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
 * threads = 0: one for each processor that this process may use. OB_ERR_LIMIT above
 * OBK_POOL_MAX_THREADS.
 */
enum ob_err obk_pool_new(unsigned threads, struct obk_pool **ret_pool);
void obk_pool_free(struct obk_pool *pool);
/* 1 for NULL. */
unsigned obk_pool_threads(const struct obk_pool *pool);
/*
 * Calls body(arg, item, thread) exactly once for every item in 0..items-1; items start in order.
 * thread is in 0..threads-1, and no two bodies with the same value run at once, so it can select
 * scratch memory. Returns when all are done.
 */
void obk_pool_run(struct obk_pool *pool, size_t items,
	void (*body)(void *arg, size_t item, unsigned thread), void *arg);
/*
 * As obk_pool_run, but asks `stop` before each item and at the end. False: stop returned true, and
 * items that had not started were skipped.
 */
bool obk_pool_run_until(struct obk_pool *pool, const struct obk_stop *stop, size_t items,
	void (*body)(void *arg, size_t item, unsigned thread), void *arg);

#endif
