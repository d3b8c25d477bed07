/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The second part of the scheduler: dependencies of an op, submission, and waiting. */
#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/opt.h"
#include "softdevice/context.h"
#include "softdevice/dry_clock.h"
#include "softdevice/green.h"
#include "softdevice/sched_inside.h"

#define SPIN_NS 5000u /* time that a waiter spins before it sleeps */

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
	if (on->after != on->after_inline)
		free(on->after);
	on->after = after;
	on->max_after = max;
	return true;
}

/*
 * Makes `op` depend on `on`. Called twice: with op NULL it reserves the memory for one more
 * dependant, which may fail; with `op` it adds the dependency, which cannot fail.
 */
static bool depend(struct obd_op *on, struct obd_op *op)
{
	if (!on || obd_op_done(on))
		return true;
	if (!op)
		return after_reserve(on);
	on->after[on->n_after++] = op;
	op->waits++;
	op->unbounded_wait |=
		on->unbounded_wait || on->kind == OBD_OP_KERNEL || on->kind == OBD_OP_HOST;
	return true;
}

static bool depend_all(struct obd_stream *stream, struct obd_op *event, struct obd_op *op)
{
	struct obd_ctx *ctx = stream->ctx;

	if (!depend(stream->last, op) || (event && event != stream->last && !depend(event, op)))
		return false;
	if (stream->base.legacy) {
		for (struct obd_stream *other = ctx->busy; other; other = other->busy_next)
			if (other->base.blocking && other->last != event &&
				!depend(other->last, op))
				return false;
	} else if (stream->base.blocking && ctx->legacy->last != event) {
		return depend(ctx->legacy->last, op);
	}
	return true;
}

/* In a dry run: the time from which the op can run, as far as the work before it is complete. */
static uint64_t ready_dry(const struct obd_stream *stream, struct obd_op *event)
{
	const struct obd_ctx *ctx = stream->ctx;
	uint64_t ready = ob_max(ob_clock_ns(), stream->end_ns);

	if (stream->base.legacy)
		ready = ob_max(ready, ctx->blocking_end_ns);
	else if (stream->base.blocking)
		ready = ob_max(ready, ctx->legacy->end_ns);
	return event && obd_op_done(event) ? ob_max(ready, event->time_ns) : ready;
}

/* Called with the lock held. False: out of memory. */
static bool op_append(struct obd_op *op, struct obd_stream *stream, struct obd_op *event)
{
	if (!depend_all(stream, event, NULL))
		return false;
	if (ob_unlikely(obd_dry_clock()))
		op->ready_ns = ready_dry(stream, event);
	depend_all(stream, event, op);
	op->stream = stream;
	op->limit = obd_green_limit(stream->base.green);
	op->number = ++obd_sched.submitted;
	op->priority = ob_max(ob_min(stream->base.priority, 0), OBD_PRIORITY_GREATEST);
	if (stream->last) {
		/* not the last reference: the op is pending, so the scheduler has one */
		obd_op_unref(stream->last);
	} else if (!stream->base.legacy) {
		obd_busy_add(stream->ctx, stream);
	}
	stream->last = obd_op_ref(op);
	op->ctx->pending++;
	obd_op_ref(op); /* the scheduler's reference */
	return true;
}

CUresult obd_sched_submit(struct obd_op *op, struct obd_stream *stream, struct obd_op *event)
{
	struct obd_garbage garbage = { 0 };
	bool ok;

	pthread_mutex_lock(&obd_sched.lock);
	ok = op_append(op, stream, event);
	if (ok && op->waits == 0) {
		if (op->run) {
			obd_sched_ready(op, NULL);
			obd_sched_wake(0);
		} else {
			obd_sched_complete(op, &garbage, 0);
		}
	}
	pthread_mutex_unlock(&obd_sched.lock);
	obd_garbage_drop(&garbage);
	return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult obd_sched_run_or_submit(struct obd_op *op, struct obd_stream *stream)
{
	bool ok;

	pthread_mutex_lock(&obd_sched.lock);
	ok = op_append(op, stream, NULL);
	if (ok && op->waits == 0)
		obd_sched_run(op, 0);
	pthread_mutex_unlock(&obd_sched.lock);
	return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult obd_sched_run_and_wait(struct obd_op *op, struct obd_stream *stream)
{
	CUresult result = obd_sched_run_or_submit(op, stream);

	if (!result)
		obd_op_wait(op);
	return result;
}

/* ---- waiting for one op ---- */

/*
 * A queued op that may run now and that must run before `awaited`: an op of the same stream, or of
 * the whole context if `awaited` is a join. Host functions are run by executors only.
 */
static struct obd_op *queued_before(struct obd_queue *q, const struct obd_op *awaited)
{
	for (int p = 0; q->n && p < OBD_PRIORITIES; p++) {
		struct obd_op *op = q->first[p];

		if (op && op->kind != OBD_OP_HOST && op->ctx == awaited->ctx &&
			op->number <= awaited->number &&
			(!awaited->stream || op->stream == awaited->stream))
			return op;
	}
	return NULL;
}

/* Runs one op that `awaited` depends on. False: there is none that this thread may run. */
static bool run_one_before(struct obd_op *awaited)
{
	struct obd_op *op = NULL;

	pthread_mutex_lock(&obd_sched.lock);
	if (!obd_op_done(awaited) && !obd_sched.stopping) {
		if (obd_sched.running_kernels < OBD_KERNELS_MAX &&
			(op = queued_before(&obd_sched.kernels, awaited))) {
			obd_queue_take(&obd_sched.kernels, op);
			obd_sched.running_kernels++;
		} else if ((op = queued_before(&obd_sched.others, awaited))) {
			obd_queue_take(&obd_sched.others, op);
		}
	}
	if (op)
		obd_sched_run(op, 0);
	pthread_mutex_unlock(&obd_sched.lock);
	return op != NULL;
}

void obd_op_wait(struct obd_op *op)
{
	bool spin = ob_opt_on(OB_OPT_SPIN), may_run = ob_opt_on(OB_OPT_HELP);
	uint64_t end = 0;

	while (!obd_op_done(op)) {
		if (may_run && run_one_before(op))
			continue;
		if (spin && !end)
			end = ob_clock_ns() + SPIN_NS;
		while (spin && !obd_op_done(op) && ob_clock_ns() < end)
			ob_clock_relax();
		if (obd_op_done(op))
			break;
		obd_op_sleep(op);
	}
	obd_dry_wait(op->time_ns, NULL);
}

bool obd_op_over(struct obd_op *op)
{
	return obd_op_done(op) && obd_dry_passed(op->time_ns);
}

/* ---- waiting ---- */

struct obd_op *obd_stream_last(struct obd_stream *stream)
{
	struct obd_op *op;

	pthread_mutex_lock(&obd_sched.lock);
	op = obd_op_ref(stream->last);
	pthread_mutex_unlock(&obd_sched.lock);
	return op;
}

uint64_t obd_stream_end(struct obd_stream *stream)
{
	uint64_t end;

	if (ob_likely(!obd_dry_clock()))
		return 0;
	pthread_mutex_lock(&obd_sched.lock);
	end = stream->end_ns;
	pthread_mutex_unlock(&obd_sched.lock);
	return obd_dry_passed(end) ? 0 : end;
}

/* When the context's completed work ends on the device's clock. */
static uint64_t ctx_end(const struct obd_ctx *ctx, bool legacy_only)
{
	return legacy_only ? ctx->blocking_end_ns : ctx->end_ns;
}

/* Makes `op` depend on the work of the context. Called twice, as depend(). */
static bool depend_ctx(struct obd_ctx *ctx, bool legacy_only, struct obd_op *op)
{
	if (!depend(ctx->legacy->last, op))
		return false;
	for (struct obd_stream *stream = ctx->busy; stream; stream = stream->busy_next)
		if (!(legacy_only && !stream->base.blocking) && !depend(stream->last, op))
			return false;
	return true;
}

/*
 * Submits a mark that depends on all work submitted so far and that is on no stream. Work that
 * other threads submit later does not delay the caller.
 */
static bool join_submit(struct obd_op *join, bool legacy_only)
{
	struct obd_ctx *ctx = join->ctx;
	struct obd_garbage garbage = { 0 };
	bool ok;

	pthread_mutex_lock(&obd_sched.lock);
	ok = depend_ctx(ctx, legacy_only, NULL);
	if (ok) {
		join->ready_ns = ctx_end(ctx, legacy_only);
		depend_ctx(ctx, legacy_only, join);
		ctx->pending++;
		join->number = ++obd_sched.submitted;
		obd_op_ref(join);
		if (join->waits == 0)
			obd_sched_complete(join, &garbage, 0);
	}
	pthread_mutex_unlock(&obd_sched.lock);
	obd_garbage_drop(&garbage);
	return ok;
}

bool obd_ctx_idle(struct obd_ctx *ctx, bool legacy_only)
{
	bool idle;

	pthread_mutex_lock(&obd_sched.lock);
	idle = !ctx->legacy->last && obd_dry_passed(ctx_end(ctx, legacy_only));
	for (struct obd_stream *stream = ctx->busy; idle && stream; stream = stream->busy_next)
		idle = legacy_only && !stream->base.blocking;
	pthread_mutex_unlock(&obd_sched.lock);
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
	} else { /* out of memory: poll */
		while (!obd_ctx_idle(ctx, legacy_only))
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	obd_op_unref(join);
}

static bool is_bounded_copy(const struct obd_op *op, uint64_t until)
{
	return op->kind == OBD_OP_COPY && !op->unbounded_wait && op->number <= until;
}

static bool copies_run(uint64_t until)
{
	for (const struct obd_op *op = obd_sched.running; op; op = op->next)
		if (is_bounded_copy(op, until))
			return true;
	for (int p = 0; obd_sched.others.n && p < OBD_PRIORITIES; p++)
		for (const struct obd_op *op = obd_sched.others.first[p]; op; op = op->next)
			if (is_bounded_copy(op, until))
				return true;
	return false;
}

void obd_sched_copies_wait(void)
{
	uint64_t until = 0;
	bool run;

	for (;;) {
		pthread_mutex_lock(&obd_sched.lock);
		if (!until)
			until = obd_sched.submitted;
		run = copies_run(until);
		pthread_mutex_unlock(&obd_sched.lock);
		if (!run)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	}
}

bool obd_ctx_drain(struct obd_ctx *ctx, uint64_t deadline)
{
	struct timespec ts = obd_deadline_at(deadline);
	bool drained;

	pthread_mutex_lock(&obd_sched.lock);
	while (!(drained = ctx->pending == 0))
		if (pthread_cond_timedwait(&obd_sched.drained, &obd_sched.lock, &ts) == ETIMEDOUT) {
			drained = ctx->pending == 0;
			break;
		}
	pthread_mutex_unlock(&obd_sched.lock);
	return drained;
}
