/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/job.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "compute/command/rqa/device.h"
#include "compute/command/rqa/format.h"

#define PROGRESS_PERIOD 0.2
#define LOGGED_FAILURES 100

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

/* format makes the members of a JSON object. Call with the lock held. */
static void add_event(struct obx_job *job, const char *name, const char *format, ...)
{
	char *to = job->events[job->next_event % OBX_JOB_EVENTS_MAX];
	struct timespec now;
	va_list args;
	size_t used;

	clock_gettime(CLOCK_REALTIME, &now);
	used = (size_t)snprintf(to, OBX_JOB_EVENT_BYTES,
		"event: %s\ndata: {\"timestamp\":%lld.%03ld,", name, (long long)now.tv_sec,
		now.tv_nsec / 1000000);
	va_start(args, format);
	vsnprintf(to + used, OBX_JOB_EVENT_BYTES - used - 4, format, args);
	va_end(args);
	memcpy(to + strlen(to), "}\n\n", 4);
	job->next_event++;
	pthread_cond_broadcast(&job->changed);
}

static void set_phase(struct obx_job *job, enum obx_job_phase phase)
{
	job->phase = phase;
	add_event(job, "phase", "\"phase\":\"%s\"", obx_job_phase_name(phase));
}

/* Adds a sentence to the log with a level: info, good, warning, error. Call with the lock held. */
static void add_log(struct obx_job *job, const char *level, const char *text)
{
	char *quoted = NULL;
	size_t size;
	FILE *memory = open_memstream(&quoted, &size);

	if (!memory)
		return;
	obx_json_print(memory, text);
	fclose(memory);
	if (size < OBX_JOB_EVENT_BYTES - 200)
		add_event(job, "log", "\"level\":\"%s\",\"text\":%s", level, quoted);
	else
		add_event(job, "log",
			"\"level\":\"%s\",\"text\":\"a message was too long to be shown; see "
			"failed.csv\"",
			level);
	free(quoted);
}

static void add_progress(struct obx_job *job, const struct obx_sweep_event *e, bool always)
{
	double now = (double)ob_clock_ns() / (double)OB_SECOND;
	const struct obx_sweep_counts *n = &e->counts;
	char eta[OBX_NUMBER_MAX] = "null";

	if (!always && now - job->progress_at < PROGRESS_PERIOD)
		return;
	job->progress_at = now;
	if (isfinite(e->eta))
		snprintf(eta, sizeof eta, "%.1f", e->eta);
	add_event(job, "progress_update",
		"\"current\":%" PRIu64 ",\"total\":%" PRIu64
		",\"progress\":%.2f,\"param_signature\":\"%s\",\"success\":%" PRIu64
		",\"skipped\":%" PRIu64 ",\"failed\":%" PRIu64
		",\"elapsed\":%.1f,\"eta\":%s,\"cells_per_second\":%.4g,\"memory_resident\":"
		"%" PRIu64,
		n->done + n->skipped + n->failed, n->total, e->share * 100, e->signature, n->done,
		n->skipped, n->failed, e->elapsed, eta, e->elapsed > 0 ? e->cells / e->elapsed : 0,
		obx_memory_resident());
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
		add_event(job, "reading", "\"current\":%" PRIu64 ",\"total\":%" PRIu64, e->current,
			e->total);
		break;
	case OBX_SWEEP_STARTED:
		set_phase(job, OBX_JOB_RUNNING);
		add_event(job, "batch_started", "\"total\":%" PRIu64, e->counts.total);
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
	add_event(job, "batch_completed",
		"\"complete\":%s,\"seconds\":%.3f,\"stats\":{\"total\":%" PRIu64
		",\"success\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"skipped\":%" PRIu64 "}",
		good ? "true" : "false", sweep->elapsed, n.total, n.done, n.failed, n.skipped);
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
