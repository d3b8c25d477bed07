/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/sched.h"

#include <errno.h>
#include <unistd.h>

#include "base/check.h"
#include "base/thread.h"
#include "softdevice/context.h"
#include "softdevice/core/engine/guard.h"
#include "softdevice/dry_clock.h"
#include "softdevice/sched_inside.h"

#define IDLE_NS (3 * OB_SECOND) /* an idle executor ends after this time */
#define STOP_NS (2 * OB_SECOND)

struct obd_sched obd_sched = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the ready queue; callers hold the lock ---- */

static void queue_push(struct obd_queue *q, struct obd_op *op)
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

static struct obd_op *queue_pop(struct obd_queue *q)
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

bool obd_queue_take(struct obd_queue *q, struct obd_op *op)
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
	uint32_t slots = OBD_KERNELS_MAX - ob_min(obd_sched.running_kernels, OBD_KERNELS_MAX);

	return obd_sched.others.n + ob_min(obd_sched.kernels.n, slots);
}

static void *executor_main(void *arg);

static bool executor_start(void)
{
	if (obd_sched.threads >= OBD_EXECUTORS_MAX)
		return false;
	if (!ob_thread_start(executor_main, NULL, 0, NULL))
		return false;
	obd_sched.threads++;
	obd_sched.starting++;
	return true;
}

void obd_sched_wake(uint32_t self)
{
	uint32_t ready = runnable();

	for (uint32_t i = self; i < ready && i < self + obd_sched.idle; i++)
		pthread_cond_signal(&obd_sched.work);
	while (ready > self + obd_sched.idle + obd_sched.starting)
		if (!executor_start())
			break; /* the running executors will run the op later */
}

/* ---- completion ---- */

static void op_execute(struct obd_op *op)
{
	struct obd_ctx *ctx = op->ctx;

	if (op->kind == OBD_OP_HOST) {
		obd_dry_wait(op->ready_ns, &ctx->abort);
		op->run(op);
	} else if (!atomic_load_explicit(&ctx->abort, memory_order_relaxed) &&
		obd_ctx_failed(ctx) == CUDA_SUCCESS) {
		op->run(op);
	}
	/*
	 * The op's resources are released before it is marked as done, because the context may be
	 * destroyed right after that.
	 */
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

void obd_busy_add(struct obd_ctx *ctx, struct obd_stream *stream)
{
	stream->busy_prev = NULL;
	stream->busy_next = ctx->busy;
	if (ctx->busy)
		ctx->busy->busy_prev = stream;
	ctx->busy = stream;
}

bool obd_sched_close(struct obd_stream *stream)
{
	bool idle;

	pthread_mutex_lock(&obd_sched.lock);
	stream->closed = true;
	idle = !stream->last;
	pthread_mutex_unlock(&obd_sched.lock);
	return idle;
}

void obd_garbage_drop(struct obd_garbage *garbage)
{
	while (garbage->ops) {
		struct obd_op *op = garbage->ops;

		garbage->ops = op->next;
		obd_op_unref(op);
	}
	while (garbage->streams) {
		struct obd_stream *stream = garbage->streams;

		garbage->streams = stream->busy_next;
		obf_stream_recycle(&stream->base);
	}
}

void obd_sched_ready(struct obd_op *op, struct obd_op **marks)
{
	if (!op->run) {
		op->next = *marks;
		*marks = op;
	} else {
		queue_push(op->kind == OBD_OP_KERNEL ? &obd_sched.kernels : &obd_sched.others, op);
	}
}

static void stream_done(struct obd_stream *stream, struct obd_garbage *garbage)
{
	struct obd_op *op = stream->last;

	stream->last = NULL;
	obd_op_unref(op); /* not the last reference: the scheduler drops its own one later */
	if (!stream->base.legacy)
		busy_remove(stream->ctx, stream);
	if (stream->closed) {
		stream->busy_next = garbage->streams;
		garbage->streams = stream;
	}
}

/* In a dry run: when the op ends on the device's clock. */
static void op_end_dry(struct obd_op *op)
{
	struct obd_ctx *ctx = op->ctx;

	op->time_ns = op->ready_ns + op->run_ns;
	if (op->run) /* the host has done this work */
		op->time_ns = ob_max(op->time_ns, ob_clock_ns());
	ctx->end_ns = ob_max(ctx->end_ns, op->time_ns);
	if (!op->stream)
		return;
	op->stream->end_ns = ob_max(op->stream->end_ns, op->time_ns);
	if (op->stream->base.legacy || op->stream->base.blocking)
		ctx->blocking_end_ns = ob_max(ctx->blocking_end_ns, op->time_ns);
}

static void op_complete_one(struct obd_op *op, struct obd_op **marks, struct obd_garbage *garbage)
{
	struct obd_ctx *ctx = op->ctx;

	if (ob_unlikely(obd_dry_clock()))
		op_end_dry(op);
	else
		op->time_ns = ob_clock_ns();
	if (op->stream && op->stream->last == op)
		stream_done(op->stream, garbage);
	op->stream = NULL;
	obd_op_finish(op);
	for (uint32_t i = 0; i < op->n_after; i++) {
		op->after[i]->ready_ns = ob_max(op->after[i]->ready_ns, op->time_ns);
		if (--op->after[i]->waits == 0)
			obd_sched_ready(op->after[i], marks);
	}
	op->n_after = 0;
	op->next = garbage->ops;
	garbage->ops = op;
	if (--ctx->pending == 0)
		pthread_cond_broadcast(&obd_sched.drained);
}

void obd_sched_complete(struct obd_op *op, struct obd_garbage *garbage, uint32_t self)
{
	struct obd_op *marks = NULL;

	op_complete_one(op, &marks, garbage);
	while (marks) {
		struct obd_op *mark = marks;

		marks = mark->next;
		op_complete_one(mark, &marks, garbage);
	}
	obd_sched_wake(self);
}

/* ---- executors ---- */

static struct obd_op *op_take(void)
{
	struct obd_op *op = NULL;

	if (obd_sched.stopping)
		return NULL;
	if (obd_sched.running_kernels < OBD_KERNELS_MAX)
		op = queue_pop(&obd_sched.kernels);
	if (op)
		obd_sched.running_kernels++;
	else
		op = queue_pop(&obd_sched.others);
	return op;
}

void obd_sched_run(struct obd_op *op, uint32_t self)
{
	struct obd_garbage garbage = { 0 };
	struct obd_op **link;

	op->next = obd_sched.running;
	obd_sched.running = op;
	pthread_mutex_unlock(&obd_sched.lock);
	op_execute(op);
	pthread_mutex_lock(&obd_sched.lock);
	for (link = &obd_sched.running; *link != op; link = &(*link)->next)
		;
	*link = op->next;
	if (op->kind == OBD_OP_KERNEL)
		obd_sched.running_kernels--;
	if (obd_sched.stopping)
		pthread_cond_broadcast(&obd_sched.drained);
	obd_sched_complete(op, &garbage, self);
	pthread_mutex_unlock(&obd_sched.lock);
	obd_garbage_drop(&garbage);
	pthread_mutex_lock(&obd_sched.lock);
}

/* Sleeps until there is work. False: there was none for IDLE_NS, or the scheduler stops. */
static bool idle_wait(void)
{
	struct timespec ts = obd_deadline_at(ob_clock_ns() + IDLE_NS);
	bool more;

	obd_sched.idle++;
	while (!(more = runnable() > 0 && !obd_sched.stopping))
		if (pthread_cond_timedwait(&obd_sched.work, &obd_sched.lock, &ts) == ETIMEDOUT) {
			more = runnable() > 0 && !obd_sched.stopping;
			break;
		}
	obd_sched.idle--;
	return more;
}

static void *executor_main(void *arg)
{
	struct obd_op *op;

	(void)arg;
	obd_guard_unblock();
	pthread_mutex_lock(&obd_sched.lock);
	obd_sched.starting--;
	do {
		while ((op = op_take()))
			obd_sched_run(op, 1);
	} while (idle_wait());
	obd_sched.threads--;
	pthread_mutex_unlock(&obd_sched.lock);
	return NULL;
}

bool obd_sched_start(void)
{
	pthread_condattr_t attr;
	bool ok;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&obd_sched.work, &attr);
	pthread_cond_init(&obd_sched.drained, &attr);
	pthread_condattr_destroy(&attr);
	obd_sched.pid = getpid();
	pthread_mutex_lock(&obd_sched.lock);
	ok = executor_start();
	pthread_mutex_unlock(&obd_sched.lock);
	return ok;
}

void obd_sched_stop(void)
{
	struct timespec ts = obd_deadline_at(ob_clock_ns() + STOP_NS);

	/* never started, or a forked child, which has none of the threads */
	if (obd_sched.pid != getpid())
		return;
	pthread_mutex_lock(&obd_sched.lock);
	obd_sched.stopping = true;
	for (struct obd_op *op = obd_sched.running; op; op = op->next)
		atomic_store(&op->ctx->abort, 1);
	while (obd_sched.running)
		if (pthread_cond_timedwait(&obd_sched.drained, &obd_sched.lock, &ts) == ETIMEDOUT)
			break;
	pthread_mutex_unlock(&obd_sched.lock);
}
