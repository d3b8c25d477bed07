/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/sched.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/opt.h"
#include "softdevice/context.h"

enum { PENDING = 0, PENDING_WAITED = 2 };

#define IDLE_NS (3 * OB_SECOND)      /* an idle executor ends after this */
#define SPIN_NS 5000u                /* a waiter looks this long before it sleeps */
#define WAIT_MS 500                  /* a sleeping waiter looks again */
#define STOP_NS (2 * OB_SECOND)

struct queue {
	struct obd_op *first[OBD_PRIORITIES], *last[OBD_PRIORITIES];
	uint32_t n;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;             /* an idle executor waits here */
	struct queue others, kernels;
	pthread_cond_t drained;          /* a context has nothing left; while stopping: an op has ended */
	uint32_t threads, starting, idle, running_kernels;
	struct obd_op *running;          /* by next */
	uint64_t submitted;              /* ops so far */
	bool stopping;
	pid_t pid;                       /* the process whose threads these are */
} sched = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local bool in_callback;

bool obd_sched_in_callback(void)
{
	return in_callback;
}

/* ---- ops ---- */

void *obd_op_new(size_t size, enum obd_op_kind kind, struct obd_ctx *ctx)
{
	struct obd_op *op = calloc(1, size);

	if (!op)
		return NULL;
	atomic_init(&op->refs, 1);
	op->kind = kind;
	op->ctx = ctx;
	op->after = op->few;
	op->max_after = ob_count(op->few);
	return op;
}

struct obd_op *obd_op_ref(struct obd_op *op)
{
	if (op)
		atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
	return op;
}

void obd_op_unref(struct obd_op *op)
{
	/* Release and acquire: the last holder frees what the others wrote. */
	if (!op || atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (op->fini)
		op->fini(op);
	if (op->after != op->few)
		free(op->after);
	free(op);
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	struct timespec ts = { .tv_nsec = WAIT_MS * 1000000L };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &ts, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* ---- the ready queue; all under the lock ---- */

static void queue_push(struct queue *q, struct obd_op *op)
{
	int p = -op->priority;

	op->next = NULL;
	if (q->last[p])
		q->last[p]->next = op;
	else
		q->first[p] = op;
	q->last[p] = op;
	q->n++;
}

static struct obd_op *queue_pop(struct queue *q)
{
	for (int p = OBD_PRIORITIES - 1; q->n && p >= 0; p--) {
		struct obd_op *op = q->first[p];

		if (!op)
			continue;
		q->first[p] = op->next;
		if (!op->next)
			q->last[p] = NULL;
		q->n--;
		return op;
	}
	return NULL;
}

/* Takes `op` out if it is the next of its priority. */
static bool queue_take(struct queue *q, struct obd_op *op)
{
	int p = -op->priority;

	if (q->first[p] != op)
		return false;
	q->first[p] = op->next;
	if (!op->next)
		q->last[p] = NULL;
	q->n--;
	return true;
}

static uint32_t runnable(void)
{
	uint32_t slots = OBD_KERNELS_MAX - ob_min(sched.running_kernels, OBD_KERNELS_MAX);

	return sched.others.n + ob_min(sched.kernels.n, slots);
}

static void *executor_main(void *arg);

static bool executor_start(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int err;

	if (sched.threads >= OBD_EXECUTORS_MAX)
		return false;
	/* A guest's threads take no signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, executor_main, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return false;
	sched.threads++;
	sched.starting++;
	return true;
}

/*
 * A thread for each op that can run now. `self`: the calling executor takes one itself. A sleeping executor counts as idle until it
 * has the lock again, so more ops than sleepers means that a new thread is needed, however many of the sleepers are on their way.
 */
static void executors_call(uint32_t self)
{
	uint32_t ready = runnable();

	for (uint32_t i = self; i < ready && i < self + sched.idle; i++)
		pthread_cond_signal(&sched.work);
	while (ready > self + sched.idle + sched.starting)
		if (!executor_start())
			break; /* those that are running will come to it */
}

/* ---- completion ---- */

static void op_execute(struct obd_op *op)
{
	struct obd_ctx *ctx = op->ctx;

	if (op->kind == OBD_OP_HOST) {
		in_callback = true;
		op->run(op);
		in_callback = false;
	} else if (!atomic_load_explicit(&ctx->abort, memory_order_relaxed) && obd_ctx_result(ctx) == CUDA_SUCCESS) {
		op->run(op);
	}
	/* What it holds goes before it counts as done: the context may go right after. */
	if (op->fini)
		op->fini(op);
	op->fini = NULL;
}

static void busy_remove(struct obd_ctx *ctx, struct obd_stream *stream)
{
	if (stream->busy_prev)
		stream->busy_prev->busy_next = stream->busy_next;
	else
		ctx->busy = stream->busy_next;
	if (stream->busy_next)
		stream->busy_next->busy_prev = stream->busy_prev;
	stream->busy_next = stream->busy_prev = NULL;
}

static void busy_add(struct obd_ctx *ctx, struct obd_stream *stream)
{
	stream->busy_prev = NULL;
	stream->busy_next = ctx->busy;
	if (ctx->busy)
		ctx->busy->busy_prev = stream;
	ctx->busy = stream;
}

/* What completion leaves to be freed when the lock is free: ops by `next`, one reference each; streams nobody holds by `busy_next`. */
struct garbage {
	struct obd_op *ops;
	struct obd_stream *streams;
};

static void garbage_drop(struct garbage *garbage)
{
	while (garbage->ops) {
		struct obd_op *op = garbage->ops;

		garbage->ops = op->next;
		obd_op_unref(op);
	}
	while (garbage->streams) {
		struct obd_stream *stream = garbage->streams;

		garbage->streams = stream->busy_next;
		obd_stream_free(stream);
	}
}

static void op_ready(struct obd_op *op, struct obd_op **marks)
{
	if (!op->run) {
		op->next = *marks;
		*marks = op;
	} else {
		queue_push(op->kind == OBD_OP_KERNEL ? &sched.kernels : &sched.others, op);
	}
}

static void stream_done(struct obd_stream *stream, struct garbage *garbage)
{
	struct obd_op *op = stream->last;

	stream->last = NULL;
	obd_op_unref(op); /* never the last reference: the scheduler's goes after it */
	if (stream->legacy)
		return;
	busy_remove(stream->ctx, stream);
	if (atomic_fetch_sub_explicit(&stream->refs, 1, memory_order_acq_rel) == 1) {
		stream->busy_next = garbage->streams;
		garbage->streams = stream;
	}
}

static void op_complete_one(struct obd_op *op, struct obd_op **marks, struct garbage *garbage)
{
	struct obd_ctx *ctx = op->ctx;

	op->time_ns = ob_clock_ns();
	if (op->stream && op->stream->last == op)
		stream_done(op->stream, garbage);
	op->stream = NULL;
	/* Release: the waiter sees what the op did. */
	if (atomic_exchange_explicit(&op->state, OBD_OP_DONE, memory_order_acq_rel) == PENDING_WAITED)
		futex_wake(&op->state);
	for (uint32_t i = 0; i < op->n_after; i++)
		if (--op->after[i]->waits == 0)
			op_ready(op->after[i], marks);
	op->n_after = 0;
	op->next = garbage->ops;
	garbage->ops = op;
	if (--ctx->pending == 0)
		pthread_cond_broadcast(&sched.drained);
}

/* The op and every mark that becomes ready by it are done. */
static void op_complete(struct obd_op *op, struct garbage *garbage, uint32_t self)
{
	struct obd_op *marks = NULL;

	op_complete_one(op, &marks, garbage);
	while (marks) {
		struct obd_op *mark = marks;

		marks = mark->next;
		op_complete_one(mark, &marks, garbage);
	}
	executors_call(self);
}

/* ---- executors ---- */

static struct obd_op *op_take(void)
{
	struct obd_op *op = NULL;

	if (sched.stopping)
		return NULL;
	if (sched.running_kernels < OBD_KERNELS_MAX)
		op = queue_pop(&sched.kernels);
	if (op)
		sched.running_kernels++;
	else
		op = queue_pop(&sched.others);
	return op;
}

/* Enters and leaves with the lock held. */
static void op_run(struct obd_op *op, uint32_t self)
{
	struct garbage garbage = { 0 };
	struct obd_op **link;

	op->next = sched.running;
	sched.running = op;
	pthread_mutex_unlock(&sched.lock);
	op_execute(op);
	pthread_mutex_lock(&sched.lock);
	for (link = &sched.running; *link != op; link = &(*link)->next)
		;
	*link = op->next;
	if (op->kind == OBD_OP_KERNEL)
		sched.running_kernels--;
	if (sched.stopping)
		pthread_cond_broadcast(&sched.drained);
	op_complete(op, &garbage, self);
	pthread_mutex_unlock(&sched.lock);
	garbage_drop(&garbage);
	pthread_mutex_lock(&sched.lock);
}

static struct timespec deadline_at(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / OB_SECOND), .tv_nsec = (long)(ns % OB_SECOND) };
}

/* Sleeps until there may be work; false when there was none for long. */
static bool idle_wait(void)
{
	struct timespec ts = deadline_at(ob_clock_ns() + IDLE_NS);
	bool more;

	sched.idle++;
	while (!(more = runnable() > 0 && !sched.stopping))
		if (pthread_cond_timedwait(&sched.work, &sched.lock, &ts) == ETIMEDOUT) {
			more = runnable() > 0 && !sched.stopping;
			break;
		}
	sched.idle--;
	return more;
}

static void *executor_main(void *arg)
{
	struct obd_op *op;

	(void)arg;
	pthread_mutex_lock(&sched.lock);
	sched.starting--;
	do {
		while ((op = op_take()))
			op_run(op, 1);
	} while (idle_wait());
	sched.threads--;
	pthread_mutex_unlock(&sched.lock);
	return NULL;
}

bool obd_sched_start(void)
{
	pthread_condattr_t attr;
	bool ok;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&sched.work, &attr);
	pthread_cond_init(&sched.drained, &attr);
	pthread_condattr_destroy(&attr);
	sched.pid = getpid();
	pthread_mutex_lock(&sched.lock);
	ok = executor_start();
	pthread_mutex_unlock(&sched.lock);
	return ok;
}

void obd_sched_stop(void)
{
	struct timespec ts = deadline_at(ob_clock_ns() + STOP_NS);

	if (sched.pid != getpid()) /* never started, or a forked child that has none of the threads */
		return;
	pthread_mutex_lock(&sched.lock);
	sched.stopping = true;
	for (struct obd_op *op = sched.running; op; op = op->next)
		atomic_store(&op->ctx->abort, 1);
	while (sched.running)
		if (pthread_cond_timedwait(&sched.drained, &sched.lock, &ts) == ETIMEDOUT)
			break;
	pthread_mutex_unlock(&sched.lock);
}

/* ---- waiting for one op ---- */

/* An op that may run now and that `awaited` comes after: of its stream, or of its whole context for a join. Host functions are for executors. */
static struct obd_op *helpful(struct queue *q, const struct obd_op *awaited)
{
	for (int p = 0; q->n && p < OBD_PRIORITIES; p++) {
		struct obd_op *op = q->first[p];

		if (op && op->kind != OBD_OP_HOST && op->ctx == awaited->ctx && op->number <= awaited->number &&
		    (!awaited->stream || op->stream == awaited->stream))
			return op;
	}
	return NULL;
}

/* Runs one op that is in the way of `awaited`; false: there is none that this thread may run. */
static bool help(struct obd_op *awaited)
{
	struct obd_op *op = NULL;

	pthread_mutex_lock(&sched.lock);
	if (!obd_op_done(awaited) && !sched.stopping) {
		if (sched.running_kernels < OBD_KERNELS_MAX && (op = helpful(&sched.kernels, awaited))) {
			queue_take(&sched.kernels, op);
			sched.running_kernels++;
		} else if ((op = helpful(&sched.others, awaited))) {
			queue_take(&sched.others, op);
		}
	}
	if (op)
		op_run(op, 0);
	pthread_mutex_unlock(&sched.lock);
	return op != NULL;
}

void obd_op_wait(struct obd_op *op)
{
	uint32_t pending = PENDING;
	bool spin = ob_opt_on(OB_OPT_SPIN), helps = ob_opt_on(OB_OPT_HELP);
	uint64_t end = 0;

	while (!obd_op_done(op)) {
		if (helps && help(op))
			continue;
		if (spin && !end)
			end = ob_clock_ns() + SPIN_NS;
		while (spin && !obd_op_done(op) && ob_clock_ns() < end)
			ob_clock_relax();
		if (obd_op_done(op))
			break;
		if (atomic_compare_exchange_strong(&op->state, &pending, PENDING_WAITED) || pending == PENDING_WAITED)
			futex_wait(&op->state, PENDING_WAITED);
		pending = PENDING;
	}
}

/* ---- submission ---- */

static bool after_reserve(struct obd_op *on)
{
	uint32_t max = on->max_after * 2;
	struct obd_op **after;

	if (on->n_after < on->max_after)
		return true;
	after = calloc(max, sizeof *after);
	if (!after)
		return false;
	for (uint32_t i = 0; i < on->n_after; i++)
		after[i] = on->after[i];
	if (on->after != on->few)
		free(on->after);
	on->after = after;
	on->max_after = max;
	return true;
}

/* First pass (op NULL): room for one more dependant. Second pass: op depends on `on`. */
static bool depend(struct obd_op *on, struct obd_op *op)
{
	if (!on || obd_op_done(on))
		return true;
	if (!op)
		return after_reserve(on);
	on->after[on->n_after++] = op;
	op->waits++;
	return true;
}

static bool depend_all(struct obd_stream *stream, struct obd_op *event, struct obd_op *op)
{
	struct obd_ctx *ctx = stream->ctx;

	if (!depend(stream->last, op) || (event && event != stream->last && !depend(event, op)))
		return false;
	if (stream->legacy) {
		for (struct obd_stream *other = ctx->busy; other; other = other->busy_next)
			if (!(other->flags & CU_STREAM_NON_BLOCKING) && other->last != event && !depend(other->last, op))
				return false;
	} else if (!(stream->flags & CU_STREAM_NON_BLOCKING) && ctx->legacy.last != event) {
		return depend(ctx->legacy.last, op);
	}
	return true;
}

/* Under the lock. False: out of memory. */
static bool op_append(struct obd_op *op, struct obd_stream *stream, struct obd_op *event)
{
	if (!depend_all(stream, event, NULL))
		return false;
	depend_all(stream, event, op);
	op->stream = stream;
	op->number = ++sched.submitted;
	op->priority = stream->priority;
	if (stream->last) {
		obd_op_unref(stream->last); /* pending, so the scheduler holds it too */
	} else if (!stream->legacy) {
		busy_add(stream->ctx, stream);
		obd_stream_ref(stream);
	}
	stream->last = obd_op_ref(op);
	op->ctx->pending++;
	obd_op_ref(op); /* the scheduler's */
	return true;
}

CUresult obd_sched_submit(struct obd_op *op, struct obd_stream *stream, struct obd_op *event)
{
	struct garbage garbage = { 0 };
	bool ok;

	pthread_mutex_lock(&sched.lock);
	ok = op_append(op, stream, event);
	if (ok && op->waits == 0) {
		if (op->run) {
			op_ready(op, NULL);
			executors_call(0);
		} else {
			op_complete(op, &garbage, 0);
		}
	}
	pthread_mutex_unlock(&sched.lock);
	garbage_drop(&garbage);
	return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult obd_sched_perform(struct obd_op *op, struct obd_stream *stream)
{
	bool ok;

	pthread_mutex_lock(&sched.lock);
	ok = op_append(op, stream, NULL);
	if (ok && op->waits == 0)
		op_run(op, 0);
	pthread_mutex_unlock(&sched.lock);
	if (!ok)
		return CUDA_ERROR_OUT_OF_MEMORY;
	obd_op_wait(op);
	return CUDA_SUCCESS;
}

/* ---- waiting ---- */

struct obd_op *obd_stream_last(struct obd_stream *stream)
{
	struct obd_op *op;

	pthread_mutex_lock(&sched.lock);
	op = obd_op_ref(stream->last);
	pthread_mutex_unlock(&sched.lock);
	return op;
}

/* First pass (op NULL), second pass: as depend(). */
static bool depend_ctx(struct obd_ctx *ctx, bool legacy_only, struct obd_op *op)
{
	if (!depend(ctx->legacy.last, op))
		return false;
	for (struct obd_stream *stream = ctx->busy; stream; stream = stream->busy_next)
		if (!(legacy_only && stream->flags & CU_STREAM_NON_BLOCKING) && !depend(stream->last, op))
			return false;
	return true;
}

/* A mark after everything there is, on no stream: work that other threads go on submitting does not hold up the caller. */
static bool join_submit(struct obd_op *join, bool legacy_only)
{
	struct obd_ctx *ctx = join->ctx;
	struct garbage garbage = { 0 };
	bool ok;

	pthread_mutex_lock(&sched.lock);
	ok = depend_ctx(ctx, legacy_only, NULL);
	if (ok) {
		depend_ctx(ctx, legacy_only, join);
		ctx->pending++;
		join->number = ++sched.submitted;
		obd_op_ref(join);
		if (join->waits == 0)
			op_complete(join, &garbage, 0);
	}
	pthread_mutex_unlock(&sched.lock);
	garbage_drop(&garbage);
	return ok;
}

bool obd_ctx_idle(struct obd_ctx *ctx, bool legacy_only)
{
	bool idle;

	pthread_mutex_lock(&sched.lock);
	idle = !ctx->legacy.last;
	for (struct obd_stream *stream = ctx->busy; idle && stream; stream = stream->busy_next)
		idle = legacy_only && stream->flags & CU_STREAM_NON_BLOCKING;
	pthread_mutex_unlock(&sched.lock);
	return idle;
}

void obd_ctx_wait(struct obd_ctx *ctx, bool legacy_only)
{
	struct obd_op *join;

	if (obd_ctx_idle(ctx, legacy_only))
		return;
	join = obd_op_new(sizeof *join, OBD_OP_MARK, ctx);
	if (join && join_submit(join, legacy_only)) {
		obd_op_wait(join);
	} else { /* out of memory: the slow way */
		while (!obd_ctx_idle(ctx, legacy_only))
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	obd_op_unref(join);
}

bool obd_ctx_drain(struct obd_ctx *ctx, uint64_t deadline)
{
	struct timespec ts = deadline_at(deadline);
	bool drained;

	pthread_mutex_lock(&sched.lock);
	while (!(drained = ctx->pending == 0))
		if (pthread_cond_timedwait(&sched.drained, &sched.lock, &ts) == ETIMEDOUT) {
			drained = ctx->pending == 0;
			break;
		}
	pthread_mutex_unlock(&sched.lock);
	return drained;
}
