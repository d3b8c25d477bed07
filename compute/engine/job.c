/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The life of a call, from its arguments to its end: jobs, and the tickets that represent them to
 * callers.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "compute/engine/engine.h"

#define PROGRESS_NS  (100 * OB_MS)
#define TIMEOUT_MOST 1e9 /* seconds */

/* The job whose callback runs on this thread, with its callback lock held. */
static _Thread_local struct obv_job *inside;

void obv_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

int obv_call_check(const struct outboard_call *call, struct outboard_error *error)
{
	if (!call)
		return OUTBOARD_OK;
	if (call->strategy > OUTBOARD_DYNAMIC + 1)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"call.strategy is %u: 0, or one more than a value of enum "
			"outboard_strategy",
			call->strategy);
	if (!(call->timeout >= 0))
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"call.timeout is %g: 0 for none, or seconds", call->timeout);
	for (unsigned i = 0; i < sizeof(call->reserved) / sizeof(call->reserved[0]); i++)
		if (call->reserved[i])
			return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
				"call.reserved is not zero: clear the struct before setting its "
				"fields");
	return OUTBOARD_OK;
}

/* ---- creation ---- */

static int admit(struct outboard *context, struct obv_job *job, struct outboard_error *error)
{
	pthread_mutex_lock(&context->lock);
	if (context->closing || context->jobs >= OUTBOARD_MAX_CALLS) {
		bool closing = context->closing;

		pthread_mutex_unlock(&context->lock);
		return closing ? obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
					 "the context is closed")
			       : obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM,
					 "%d calls are under way: wait for some of them",
					 OUTBOARD_MAX_CALLS);
	}
	job->next = context->first_job;
	if (job->next)
		job->next->previous = job;
	context->first_job = job;
	context->jobs++;
	context->refs++;
	pthread_mutex_unlock(&context->lock);
	return OUTBOARD_OK;
}

static void leave(struct obv_job *job)
{
	struct outboard *context = job->context;

	if (job->previous)
		job->previous->next = job->next;
	else
		context->first_job = job->next;
	if (job->next)
		job->next->previous = job->previous;
	job->next = job->previous = NULL;
	if (--context->jobs == 0)
		pthread_cond_broadcast(&context->idle);
}

void *obv_job_new(struct outboard *context, size_t bytes, const struct obv_job_ops *ops,
	uint32_t operation, const struct outboard_call *call, struct outboard_error *error)
{
	struct obv_job *job;

	if (obv_call_check(call, error) != OUTBOARD_OK)
		return NULL;
	job = calloc(1, bytes);
	if (!job) {
		obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM, "no memory for a call");
		return NULL;
	}
	job->context = context;
	job->ops = ops;
	job->operation = operation;
	job->allowed = UINT64_MAX;
	job->refs = 1;
	job->fd = -1;
	job->deadline = OB_NEVER;
	job->told = -1;
	if (call) {
		job->call = *call;
		if (call->timeout > 0 && call->timeout < TIMEOUT_MOST)
			job->deadline = ob_clock_ns() + (uint64_t)(call->timeout * 1e9);
	}
	if (admit(context, job, error) != OUTBOARD_OK) {
		free(job);
		return NULL;
	}
	obv_cond_init(&job->done);
	pthread_mutex_init(&job->callbacks, NULL);
	return job;
}

bool obv_job_pieces(struct obv_job *job, unsigned count)
{
	if (count > OBV_PIECES_MAX)
		return false;
	job->pieces = calloc(count ? count : 1, sizeof(*job->pieces));
	job->progress = calloc(count ? count : 1, sizeof(*job->progress));
	if (!job->pieces || !job->progress)
		return false;
	for (unsigned i = 0; i < count; i++)
		job->pieces[i] = (struct obv_piece){ .job = job, .index = i };
	job->piece_count = count;
	return true;
}

static int no_device(const struct obv_job *job, struct outboard_error *error)
{
	struct outboard *context = job->context;
	bool any = false;

	for (unsigned i = 0; i < context->count; i++)
		any |= (job->allowed >> i & 1) &&
			(context->device[i].backend.operations >> job->operation & 1);
	return any
		? obv_fail(error, OUTBOARD_DEVICE, OUTBOARD_NO_ITEM,
			  "every device that could do this has failed and is paused: try again in "
			  "a few seconds, or open a context with a CPU")
		: obv_fail(error, OUTBOARD_UNSUPPORTED, OUTBOARD_NO_ITEM,
			  "no device of this context can do this: open one with a CPU in its list");
}

int obv_job_cut(struct obv_job *job, uint64_t count, double size, bool batch, uint64_t least,
	uint64_t items_each, struct outboard_error *error)
{
	struct obv_part parts[OUTBOARD_MAX_DEVICES];
	unsigned n = obv_share(job->context, job, count, size, batch, least, parts), pieces = 0;
	uint64_t of[OUTBOARD_MAX_DEVICES];

	if (!n && count)
		return no_device(job, error);
	for (unsigned i = 0; i < n && count; i++) {
		const struct obv_device *d = &job->context->device[parts[i].device];
		double seconds;

		pthread_mutex_lock(&job->context->lock);
		seconds = batch
			? obv_device_seconds(d, job->operation, size, (double)parts[i].count)
			: 0;
		pthread_mutex_unlock(&job->context->lock);
		of[i] = 1;
		if (seconds > OBV_PIECE_SECONDS)
			of[i] = (uint64_t)(seconds / OBV_PIECE_SECONDS) + 1;
		if (of[i] > parts[i].count)
			of[i] = parts[i].count;
		if (of[i] > OBV_PIECES_MAX / OUTBOARD_MAX_DEVICES)
			of[i] = OBV_PIECES_MAX / OUTBOARD_MAX_DEVICES;
		pieces += (unsigned)of[i];
	}
	if (!obv_job_pieces(job, pieces))
		return obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
			"no memory for the pieces of a call");
	for (unsigned i = 0, at = 0; i < n && count; i++)
		for (uint64_t k = 0; k < of[i]; k++, at++) {
			struct obv_piece *p = &job->pieces[at];
			uint64_t first = parts[i].count * k / of[i],
				 end = parts[i].count * (k + 1) / of[i];

			p->first = parts[i].first + first;
			p->count = end - first;
			p->size = batch ? size : (double)p->count;
			p->times = batch ? (double)p->count : 1;
			p->items = p->count * items_each;
			p->device = parts[i].device;
		}
	return OUTBOARD_OK;
}

/* ---- the end ---- */

static double job_done(const struct obv_job *job)
{
	double sum = 0, all = 0;

	for (unsigned i = 0; i < job->piece_count; i++) {
		double weight = job->pieces[i].items ? (double)job->pieces[i].items : 1;

		sum += weight * atomic_load_explicit(&job->progress[i], memory_order_relaxed) / 1e6;
		all += weight;
	}
	return all > 0 ? sum / all : 1;
}

static void tell_end(struct obv_job *job)
{
	struct obv_job *outer = inside;

	pthread_mutex_lock(&job->callbacks);
	inside = job;
	if (job->status == OUTBOARD_OK && job->call.progress)
		job->call.progress(job->call.arg, 1);
	if (job->call.finished)
		job->call.finished(job->call.arg, job->status,
			job->status == OUTBOARD_OK ? NULL : &job->error);
	inside = outer;
	pthread_mutex_unlock(&job->callbacks);
}

void obv_job_finish(struct obv_job *job)
{
	struct outboard *context = job->context;
	int why;

	pthread_mutex_lock(&context->lock);
	job->refs++; /* because the last callback may free the ticket */
	why = !job->failed && job->dropped ? job->why : OUTBOARD_OK;
	pthread_mutex_unlock(&context->lock);
	if (why == OUTBOARD_TIMEOUT)
		job->status = obv_fail(&job->error, why, OUTBOARD_NO_ITEM,
			"not done within %g seconds: allow more, or less work at once",
			job->call.timeout);
	else if (why != OUTBOARD_OK)
		job->status =
			obv_fail(&job->error, why, OUTBOARD_NO_ITEM, "the call was cancelled");
	if (job->status == OUTBOARD_OK && job->ops->finish)
		job->status = job->ops->finish(job, &job->error);
	tell_end(job);
	pthread_mutex_lock(&context->lock);
	job->over = true;
	leave(job);
	if (job->fd >= 0 && eventfd_write(job->fd, 1) != 0)
		job->fd = job->fd; /* a full pipe is impossible: it is written only once */
	pthread_cond_broadcast(&job->done);
	pthread_mutex_unlock(&context->lock);
	obv_job_unref(job);
}

void obv_job_unref(struct obv_job *job)
{
	struct outboard *context;

	if (!job)
		return;
	context = job->context;
	pthread_mutex_lock(&context->lock);
	if (--job->refs) {
		pthread_mutex_unlock(&context->lock);
		return;
	}
	if (!job->submitted)
		leave(job);
	pthread_mutex_unlock(&context->lock);
	if (job->ops->fini)
		job->ops->fini(job);
	if (job->fd >= 0)
		close(job->fd);
	pthread_cond_destroy(&job->done);
	pthread_mutex_destroy(&job->callbacks);
	free(job->pieces);
	free((void *)job->progress);
	free(job);
	obv_context_unref(context);
}

bool obv_job_stopped(const struct obv_job *job)
{
	return atomic_load_explicit(&job->stop, memory_order_relaxed) ||
		(job->deadline != OB_NEVER && ob_clock_ns() >= job->deadline);
}

bool obv_job_progress(struct obv_job *job, unsigned piece, double done)
{
	uint64_t now;
	double all;

	atomic_store_explicit(&job->progress[piece],
		(uint32_t)((done < 0                  ? 0
					   : done > 1 ? 1
						      : done) *
			1e6),
		memory_order_relaxed);
	/* If another thread holds the lock, it reports the progress. */
	if (job->call.progress && inside != job && pthread_mutex_trylock(&job->callbacks) == 0) {
		struct obv_job *outer = inside;

		now = ob_clock_ns();
		all = job_done(job);
		inside = job;
		if (now >= job->next_progress && all > job->told && all < 1) {
			job->next_progress = now + PROGRESS_NS;
			job->told = all;
			if (job->call.progress(job->call.arg, all))
				outboard_cancel((struct outboard_ticket *)job);
		}
		inside = outer;
		pthread_mutex_unlock(&job->callbacks);
	}
	return !obv_job_stopped(job);
}

/* ---- waiting; the lock is held on entry and exit ---- */

static bool wait_over(struct obv_job *job, uint64_t until)
{
	struct outboard *context = job->context;

	while (!job->over) {
		uint64_t now = ob_clock_ns(), wake = until;

		if (now >= until)
			return false;
		if (!job->dropped && job->left) {
			if (now >= job->deadline) {
				if (obv_job_drop(job, OUTBOARD_TIMEOUT)) {
					pthread_mutex_unlock(&context->lock);
					obv_job_finish(job);
					pthread_mutex_lock(&context->lock);
				}
				continue;
			}
			wake = job->deadline < wake ? job->deadline : wake;
		}
		obv_wait_until(&job->done, &context->lock, wake);
	}
	return true;
}

int obv_job_submit(struct obv_job *job, struct outboard_error *error)
{
	struct outboard *context = job->context;
	struct outboard_ticket **ticket = job->call.ticket;
	bool last;
	int status;

	if (!ticket && inside) {
		obv_job_unref(job);
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"a callback cannot wait for a call: ask for a ticket");
	}
	if (ticket)
		*ticket = (struct outboard_ticket *)job;
	pthread_mutex_lock(&context->lock);
	/* because, with a ticket, the call may be over and freed before this returns */
	job->refs++;
	job->submitted = true;
	job->left = job->piece_count;
	for (unsigned i = 0; i < job->piece_count; i++)
		obv_piece_queue(&context->device[job->pieces[i].device], &job->pieces[i], false);
	obv_balance(context, ob_clock_ns());
	last = obv_job_claim(job);
	pthread_mutex_unlock(&context->lock);
	if (last)
		obv_job_finish(job);
	if (ticket) {
		obv_job_unref(job);
		return OUTBOARD_OK;
	}
	pthread_mutex_lock(&context->lock);
	wait_over(job, OB_NEVER);
	pthread_mutex_unlock(&context->lock);
	status = job->status;
	if (status != OUTBOARD_OK && error)
		*error = job->error;
	obv_job_unref(job);
	obv_job_unref(job);
	return status;
}

/* ---- tickets ---- */

int outboard_wait(struct outboard_ticket *ticket, double timeout, struct outboard_error *error)
{
	struct obv_job *job = (struct obv_job *)ticket;
	uint64_t until = OB_NEVER;
	bool over;

	if (!job)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM, "the ticket is NULL");
	if (inside && timeout != 0)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"a callback cannot wait for a call: poll, or wait in a thread of your own");
	if (timeout >= 0)
		until = ob_clock_ns() +
			(uint64_t)((timeout < TIMEOUT_MOST ? timeout : TIMEOUT_MOST) * 1e9);
	pthread_mutex_lock(&job->context->lock);
	over = wait_over(job, until);
	pthread_mutex_unlock(&job->context->lock);
	if (!over)
		return obv_fail(error, OUTBOARD_TIMEOUT, OUTBOARD_NO_ITEM,
			"the call is not over after %g seconds; it goes on", timeout);
	if (job->status != OUTBOARD_OK && error)
		*error = job->error;
	return job->status;
}

int outboard_poll(struct outboard_ticket *ticket, double *ret_progress)
{
	struct obv_job *job = (struct obv_job *)ticket;
	bool over;

	if (!job)
		return 1;
	pthread_mutex_lock(&job->context->lock);
	over = job->over;
	pthread_mutex_unlock(&job->context->lock);
	if (ret_progress)
		*ret_progress = over && job->status == OUTBOARD_OK ? 1 : job_done(job);
	return over;
}

void outboard_cancel(struct outboard_ticket *ticket)
{
	struct obv_job *job = (struct obv_job *)ticket;
	bool last;

	if (!job)
		return;
	pthread_mutex_lock(&job->context->lock);
	last = obv_job_drop(job, OUTBOARD_CANCELLED);
	pthread_mutex_unlock(&job->context->lock);
	if (last)
		obv_job_finish(job);
}

int outboard_ticket_fd(struct outboard_ticket *ticket)
{
	struct obv_job *job = (struct obv_job *)ticket;

	if (!job)
		return -1;
	pthread_mutex_lock(&job->context->lock);
	if (job->fd < 0)
		job->fd = eventfd(job->over ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_unlock(&job->context->lock);
	return job->fd;
}

int outboard_ticket_attempt(
	struct outboard_ticket *ticket, uint32_t index, struct outboard_error *ret_attempt)
{
	struct obv_job *job = (struct obv_job *)ticket;
	int status = OUTBOARD_ARGUMENT;

	if (!job || !ret_attempt)
		return OUTBOARD_ARGUMENT;
	pthread_mutex_lock(&job->context->lock);
	if (job->over && index < job->attempt_count && index < OUTBOARD_MAX_ATTEMPTS) {
		*ret_attempt = job->attempt[index];
		status = OUTBOARD_OK;
	}
	pthread_mutex_unlock(&job->context->lock);
	return status;
}

void outboard_ticket_free(struct outboard_ticket *ticket)
{
	struct obv_job *job = (struct obv_job *)ticket;

	if (!job)
		return;
	/*
	 * If the call's own last callback frees the ticket, the thread that runs the callback
	 * releases the job afterwards.
	 */
	if (inside != job) {
		outboard_cancel(ticket);
		pthread_mutex_lock(&job->context->lock);
		wait_over(job, OB_NEVER);
		pthread_mutex_unlock(&job->context->lock);
	}
	obv_job_unref(job);
}
