/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/opt.h"
#include "compute/pool/pool.h"
#include "compute/rqa/internal.h"

#define REPORT_S 0.1
#define RECENT   0.25 /* share of the elapsed time from which the speed is computed */

struct obk_rqa_watch {
	const struct obk_rqa_control *control;
	_Atomic uint64_t done, rows, failed, skipped;
	_Atomic bool stop;
	_Atomic int64_t next_ns; /* time of the next report */
	int64_t start_ns;
	/* guarded by lock: state at the last report, and the recent speed in cells per second */
	int64_t seen_ns;
	uint64_t seen;
	double speed;
	uint64_t total, rows_total;
	pthread_mutex_t lock; /* serialises reports */
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int obk_rqa_fail(struct obk_rqa_error *ret_error, int status, uint64_t item, uint64_t where,
	const char *format, ...)
{
	va_list list;

	if (ret_error) {
		ret_error->status = status;
		ret_error->item = item;
		ret_error->where = where;
		va_start(list, format);
		vsnprintf(ret_error->text, sizeof ret_error->text, format, list);
		va_end(list);
	}
	return status;
}

unsigned obk_rqa_threads(const struct obk_rqa_control *control)
{
	unsigned threads = control ? control->threads : 0;
	cpu_set_t set;

	if (!threads) {
		threads =
			sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
		if (threads < 1)
			threads = 1;
	}
	return threads > OBK_RQA_MAX_THREADS ? OBK_RQA_MAX_THREADS : threads;
}

struct obk_rqa_watch *obk_rqa_watch_new(const struct obk_rqa_control *control)
{
	struct obk_rqa_watch *watch = calloc(1, sizeof *watch);

	if (!watch)
		return NULL;
	watch->control = control;
	watch->start_ns = watch->seen_ns = now_ns();
	atomic_store_explicit(
		&watch->next_ns, watch->start_ns + (int64_t)(REPORT_S * 1e9), memory_order_relaxed);
	pthread_mutex_init(&watch->lock, NULL);
	return watch;
}

void obk_rqa_watch_free(struct obk_rqa_watch *watch)
{
	if (!watch)
		return;
	pthread_mutex_destroy(&watch->lock);
	free(watch);
}

void obk_rqa_watch_total(struct obk_rqa_watch *watch, uint64_t cells, uint64_t rows)
{
	watch->total = cells;
	watch->rows_total = rows;
}

void obk_rqa_watch_before(struct obk_rqa_watch *watch, uint64_t cells)
{
	watch->seen = cells;
	atomic_fetch_add_explicit(&watch->done, cells, memory_order_relaxed);
}

void obk_rqa_watch_again(struct obk_rqa_watch *watch, uint64_t cells)
{
	pthread_mutex_lock(&watch->lock);
	/* relaxed: a counter, no other data depends on it */
	watch->seen = atomic_fetch_sub_explicit(&watch->done, cells, memory_order_relaxed) - cells;
	watch->seen_ns = now_ns();
	watch->speed = 0;
	pthread_mutex_unlock(&watch->lock);
}

void obk_rqa_watch_stop(struct obk_rqa_watch *watch)
{
	atomic_store_explicit(&watch->stop, true, memory_order_relaxed);
}

bool obk_rqa_watch_stopped(struct obk_rqa_watch *watch)
{
	if (!watch)
		return false;
	/* Relaxed: a flag without data; reading it late costs at most one more unit of work. */
	if (atomic_load_explicit(&watch->stop, memory_order_relaxed))
		return true;
	if (watch->control && watch->control->cancel &&
		atomic_load_explicit(watch->control->cancel, memory_order_relaxed)) {
		obk_rqa_watch_stop(watch);
		return true;
	}
	return false;
}

/*
 * Cells per second. The last quarter of the time has the largest weight, because other work on the
 * machine varies.
 */
static double speed_of(struct obk_rqa_watch *watch, int64_t now, uint64_t done)
{
	double elapsed = (double)(now - watch->start_ns) * 1e-9,
	       since = (double)(now - watch->seen_ns) * 1e-9,
	       old = exp(-since / (RECENT * elapsed));

	if (since > 0 && done > watch->seen) {
		double rate = (double)(done - watch->seen) / since;

		watch->speed = watch->speed > 0 ? old * watch->speed + (1 - old) * rate : rate;
		watch->seen = done;
		watch->seen_ns = now;
	}
	return watch->speed;
}

static void report(struct obk_rqa_watch *watch, int64_t now)
{
	double speed;
	struct obk_rqa_progress progress = {
		.done = atomic_load_explicit(&watch->done, memory_order_relaxed),
		.total = watch->total,
		.rows_done = atomic_load_explicit(&watch->rows, memory_order_relaxed),
		.rows_total = watch->rows_total,
		.failed = atomic_load_explicit(&watch->failed, memory_order_relaxed),
		.skipped = atomic_load_explicit(&watch->skipped, memory_order_relaxed),
		.elapsed = (double)(now - watch->start_ns) * 1e-9,
		.eta = NAN,
	};

	speed = speed_of(watch, now, progress.done);
	if (progress.done >= progress.total)
		progress.eta = 0;
	else if (speed > 0)
		progress.eta = (double)(progress.total - progress.done) / speed;
	if (watch->control->progress(watch->control->arg, &progress))
		obk_rqa_watch_stop(watch);
}

bool obk_rqa_watch_add(struct obk_rqa_watch *watch, uint64_t cells, uint64_t rows, uint64_t failed,
	uint64_t skipped)
{
	if (!watch)
		return false;
	atomic_fetch_add_explicit(&watch->done, cells, memory_order_relaxed);
	if (rows)
		atomic_fetch_add_explicit(&watch->rows, rows, memory_order_relaxed);
	if (failed)
		atomic_fetch_add_explicit(&watch->failed, failed, memory_order_relaxed);
	if (skipped)
		atomic_fetch_add_explicit(&watch->skipped, skipped, memory_order_relaxed);
	if (watch->control && watch->control->progress) {
		int64_t now = now_ns();

		if (now >= atomic_load_explicit(&watch->next_ns, memory_order_relaxed) &&
			pthread_mutex_trylock(&watch->lock) == 0) {
			if (now >= atomic_load_explicit(&watch->next_ns, memory_order_relaxed)) {
				report(watch, now);
				atomic_store_explicit(&watch->next_ns,
					now_ns() + (int64_t)(REPORT_S * 1e9), memory_order_relaxed);
			}
			pthread_mutex_unlock(&watch->lock);
		}
	}
	return obk_rqa_watch_stopped(watch);
}

void obk_rqa_watch_end(struct obk_rqa_watch *watch)
{
	if (watch && watch->control && watch->control->progress) {
		pthread_mutex_lock(&watch->lock);
		report(watch, now_ns());
		pthread_mutex_unlock(&watch->lock);
	}
}

/* ---- threads ---- */

struct crew {
	obk_rqa_unit_fn *fn;
	void *arg;
	uint64_t first;
};

static void crew_run(void *arg, size_t item, unsigned thread)
{
	const struct crew *crew = arg;

	crew->fn(crew->arg, thread, crew->first + item);
}

static bool crew_stopped(void *watch)
{
	return obk_rqa_watch_stopped(watch);
}

void obk_rqa_each(struct obk_rqa_watch *watch, unsigned threads, uint64_t first, uint64_t last,
	obk_rqa_unit_fn *fn, void *arg)
{
	struct crew crew = { .fn = fn, .arg = arg, .first = first };
	struct obk_stop stop = { .ask = crew_stopped, .arg = watch };
	struct obk_pool *pool = NULL;

	if (first >= last)
		return;
	if (threads > last - first)
		threads = (unsigned)(last - first);
	/* If threads cannot be started, this one does all the work. */
	if (threads > 1 && obk_pool_new(threads, &pool) != OB_ERR_NONE)
		pool = NULL;
	obk_pool_run_until(pool, &stop, last - first, crew_run, &crew);
	obk_pool_free(pool);
}

/* ---- instruction sets ---- */

const struct obk_rqa_ops *obk_rqa_ops_find(int isa)
{
#if defined(__x86_64__)
	bool simd = isa != OBK_RQA_ISA_AUTO || ob_opt_on(OB_OPT_SIMD);

#ifdef OBK_RQA_HAVE_AVX512
	if ((isa == OBK_RQA_ISA_AUTO || isa == OBK_RQA_ISA_AVX512) && simd &&
		__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
		__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
		return &obk_rqa_ops_avx512;
#endif
#ifdef OBK_RQA_HAVE_AVX2
	if ((isa == OBK_RQA_ISA_AUTO || isa == OBK_RQA_ISA_AVX2) && simd &&
		__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
		__builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt"))
		return &obk_rqa_ops_avx2;
#endif
#endif
	return isa == OBK_RQA_ISA_AUTO || isa == OBK_RQA_ISA_C ? &obk_rqa_ops_c : NULL;
}
