/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/thread.h"
#include "compute/command/progress.h"
#include "compute/command/rqa/device.h"
#include "compute/command/rqa/format.h"

#define PROGRESS_PERIOD 0.2
#define LOGGED_FAILURES 100
#define NO_CURRENT      UINT64_MAX

const char *obx_job_phase_name(enum obx_job_phase phase)
{
	static const char *const names[] = { "idle", "reading", "running", "writing", "completed",
		"failed", "stopped" };

	return names[phase];
}

bool obx_job_init(struct obx_job *job)
{
	pthread_condattr_t monotonic;

	memset(job, 0, sizeof *job);
	job->events = calloc(OBX_JOB_EVENTS_MAX, sizeof *job->events);
	job->next_event = 1;
	pthread_mutex_init(&job->lock, NULL);
	pthread_mutex_init(&job->use, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&job->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return job->events;
}

/* An event of the stream while it is written. */
struct event {
	struct obx_job *job;
	FILE *memory; /* NULL: out of memory, the event is lost */
	char *text;
	size_t size;
	struct ob_json json;
};

/* Call with the lock held, up to event_end. The caller adds members to json if memory is there. */
static bool event_begin(struct event *e, struct obx_job *job, const char *name)
{
	struct timespec now;
	char stamp[32];

	*e = (struct event){ .job = job };
	e->memory = open_memstream(&e->text, &e->size);
	if (!e->memory)
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(stamp, sizeof stamp, "%lld.%03ld", (long long)now.tv_sec, now.tv_nsec / 1000000);
	fprintf(e->memory, "event: %s\ndata: ", name);
	ob_json_begin(&e->json, e->memory, OB_JSON_COMPACT);
	ob_json_object(&e->json, NULL);
	ob_json_raw(&e->json, "timestamp", stamp);
	return true;
}

/* False: the event is longer than OBX_JOB_EVENT_BYTES and was not added. */
static bool event_end(struct event *e)
{
	struct obx_job *job = e->job;
	bool fits;

	ob_json_end(&e->json);
	fputs("\n\n", e->memory);
	fits = fclose(e->memory) == 0 && e->size < OBX_JOB_EVENT_BYTES;
	if (fits) {
		memcpy(job->events[job->next_event % OBX_JOB_EVENTS_MAX], e->text, e->size + 1);
		job->next_event++;
		pthread_cond_broadcast(&job->changed);
	}
	free(e->text);
	return fits;
}

static void set_phase(struct obx_job *job, enum obx_job_phase phase)
{
	struct event e;

	job->phase = phase;
	if (!event_begin(&e, job, "phase"))
		return;
	ob_json_text(&e.json, "phase", obx_job_phase_name(phase));
	event_end(&e);
}

/* Adds a sentence to the log with a level: info, good, warning, error. Call with the lock held. */
static bool log_line(struct obx_job *job, const char *level, const char *text)
{
	struct event e;

	if (!event_begin(&e, job, "log"))
		return true;
	ob_json_text(&e.json, "level", level);
	ob_json_text(&e.json, "text", text);
	return event_end(&e);
}

static void add_log(struct obx_job *job, const char *level, const char *text)
{
	if (!log_line(job, level, text))
		log_line(job, level, "a message was too long to be shown; see failed.csv");
}

static void add_counts(struct obx_job *job, const char *name, uint64_t current, uint64_t total)
{
	struct event e;

	if (!event_begin(&e, job, name))
		return;
	if (current != NO_CURRENT)
		ob_json_uint(&e.json, "current", current);
	ob_json_uint(&e.json, "total", total);
	event_end(&e);
}

static void add_progress(struct obx_job *job, const struct obx_sweep_event *s, bool always)
{
	double now = (double)ob_clock_ns() / (double)OB_SECOND;
	const struct obx_sweep_counts *n = &s->counts;
	struct event e;

	if (!always && now - job->progress_at < PROGRESS_PERIOD)
		return;
	job->progress_at = now;
	if (!event_begin(&e, job, "progress_update"))
		return;
	ob_json_uint(&e.json, "current", n->done + n->skipped + n->failed);
	ob_json_uint(&e.json, "total", n->total);
	ob_json_fixed(&e.json, "progress", s->share * 100, 2);
	ob_json_text(&e.json, "param_signature", s->signature);
	ob_json_uint(&e.json, "success", n->done);
	ob_json_uint(&e.json, "skipped", n->skipped);
	ob_json_uint(&e.json, "failed", n->failed);
	ob_json_fixed(&e.json, "elapsed", s->elapsed, 1);
	ob_json_fixed(&e.json, "eta", s->eta, 1);
	ob_json_double(&e.json, "cells_per_second", s->elapsed > 0 ? s->cells / s->elapsed : 0, 4);
	ob_json_uint(&e.json, "memory_resident", obx_memory_resident());
	event_end(&e);
}

static void add_completed(struct obx_job *job, bool good)
{
	const struct obx_sweep_counts *n = &job->sweep->counts;
	struct event e;

	if (!event_begin(&e, job, "batch_completed"))
		return;
	ob_json_bool(&e.json, "complete", good);
	ob_json_fixed(&e.json, "seconds", job->sweep->elapsed, 3);
	ob_json_object(&e.json, "stats");
	ob_json_uint(&e.json, "total", n->total);
	ob_json_uint(&e.json, "success", n->done);
	ob_json_uint(&e.json, "failed", n->failed);
	ob_json_uint(&e.json, "skipped", n->skipped);
	ob_json_end(&e.json);
	event_end(&e);
}

static void on_event(void *arg, const struct obx_sweep_event *e)
{
	struct obx_job *job = arg;
	char text[OBX_JOB_EVENT_BYTES], a[OBX_NUMBER_MAX];
	double now = (double)ob_clock_ns() / (double)OB_SECOND;

	pthread_mutex_lock(&job->lock);
	switch (e->kind) {
	case OBX_SWEEP_READING:
		if (now - job->progress_at < PROGRESS_PERIOD && e->current < e->total)
			break;
		job->progress_at = now;
		add_counts(job, "reading", e->current, e->total);
		break;
	case OBX_SWEEP_STARTED:
		set_phase(job, OBX_JOB_RUNNING);
		add_counts(job, "batch_started", NO_CURRENT, e->counts.total);
		snprintf(text, sizeof text, "Started: %s rows",
			obx_number_group(e->counts.total, a));
		add_log(job, "info", text);
		break;
	case OBX_SWEEP_PROGRESS:
		add_progress(job, e, e->eta == 0);
		break;
	case OBX_SWEEP_FAILED:
		if (job->failures++ < LOGGED_FAILURES)
			add_log(job, "warning", e->text);
		else if (job->failures == LOGGED_FAILURES + 1)
			add_log(job, "warning", "More failures are listed in failed.csv");
		break;
	case OBX_SWEEP_WRITING:
		if (job->phase != OBX_JOB_WRITING)
			set_phase(job, OBX_JOB_WRITING);
		snprintf(text, sizeof text, "Writing %s", e->text);
		add_log(job, "info", text);
		break;
	}
	pthread_mutex_unlock(&job->lock);
}

static void *run(void *arg)
{
	struct obx_job *job = arg;
	struct obx_sweep *sweep = job->sweep;
	struct obx_sweep_counts n;
	struct obx_error error = { "" };
	char text[OBX_JOB_EVENT_BYTES], done[OBX_NUMBER_MAX], skipped[OBX_NUMBER_MAX],
		failed[OBX_NUMBER_MAX];
	bool good = obx_sweep_open(sweep, &error);

	if (good) {
		pthread_mutex_lock(&job->lock);
		job->open = true;
		pthread_mutex_unlock(&job->lock);
		good = obx_sweep_run(sweep, &error) && obx_sweep_write(sweep, &error);
	}
	n = sweep->counts;
	pthread_mutex_lock(&job->lock);
	if (!good)
		add_log(job, sweep->cancel ? "warning" : "error",
			sweep->cancel ? "Stopped. Start again to go on from here." : error.text);
	snprintf(text, sizeof text, "%s done, %s skipped (done before), %s failed, in %.2f s",
		obx_number_group(n.done, done), obx_number_group(n.skipped, skipped),
		obx_number_group(n.failed, failed), sweep->elapsed);
	if (good)
		add_log(job, n.failed ? "warning" : "good", text);
	set_phase(job, good ? OBX_JOB_COMPLETED : sweep->cancel ? OBX_JOB_STOPPED : OBX_JOB_FAILED);
	add_completed(job, good);
	pthread_mutex_unlock(&job->lock);
	return NULL;
}

static bool busy(const struct obx_job *job)
{
	return job->phase == OBX_JOB_READING || job->phase == OBX_JOB_RUNNING ||
		job->phase == OBX_JOB_WRITING;
}

bool obx_job_start(struct obx_job *job, struct obx_sweep *sweep, struct obx_error *error)
{
	bool good = false;

	pthread_mutex_lock(&job->use);
	pthread_mutex_lock(&job->lock);
	if (busy(job) || job->closing) {
		obx_error_set(error,
			job->closing ? "the server is stopping"
				     : "a sweep is running; stop it or wait for its end");
		obx_sweep_free(sweep);
		goto out;
	}
	if (job->started) {
		pthread_t thread = job->thread;

		/* The thread has set its last phase and is about to return. */
		pthread_mutex_unlock(&job->lock);
		pthread_join(thread, NULL);
		pthread_mutex_lock(&job->lock);
		job->started = false;
	}
	obx_sweep_free(job->sweep);
	job->sweep = sweep;
	job->open = false;
	job->failures = 0;
	snprintf(job->out, sizeof job->out, "%s", sweep->out);
	sweep->on_event = on_event;
	sweep->arg = job;
	set_phase(job, OBX_JOB_READING);
	good = ob_thread_start(run, job, 0, &job->thread);
	job->started = good;
	if (!good) {
		set_phase(job, OBX_JOB_FAILED);
		obx_error_set(error, "no thread could be started");
	}
out:
	pthread_mutex_unlock(&job->lock);
	pthread_mutex_unlock(&job->use);
	return good;
}

void obx_job_stop(struct obx_job *job)
{
	pthread_mutex_lock(&job->lock);
	if (busy(job))
		job->sweep->cancel = 1;
	pthread_mutex_unlock(&job->lock);
}

void obx_job_close(struct obx_job *job)
{
	pthread_mutex_lock(&job->lock);
	job->closing = true;
	if (busy(job))
		job->sweep->cancel = 1;
	pthread_cond_broadcast(&job->changed);
	pthread_mutex_unlock(&job->lock);
}

int obx_job_wait(struct obx_job *job, uint64_t *seq, unsigned timeout_ms,
	char ret_text[OBX_JOB_EVENT_BYTES + 64])
{
	uint64_t until = ob_clock_ns() + timeout_ms * OB_MS;
	struct timespec when = { .tv_sec = (time_t)(until / OB_SECOND),
		.tv_nsec = (long)(until % OB_SECOND) };
	int length = 0;

	pthread_mutex_lock(&job->lock);
	while (!job->closing && *seq + 1 >= job->next_event)
		if (pthread_cond_timedwait(&job->changed, &job->lock, &when) != 0)
			break;
	if (job->closing) {
		length = -1;
	} else if (*seq + 1 < job->next_event) {
		if (*seq + OBX_JOB_EVENTS_MAX < job->next_event)
			*seq = job->next_event - OBX_JOB_EVENTS_MAX;
		++*seq;
		length = snprintf(ret_text, OBX_JOB_EVENT_BYTES + 64, "id: %" PRIu64 "\n%s", *seq,
			job->events[*seq % OBX_JOB_EVENTS_MAX]);
	}
	pthread_mutex_unlock(&job->lock);
	return length;
}

void obx_job_fini(struct obx_job *job)
{
	obx_job_close(job);
	if (job->started)
		pthread_join(job->thread, NULL);
	obx_sweep_free(job->sweep);
	free(job->events);
	pthread_cond_destroy(&job->changed);
	pthread_mutex_destroy(&job->lock);
	pthread_mutex_destroy(&job->use);
}
