/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The devices' threads: they take pieces, run them and handle failed pieces. */
#include "compute/engine/engine.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void obv_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline)
{
	struct timespec at = { .tv_sec = (time_t)(deadline / OB_SECOND),
		.tv_nsec = (long)(deadline % OB_SECOND) };

	if (deadline == OB_NEVER)
		pthread_cond_wait(cond, lock);
	else
		pthread_cond_timedwait(cond, lock, &at);
}

/* ---- outcomes of pieces; the lock is held ---- */

static void note_attempt(
	struct obv_job *job, const struct obv_device *device, const struct outboard_error *error)
{
	if (job->attempt_count < OUTBOARD_MAX_ATTEMPTS) {
		job->attempt[job->attempt_count] = *error;
		job->attempt[job->attempt_count].device = device->index;
	}
	job->attempt_count++;
}

static void drop_queued(struct obv_job *job, unsigned above)
{
	for (unsigned i = 0; i < job->context->count; i++) {
		struct obv_device *d = &job->context->device[i];

		for (struct obv_piece *p = d->head, *next; p; p = next) {
			next = p->next;
			if (p->job == job && p->index >= above) {
				obv_piece_unqueue(d, p);
				job->left--;
			}
		}
	}
}

bool obv_job_claim(struct obv_job *job)
{
	if (job->left || job->over || atomic_load_explicit(&job->finishing, memory_order_relaxed))
		return false;
	atomic_store_explicit(&job->finishing, true, memory_order_relaxed);
	return true;
}

static void drop_rest(struct obv_job *job, int why)
{
	if (job->dropped)
		return;
	job->dropped = true;
	job->why = why;
	atomic_store_explicit(&job->stop, true, memory_order_relaxed);
	drop_queued(job, 0);
}

bool obv_job_drop(struct obv_job *job, int why)
{
	if (job->over || !job->left)
		return false;
	drop_rest(job, why);
	return obv_job_claim(job);
}

/*
 * If a caller's argument is wrong, the error is that of the first item at fault, even if a later
 * one is found earlier, so pieces before this one still run. After any other error no further piece
 * starts.
 */
static void fail_job(
	struct obv_job *job, const struct obv_piece *piece, const struct outboard_error *error)
{
	if (!job->failed ||
		(error->status == OUTBOARD_ARGUMENT && piece->index < job->failed - 1)) {
		job->error = *error;
		job->status = error->status;
		job->failed = piece->index + 1;
	}
	if (error->status != OUTBOARD_ARGUMENT)
		atomic_store_explicit(&job->stop, true, memory_order_relaxed);
	drop_queued(job, error->status == OUTBOARD_ARGUMENT ? piece->index : 0);
}

/* All devices have failed: makes one error text with the last error of every device. */
static void fail_everywhere(
	struct obv_job *job, const struct obv_piece *piece, const struct outboard_error *last)
{
	struct outboard_error all = *last;
	unsigned kept = job->attempt_count < OUTBOARD_MAX_ATTEMPTS ? job->attempt_count
								   : OUTBOARD_MAX_ATTEMPTS;
	size_t n;
	uint32_t told = all.device;

	snprintf(all.text, sizeof(all.text), "%.40s: %.300s",
		job->context->device[all.device].backend.name, last->text);
	for (unsigned i = kept; i-- > 0;) {
		const struct outboard_error *a = &job->attempt[i];

		if (a->device == told || strstr(all.text, a->text))
			continue;
		n = strlen(all.text);
		snprintf(all.text + n, sizeof(all.text) - n, "; %s: %s",
			job->context->device[a->device].backend.name, a->text);
	}
	n = strlen(all.text);
	snprintf(all.text + n, sizeof(all.text) - n, " (%u attempts; no other device is left)",
		job->attempt_count);
	fail_job(job, piece, &all);
}

/* Moves the piece to another device; false: there is none. */
static bool move_piece(struct obv_piece *piece, struct obv_device *from, uint64_t now)
{
	int to = obv_piece_place(from->context, piece, now);

	if (to < 0)
		return false;
	piece->attempts = 0;
	piece->not_before = 0;
	obv_piece_queue(&from->context->device[to], piece, false);
	from->stats.moved_out++;
	from->context->device[to].stats.moved_in++;
	return true;
}

/*
 * The breaker has opened: moves queued pieces to other devices. A piece that no other device can
 * run stays for the trial after the pause.
 */
static void evacuate(struct obv_device *device, uint64_t now)
{
	struct obv_piece *list = device->head;

	device->head = device->tail = NULL;
	device->stats.queued = 0;
	device->queued_seconds = 0;
	while (list) {
		struct obv_piece *piece = list;

		list = piece->next;
		if (!move_piece(piece, device, now))
			obv_piece_queue(device, piece, false);
	}
}

static void settle_failure(struct obv_device *device, struct obv_piece *piece,
	struct outboard_error *error, uint64_t now)
{
	struct outboard *context = device->context;
	struct obv_job *job = piece->job;

	error->device = device->index;
	note_attempt(job, device, error);
	device->stats.failures++;
	if (error->status != OUTBOARD_DEVICE) {
		/* The device works, but it cannot run this piece. */
		obv_breaker_success(&device->breaker);
	} else if (obv_breaker_failure(&device->breaker, now)) {
		device->stats.opened++;
		piece->tried |= (uint64_t)1 << device->index;
		evacuate(device, now);
	} else if (piece->attempts < context->retries && !job->dropped) {
		piece->attempts++;
		device->stats.retries++;
		piece->not_before =
			now + obv_backoff(piece->attempts, context->backoff, context->backoff_most);
		obv_piece_queue(device, piece, true);
		return;
	}
	piece->tried |= (uint64_t)1 << device->index;
	if (!job->dropped && move_piece(piece, device, now))
		return;
	job->left--;
	if (!job->dropped)
		fail_everywhere(job, piece, error);
}

static void settle(struct obv_device *device, struct obv_piece *piece, int status,
	struct outboard_error *error, uint64_t now)
{
	struct obv_job *job = piece->job;

	switch (status) {
	case OUTBOARD_OK:
		obv_breaker_success(&device->breaker);
		device->stats.pieces++;
		device->stats.items += piece->items;
		atomic_store_explicit(&job->progress[piece->index], 1000000, memory_order_relaxed);
		job->left--;
		return;
	case OUTBOARD_DEVICE:
	case OUTBOARD_NO_MEMORY:
	case OUTBOARD_UNSUPPORTED:
		settle_failure(device, piece, error, now);
		return;
	case OUTBOARD_CANCELLED:
		/* The piece says nothing about the device: the next piece is the trial. */
		if (device->breaker.state == OUTBOARD_HALF_OPEN) {
			device->breaker.state = OUTBOARD_OPEN;
			device->breaker.until = now;
		}
		job->left--;
		drop_rest(job, now >= job->deadline ? OUTBOARD_TIMEOUT : OUTBOARD_CANCELLED);
		return;
	default:
		obv_breaker_success(&device->breaker);
		error->device = device->index;
		job->left--;
		if (!job->dropped)
			fail_job(job, piece, error);
	}
}

/* ---- a device's thread ---- */

static struct obv_piece *next_ready(
	const struct obv_device *device, uint64_t now, uint64_t *ret_wake)
{
	*ret_wake = OB_NEVER;
	if (device->head && !obv_breaker_ready(&device->breaker, now)) {
		*ret_wake = device->breaker.until;
		return NULL;
	}
	for (struct obv_piece *p = device->head; p; p = p->next) {
		if (p->not_before <= now)
			return p;
		*ret_wake = p->not_before < *ret_wake ? p->not_before : *ret_wake;
	}
	return NULL;
}

/* The lock is held on entry and exit, and released in between. */
static void run_piece(struct obv_device *device, struct obv_piece *piece, uint64_t now)
{
	struct outboard *context = device->context;
	struct obv_job *job = piece->job;
	struct outboard_error error = { 0 };
	bool trial;
	int status = OUTBOARD_OK;

	obv_piece_unqueue(device, piece);
	if (now >= job->deadline) {
		drop_rest(job, OUTBOARD_TIMEOUT);
		job->left--; /* the piece itself is no longer in any queue */
		return;
	}
	obv_breaker_begin(&device->breaker, now, &trial);
	device->running_seconds = piece->seconds > 0 ? piece->seconds : 1e-9;
	device->running_since = now;
	pthread_mutex_unlock(&context->lock);
	if (trial && device->backend.ops->revive)
		status = device->backend.ops->revive(device->backend.self, &error);
	if (status == OUTBOARD_OK)
		status = job->ops->run(job, piece, device, &error);
	error.status = status;
	pthread_mutex_lock(&context->lock);
	now = ob_clock_ns();
	device->busy += (double)(now - device->running_since) / 1e9;
	device->running_seconds = 0;
	settle(device, piece, status, &error, now);
}

void *obv_engine_main(void *arg)
{
	struct obv_device *device = arg;
	struct outboard *context = device->context;

	pthread_mutex_lock(&context->lock);
	for (;;) {
		uint64_t now = ob_clock_ns(), wake;
		struct obv_piece *piece = next_ready(device, now, &wake);
		struct obv_job *job;
		bool last;

		if (!piece) {
			if (context->closing && !context->jobs)
				break;
			obv_wait_until(&device->work, &context->lock, wake);
			continue;
		}
		job = piece->job;
		job->refs++;
		run_piece(device, piece, now);
		last = obv_job_claim(job);
		obv_balance(context, ob_clock_ns());
		pthread_mutex_unlock(&context->lock);
		if (last)
			obv_job_finish(job);
		obv_job_unref(job);
		pthread_mutex_lock(&context->lock);
	}
	pthread_mutex_unlock(&context->lock);
	return NULL;
}
