/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread.h"
#include "compute/pool/pool.h"

struct obk_pool {
	pthread_mutex_t turn; /* held by the caller whose loop runs */
	pthread_mutex_t lock; /* guards the fields down to `until` */
	pthread_cond_t work;  /* a new loop, or stop */
	pthread_cond_t done;  /* signalled when `busy` becomes 0 */
	unsigned threads;     /* including the caller */
	unsigned started;     /* threads created so far */
	unsigned busy;        /* created threads that have not finished the loop */
	unsigned long round;  /* number of the current loop */
	bool stop;
	void (*body)(void *arg, size_t item, unsigned thread);
	void *arg;
	size_t items;
	const struct obk_stop *until;
	_Atomic size_t next; /* relaxed: only hands out numbers; the lock orders the data */
	struct worker {
		struct obk_pool *pool;
		pthread_t thread;
		unsigned index;
	} worker[];
};

static void work_off(struct obk_pool *pool, unsigned thread)
{
	for (;;) {
		size_t item = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);

		if (item >= pool->items || obk_stopped(pool->until))
			return;
		pool->body(pool->arg, item, thread);
	}
}

static void *worker_main(void *arg)
{
	struct worker *me = arg;
	struct obk_pool *pool = me->pool;
	unsigned long seen = 0;

	pthread_mutex_lock(&pool->lock);
	for (;;) {
		while (pool->round == seen && !pool->stop)
			pthread_cond_wait(&pool->work, &pool->lock);
		if (pool->stop)
			break;
		seen = pool->round;
		pthread_mutex_unlock(&pool->lock);
		work_off(pool, me->index);
		pthread_mutex_lock(&pool->lock);
		if (--pool->busy == 0)
			pthread_cond_signal(&pool->done);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

static unsigned processors(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	return n < 1 ? 1 : n > OBK_POOL_MAX_THREADS ? OBK_POOL_MAX_THREADS : (unsigned)n;
}

enum ob_err obk_pool_new(unsigned threads, struct obk_pool **ret_pool)
{
	struct obk_pool *pool;

	if (threads > OBK_POOL_MAX_THREADS)
		return OB_ERR_LIMIT;
	if (threads == 0)
		threads = processors();
	pool = calloc(1, sizeof(*pool) + threads * sizeof(pool->worker[0]));
	if (!pool)
		return OB_ERR_NO_MEMORY;
	pthread_mutex_init(&pool->turn, NULL);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_cond_init(&pool->done, NULL);
	pool->threads = threads;
	for (unsigned i = 0; i + 1 < threads; i++) {
		pool->worker[i] = (struct worker){ .pool = pool, .index = i + 1 };
		if (!ob_thread_start(worker_main, &pool->worker[i], 0, &pool->worker[i].thread)) {
			obk_pool_free(pool);
			return OB_ERR_NO_MEMORY;
		}
		pool->started++;
	}
	*ret_pool = pool;
	return OB_ERR_NONE;
}

void obk_pool_free(struct obk_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stop = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool->started; i++)
		pthread_join(pool->worker[i].thread, NULL);
	pthread_cond_destroy(&pool->done);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	pthread_mutex_destroy(&pool->turn);
	free(pool);
}

unsigned obk_pool_threads(const struct obk_pool *pool)
{
	return pool ? pool->threads : 1;
}

void obk_pool_run(struct obk_pool *pool, size_t items,
	void (*body)(void *arg, size_t item, unsigned thread), void *arg)
{
	static const struct obk_stop never;

	obk_pool_run_until(pool, &never, items, body, arg);
}

bool obk_pool_run_until(struct obk_pool *pool, const struct obk_stop *stop, size_t items,
	void (*body)(void *arg, size_t item, unsigned thread), void *arg)
{
	if (!pool || pool->started == 0 || items < 2) {
		/*
		 * The caller runs the loop alone. With a pool it still takes the turn, so that two
		 * callers are not thread 0 at the same time.
		 */
		if (pool)
			pthread_mutex_lock(&pool->turn);
		for (size_t i = 0; i < items && !obk_stopped(stop); i++)
			body(arg, i, 0);
		if (pool)
			pthread_mutex_unlock(&pool->turn);
		return !obk_stopped(stop);
	}
	pthread_mutex_lock(&pool->turn);
	pthread_mutex_lock(&pool->lock);
	pool->body = body;
	pool->arg = arg;
	pool->items = items;
	pool->until = stop;
	atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
	pool->busy = pool->started;
	pool->round++;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	work_off(pool, 0);
	pthread_mutex_lock(&pool->lock);
	while (pool->busy)
		pthread_cond_wait(&pool->done, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
	pthread_mutex_unlock(&pool->turn);
	return !obk_stopped(stop);
}
