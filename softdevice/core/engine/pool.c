/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_pool: helper threads, and the execution of one grid. A launch is in the pool's list while it
 * has blocks that have not been started. The thread that launched it also works on it and finally
 * waits for the helpers.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softdevice/core/engine/pool.h"
#include "softdevice/core/engine/stats.h"
#include "softdevice/core/engine/worker.h"
#include "softdevice/core/engine/native.h"

#define MAX_THREADS     1024u
#define RESIDENT_BLOCKS 64u
#define WORKSPACE_BYTES 64u
#define PARAM_ALIGN     64u
#define SHARED_LEAST    1024u

struct obd_pool {
	pthread_mutex_t lock;
	pthread_cond_t work, left;
	struct obd_launch *launches;
	pthread_t *threads;
	unsigned n_threads; /* number of helpers; the launching thread is not included */
	bool ending;
};

static bool has_work(struct obd_launch *l)
{
	return !atomic_load(&l->stop) && atomic_load(&l->next_cta) < l->n_ctas;
}

void obd_pool_lock(struct obd_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
}

void obd_pool_unlock(struct obd_pool *pool)
{
	pthread_mutex_unlock(&pool->lock);
}

void obd_pool_wait(struct obd_pool *pool)
{
	pthread_cond_wait(&pool->left, &pool->lock);
}

void obd_pool_wake(struct obd_pool *pool)
{
	pthread_cond_broadcast(&pool->left);
}

void obd_pool_add(struct obd_pool *pool, struct obd_launch *l)
{
	l->next = pool->launches;
	pool->launches = l;
	if (l->n_ctas < pool->n_threads)
		for (uint64_t i = 0; i < l->n_ctas; i++)
			pthread_cond_signal(&pool->work);
	else
		pthread_cond_broadcast(&pool->work);
}

void obd_pool_remove(struct obd_pool *pool, struct obd_launch *l)
{
	for (struct obd_launch **at = &pool->launches; *at; at = &(*at)->next)
		if (*at == l) {
			*at = l->next;
			return;
		}
}

struct obd_launch *obd_pool_find(struct obd_pool *pool,
	bool (*wanted)(const struct obd_launch *l, const void *arg), const void *arg)
{
	struct obd_launch *l = pool->launches;

	while (l && !(has_work(l) && wanted(l, arg)))
		l = l->next;
	return l;
}

void obd_pool_join(struct obd_launch *l)
{
	l->pool_refs++;
	if (l->joined)
		l->joined(l);
}

void obd_pool_leave(struct obd_pool *pool, struct obd_launch *l)
{
	l->pool_refs--;
	if (l->left)
		l->left(l);
	else if (l->pool_refs == 0)
		pthread_cond_broadcast(&pool->left);
}

bool obd_pool_is_over(struct obd_launch *l)
{
	return l->pool_refs == 0 && !has_work(l);
}

/* ---- limits ---- */

static bool limit_full(const struct obd_limit *limit)
{
	return limit && limit->running >= atomic_load_explicit(&limit->most, memory_order_relaxed);
}

static void limit_give(struct obd_pool *pool, struct obd_limit *limit)
{
	if (!limit)
		return;
	limit->running--;
	if (limit->waiting)
		pthread_cond_broadcast(&pool->left);
	pthread_cond_signal(&pool->work);
}

void obd_limit_enter(struct obd_pool *pool, struct obd_limit *limit)
{
	if (!limit)
		return;
	pthread_mutex_lock(&pool->lock);
	limit->waiting++;
	while (limit_full(limit))
		pthread_cond_wait(&pool->left, &pool->lock);
	limit->waiting--;
	limit->running++;
	pthread_mutex_unlock(&pool->lock);
}

void obd_limit_leave(struct obd_pool *pool, struct obd_limit *limit)
{
	if (!limit)
		return;
	pthread_mutex_lock(&pool->lock);
	limit_give(pool, limit);
	pthread_mutex_unlock(&pool->lock);
}

/* ---- helpers ---- */

static void *helper(void *arg)
{
	struct obd_pool *pool = arg;

	pthread_mutex_lock(&pool->lock);
	while (!pool->ending) {
		struct obd_launch *l = pool->launches;
		struct obd_limit *limit;

		/* A limit that others wait for is left to them: their grids have not begun. */
		while (l &&
			!(has_work(l) && !limit_full(l->grid->limit) &&
				!(l->grid->limit && l->grid->limit->waiting)))
			l = l->next;
		if (!l) {
			pthread_cond_wait(&pool->work, &pool->lock);
			continue;
		}
		limit = l->grid->limit; /* the launch may be gone when this thread has left it */
		if (limit)
			limit->running++;
		obd_pool_join(l);
		pthread_mutex_unlock(&pool->lock);
		obd_worker_run(l);
		pthread_mutex_lock(&pool->lock);
		obd_pool_leave(pool, l);
		limit_give(pool, limit);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

struct obd_pool *obd_pool_new(unsigned n_threads)
{
	struct obd_pool *pool = calloc(1, sizeof(*pool));
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = n_threads ? n_threads : online > 0 ? (unsigned)online : 1;
	sigset_t all, old;

	if (!pool)
		return NULL;
	if (n > MAX_THREADS)
		n = MAX_THREADS;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_cond_init(&pool->left, NULL);
	pool->threads = calloc(n, sizeof(pthread_t));
	if (!pool->threads) {
		obd_pool_free(pool);
		return NULL;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (pool->n_threads < n - 1) {
		if (pthread_create(&pool->threads[pool->n_threads], NULL, helper, pool))
			break; /* continue with fewer helpers */
		pool->n_threads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pool;
}

void obd_pool_free(struct obd_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->ending = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool->n_threads; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->work);
	pthread_cond_destroy(&pool->left);
	pthread_mutex_destroy(&pool->lock);
	free(pool->threads);
	free(pool);
}

unsigned obd_pool_threads(const struct obd_pool *pool)
{
	return pool->n_threads + 1;
}

static void run_with_helpers(struct obd_pool *pool, struct obd_launch *l)
{
	pthread_mutex_lock(&pool->lock);
	l->next = pool->launches;
	pool->launches = l;
	if (l->n_ctas - 1 < pool->n_threads)
		for (uint64_t i = 1; i < l->n_ctas; i++)
			pthread_cond_signal(&pool->work);
	else
		pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	obd_worker_run(l);
	pthread_mutex_lock(&pool->lock);
	for (struct obd_launch **at = &pool->launches; *at; at = &(*at)->next)
		if (*at == l) {
			*at = l->next;
			break;
		}
	while (l->pool_refs)
		pthread_cond_wait(&pool->left, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}

static CUresult refuse(struct obd_fault *ret, CUresult result, const char *what, const char *name)
{
	memset(ret, 0, sizeof(*ret));
	ret->result = result;
	snprintf(ret->text, sizeof(ret->text), "kernel %.60s: %.150s", name, what);
	return result;
}

static CUresult check_shape(const struct obd_grid *g, struct obd_fault *ret_fault)
{
	const char *name = g->kernel->name;
	uint64_t threads = 1;

	for (int i = 0; i < 3; i++) {
		if (!g->grid[i] || !g->block[i] || g->block[i] > OBD_BLOCK_MAX_THREADS)
			return refuse(ret_fault, CUDA_ERROR_INVALID_VALUE,
				"a grid or block dimension is 0, or a block dimension is above "
				"1024",
				name);
		threads *= g->block[i];
	}
	if (threads > OBD_BLOCK_MAX_THREADS)
		return refuse(ret_fault, CUDA_ERROR_INVALID_VALUE,
			"the block has more than 1024 threads", name);
	if ((uint64_t)g->kernel->static_shared + g->dynamic_shared > OBD_BLOCK_MAX_SHARED)
		return refuse(ret_fault, CUDA_ERROR_INVALID_VALUE,
			"static and dynamic shared memory together exceed 227 KiB", name);
	return CUDA_SUCCESS;
}

/* The launch's cluster, or else the kernel's own. */
static CUresult cluster_set(struct obd_launch *l, struct obd_fault *ret_fault)
{
	const struct obd_grid *g = l->grid;
	bool given = (uint64_t)g->cluster[0] * g->cluster[1] * g->cluster[2] > 1;
	const uint32_t *from = given ? g->cluster : g->kernel->cluster;
	uint64_t size = 1;
	bool ok = true;

	for (int i = 0; i < 3; i++) {
		l->cluster[i] = from[i] ? from[i] : 1;
		ok &= l->cluster[i] <= OBD_CLUSTER_MAX && g->grid[i] % l->cluster[i] == 0;
		size *= l->cluster[i];
	}
	if (!ok || size > OBD_CLUSTER_MAX)
		return refuse(ret_fault, CUDA_ERROR_INVALID_CLUSTER_SIZE,
			"the cluster has more than 16 blocks or does not divide the grid",
			g->kernel->name);
	l->cluster_size = (uint32_t)size;
	return CUDA_SUCCESS;
}

CUresult obd_launch_open(const struct obd_pool *pool, struct obd_launch *l,
	const struct obd_grid *grid, struct obd_fault *ret_fault)
{
	const struct obd_entry *entry = (const struct obd_entry *)(const void *)grid->kernel;
	const struct obd_env *env = &grid->program->env;
	CUresult r = check_shape(grid, ret_fault);
	size_t param_size =
		(grid->kernel->param_bytes + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN +
		PARAM_ALIGN;

	*l = (struct obd_launch){
		.grid = grid, .program = grid->program, .entry = entry, .func = entry->func
	};
	if (!r)
		r = cluster_set(l, ret_fault);
	if (r)
		return r;
	l->n_parts = 2 * obd_pool_threads(pool);
	l->params_size = param_size + WORKSPACE_BYTES;
	l->n_ctas = (uint64_t)grid->grid[0] * grid->grid[1] * grid->grid[2];
	l->shared_size = grid->kernel->static_shared + grid->dynamic_shared;
	l->shared_size =
		l->shared_size < SHARED_LEAST ? SHARED_LEAST : (l->shared_size + 15) & ~15u;
	l->reserved_at = l->shared_size;
	l->shared_size += grid->program->reserved_shared ? OBD_RESERVED_SHARED : 0;
	l->resident_limit = grid->cooperative ? UINT32_MAX : RESIDENT_BLOCKS;
	obd_native_prepare(l);
	l->params = env->scratch_alloc(env->user, l->params_size, PARAM_ALIGN);
	if (!l->params)
		return refuse(ret_fault, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
			"out of device memory for the parameters", grid->kernel->name);
	memset(l->params, 0, l->params_size);
	if (grid->kernel->param_bytes && grid->params)
		memcpy(l->params, grid->params, grid->kernel->param_bytes);
	/* cooperative groups' grid barrier expects its size, then the arrival counter */
	if (grid->cooperative) {
		uint32_t size = WORKSPACE_BYTES;

		l->workspace = l->params + param_size;
		memcpy(l->workspace, &size, sizeof(size));
	}
	return CUDA_SUCCESS;
}

void obd_launch_close(struct obd_launch *l)
{
	const struct obd_env *env = &l->program->env;

	if (l->params)
		env->scratch_free(env->user, l->params, l->params_size);
	l->params = NULL;
	obd_stats_launched(atomic_load_explicit(&l->longest, memory_order_relaxed));
}

CUresult obd_grid_run_alone(
	struct obd_pool *pool, const struct obd_grid *grid, struct obd_fault *ret_fault)
{
	struct obd_launch l;
	CUresult r = obd_launch_open(pool, &l, grid, ret_fault);

	if (r)
		return r;
	if (pool->n_threads && l.n_ctas > 1)
		run_with_helpers(pool, &l);
	else
		obd_worker_run(&l);
	obd_launch_close(&l);
	if (atomic_load(&l.fault_taken)) {
		*ret_fault = l.fault;
		return l.fault.result;
	}
	return CUDA_SUCCESS;
}
