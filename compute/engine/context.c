/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Contexts: opening the listed devices, options, figures, closing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "compute/engine/device_gpu.h"
#include "compute/engine/engine.h"
#include "compute/msm/tune.h"

#define LIST_MAX 4096

static struct obv_traits traits_of(const struct obv_backend *b)
{
	return (struct obv_traits){ .kind = b->kind,
		.units = b->units,
		.memory = b->memory,
		.clock = b->clock,
		.link = b->link };
}

/* ---- options ---- */

static int bad_option(struct outboard_error *error, const char *text)
{
	return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM, "%s", text);
}

static int check_options(const struct outboard_options *o, struct outboard_error *error)
{
	if (o->strategy > OUTBOARD_DYNAMIC)
		return bad_option(
			error, "options.strategy is not a value of enum outboard_strategy");
	if (!(o->backoff >= 0) || !(o->backoff_most >= 0) || !(o->breaker_pause >= 0) ||
		!(o->balance_horizon >= 0) || o->backoff > 1e6 || o->backoff_most > 1e6 ||
		o->breaker_pause > 1e6)
		return bad_option(error,
			"a time in options is negative, not a number or longer than a million "
			"seconds");
	if (o->share_at_most > OUTBOARD_MAX_DEVICES)
		return bad_option(error, "options.share_at_most is more than OUTBOARD_MAX_DEVICES");
	for (unsigned i = 0; i < sizeof(o->reserved) / sizeof(o->reserved[0]); i++)
		if (o->reserved[i])
			return bad_option(error,
				"options.reserved is not zero: clear the struct before setting its "
				"fields");
	return OUTBOARD_OK;
}

static uint64_t ns_or(double seconds, double otherwise)
{
	return (uint64_t)((seconds > 0 ? seconds : otherwise) * 1e9);
}

static void take_options(struct outboard *context, const struct outboard_options *o)
{
	context->strategy = o->strategy;
	context->share_at_most = o->share_at_most;
	context->retries = o->retries == UINT32_MAX ? 0 : o->retries ? o->retries : 2;
	context->backoff = ns_or(o->backoff, 0.02);
	context->backoff_most = ns_or(o->backoff_most, 1);
	context->horizon = o->balance_horizon > 0 ? o->balance_horizon : 1;
}

/* ---- the list of devices ---- */

struct listing {
	const struct outboard_options *options;
	struct obv_backend backend[OUTBOARD_MAX_DEVICES];
	unsigned n;
	bool cpu, gpu;
};

static int add_cpu(struct listing *l, unsigned threads, struct outboard_error *error)
{
	int status;

	if (l->n == OUTBOARD_MAX_DEVICES)
		return obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM, "more than %d devices",
			OUTBOARD_MAX_DEVICES);
	status = obv_device_cpu_open(
		threads ? threads : l->options->threads, &l->backend[l->n], error);
	if (status == OUTBOARD_OK) {
		l->n++;
		l->cpu = true;
	}
	return status;
}

static int add_gpu(struct listing *l, unsigned ordinal, struct outboard_error *error)
{
	int status;

	if (l->n == OUTBOARD_MAX_DEVICES)
		return obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM, "more than %d devices",
			OUTBOARD_MAX_DEVICES);
	status = obv_device_gpu_open(l->options->driver, ordinal, l->options->gpu_memory,
		!l->options->profile || l->options->profile[0], &l->backend[l->n], error);
	if (status == OUTBOARD_OK) {
		l->n++;
		l->gpu = true;
	}
	return status;
}

/* Adds all GPUs. If there are none, that is an error only if `must` is set. */
static int add_gpus(struct listing *l, bool must, struct outboard_error *error)
{
	struct outboard_error why = { 0 };
	unsigned count = obv_device_gpu_count(l->options->driver, &why);
	int status = OUTBOARD_OK;

	for (unsigned i = 0; i < count && i < OUTBOARD_MAX_DEVICES - 1; i++) {
		status = add_gpu(l, i, &why);
		if (status != OUTBOARD_OK && must)
			break;
	}
	if (!must || (l->gpu && status == OUTBOARD_OK))
		return OUTBOARD_OK;
	if (l->gpu)
		return obv_fail(error, status, OUTBOARD_NO_ITEM,
			"not every GPU can be used: %.300s; name those that can, for example "
			"\"gpu:0\"",
			why.text);
	return obv_fail(error, OUTBOARD_NO_DEVICE, OUTBOARD_NO_ITEM,
		"there is no GPU to be used: %.300s; ask for \"cpu\", or see `outboard check`",
		why.text[0] ? why.text : "the driver shows none");
}

/* "gpu:1", "cpu:8", "cpu" */
static int add_entry(struct listing *l, char *entry, uint64_t index, struct outboard_error *error)
{
	char *colon = strchr(entry, ':');
	uint64_t number = 0;

	if (colon)
		*colon++ = 0;
	if (colon && !ob_text_parse_number(colon, strcmp(entry, "cpu") == 0, 65535, &number))
		return obv_fail(error, OUTBOARD_ARGUMENT, index,
			"the device \"%.40s:%.40s\" is not of the form gpu:ORDINAL or cpu:THREADS",
			entry, colon);
	if (strcmp(entry, "cpu") == 0)
		return add_cpu(l, (unsigned)number, error);
	if (strcmp(entry, "gpu") == 0)
		return colon ? add_gpu(l, (unsigned)number, error) : add_gpus(l, true, error);
	return obv_fail(error, OUTBOARD_ARGUMENT, index,
		"there is no kind of device \"%.40s\": cpu, cpu:THREADS, gpu, gpu:ORDINAL, or auto",
		entry);
}

static int open_listed(struct listing *l, struct outboard_error *error)
{
	const char *devices = l->options->devices;
	char list[LIST_MAX], *rest = list, *entry;
	int status = OUTBOARD_OK;
	uint64_t index = 0;

	if (!devices || strcmp(devices, "auto") == 0) {
		status = add_gpus(l, false, error);
		return status == OUTBOARD_OK ? add_cpu(l, 0, error) : status;
	}
	if (!devices[0] || strlen(devices) >= sizeof(list))
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"options.devices is empty or too long: \"auto\", or for example "
			"\"gpu:0,cpu:8\"");
	strcpy(list, devices);
	while (status == OUTBOARD_OK && (entry = strsep(&rest, ",")) != NULL)
		status = add_entry(l, entry, index++, error);
	if (status == OUTBOARD_OK && !l->cpu && !l->options->no_fallback &&
		l->n < OUTBOARD_MAX_DEVICES) {
		status = add_cpu(l, 0, error);
		if (status == OUTBOARD_OK)
			l->backend[l->n - 1].fallback_only = true;
	}
	return status;
}

/* ---- life ---- */

static void context_free(struct outboard *context)
{
	for (unsigned i = 0; i < context->count; i++) {
		struct obv_device *d = &context->device[i];

		d->backend.ops->close(d->backend.self);
		pthread_cond_destroy(&d->work);
	}
	pthread_cond_destroy(&context->idle);
	pthread_mutex_destroy(&context->lock);
	free(context);
}

void obv_context_unref(struct outboard *context)
{
	bool last;

	pthread_mutex_lock(&context->lock);
	last = --context->refs == 0;
	pthread_mutex_unlock(&context->lock);
	if (last)
		context_free(context);
}

void obv_context_expect(struct outboard *context)
{
	pthread_mutex_lock(&context->lock);
	for (unsigned i = 0; i < context->count; i++) {
		struct obv_device *d = &context->device[i];

		for (unsigned op = 0; d->backend.ops->expect && op < OUTBOARD_OP_COUNT; op++)
			obv_curve_expect(
				&d->curves.op[op], d->backend.ops->expect, d->backend.self, op);
	}
	pthread_mutex_unlock(&context->lock);
}

void obv_context_curves(struct outboard *context)
{
	for (unsigned i = 0; i < context->count; i++) {
		struct obv_device *d = &context->device[i];
		struct obv_traits t = traits_of(&d->backend);
		char key[OBV_PROFILE_KEY];

		snprintf(key, sizeof(key), "%.63s %.120s", d->backend.name, d->backend.what);
		memcpy(d->curves.key, key, sizeof(d->curves.key));
		obv_curves_guess(&d->curves, &t);
	}
}

static void load_profile(struct outboard *context, const char *asked)
{
	struct obv_curves *curves = calloc(context->count, sizeof(*curves));
	const char *why;

	for (unsigned i = 0; curves && i < context->count; i++)
		curves[i] = context->device[i].curves;
	if (!curves)
		return;
	obv_profile_machine(curves, context->count, context->machine);
	if (asked && strlen(asked) < sizeof(context->profile))
		strcpy(context->profile, asked);
	else if (asked ||
		!obv_profile_path(context->machine, context->profile, sizeof(context->profile)))
		context->profile[0] = 0;
	/*
	 * A profile that cannot be used is ignored: estimates are used instead, which affects only
	 * the speed.
	 */
	if (context->profile[0] &&
		obv_profile_read(context->profile, context->machine, curves, context->count, &why))
		for (unsigned i = 0; i < context->count; i++)
			context->device[i].curves = curves[i];
	free(curves);
}

static void stop(struct outboard *context)
{
	pthread_mutex_lock(&context->lock);
	context->closing = true;
	for (unsigned i = 0; i < context->count; i++)
		pthread_cond_signal(&context->device[i].work);
	pthread_mutex_unlock(&context->lock);
	for (unsigned i = 0; i < context->count; i++)
		if (context->device[i].started)
			pthread_join(context->device[i].thread, NULL);
}

/* Gives two devices with the same list entry different names. */
static void name_device(struct outboard *context, struct obv_device *d)
{
	unsigned same = 1;
	size_t n = strlen(d->backend.name);

	for (unsigned i = 0; i < d->index; i++)
		same += strncmp(context->device[i].backend.name, d->backend.name, n) == 0 &&
			(context->device[i].backend.name[n] == 0 ||
				context->device[i].backend.name[n] == '#');
	if (same > 1)
		snprintf(d->backend.name + n, sizeof(d->backend.name) - n, "#%u", same);
}

int obv_context_new(const struct outboard_options *o, const struct obv_backend *backends,
	unsigned n, struct outboard **ret, struct outboard_error *error)
{
	struct outboard *context = calloc(1, sizeof(*context));
	uint64_t pause = ns_or(o->breaker_pause, 5);
	bool ok = true;

	if (!context) {
		for (unsigned i = 0; i < n; i++)
			backends[i].ops->close(backends[i].self);
		return obv_fail(
			error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM, "no memory for a context");
	}
	context->refs = 1;
	context->count = n;
	pthread_mutex_init(&context->lock, NULL);
	obv_cond_init(&context->idle);
	take_options(context, o);
	for (unsigned i = 0; i < n; i++) {
		struct obv_device *d = &context->device[i];

		d->context = context;
		d->index = i;
		d->backend = backends[i];
		name_device(context, d);
		obv_breaker_init(&d->breaker, o->breaker_failures ? o->breaker_failures : 3, pause);
		obv_cond_init(&d->work);
	}
	obv_context_curves(context);
	obv_context_expect(context);
	load_profile(context, o->profile);
	for (unsigned i = 0; i < n && ok; i++) {
		ok = ob_thread_start(
			obv_engine_main, &context->device[i], 0, &context->device[i].thread);
		context->device[i].started = ok;
	}
	if (!ok) {
		stop(context);
		obv_context_unref(context);
		return obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
			"a device's thread cannot be started");
	}
	*ret = context;
	return OUTBOARD_OK;
}

/*
 * Loads the windows measured on this CPU. Without a profile, or with a damaged one, estimates are
 * used.
 */
static void tuning_load(void)
{
	struct obk_fault fault;

	(void)obk_tune_load_default(&fault);
}

int outboard_open(const struct outboard_options *options, struct outboard **ret_context,
	struct outboard_error *error)
{
	static const struct outboard_options none;
	static pthread_once_t tuned = PTHREAD_ONCE_INIT;
	struct listing *l;
	sigset_t all, before;
	int status;

	if (!ret_context)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"outboard_open has nowhere to put the context");
	options = options ? options : &none;
	status = check_options(options, error);
	if (status != OUTBOARD_OK)
		return status;
	l = calloc(1, sizeof(*l));
	if (!l)
		return obv_fail(
			error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM, "no memory for a context");
	l->options = options;
	pthread_once(&tuned, tuning_load);
	/*
	 * The library's threads block all signals, so that the program's own threads handle them.
	 */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	status = open_listed(l, error);
	if (status == OUTBOARD_OK)
		status = obv_context_new(options, l->backend, l->n, ret_context, error);
	else
		for (unsigned i = 0; i < l->n; i++)
			l->backend[i].ops->close(l->backend[i].self);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(l);
	return status;
}

void outboard_close(struct outboard *context)
{
	if (!context)
		return;
	pthread_mutex_lock(&context->lock);
	context->closing = true;
	for (;;) {
		struct obv_job *job = context->first_job;

		/* A job that has been dropped, or is about to end, needs no cancellation. */
		while (job && (!job->submitted || job->dropped || !job->left))
			job = job->next;
		if (!job)
			break;
		job->refs++;
		pthread_mutex_unlock(&context->lock);
		outboard_cancel((struct outboard_ticket *)job);
		obv_job_unref(job);
		pthread_mutex_lock(&context->lock);
	}
	while (context->jobs)
		obv_wait_until(&context->idle, &context->lock, OB_NEVER);
	pthread_mutex_unlock(&context->lock);
	stop(context);
	obv_context_unref(context);
}

int obv_context_get(struct outboard *context, struct outboard **ret, struct outboard_error *error)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct outboard *own;
	int status = OUTBOARD_OK;

	if (!context) {
		pthread_mutex_lock(&lock);
		if (!own)
			status = outboard_open(NULL, &own, error);
		context = own;
		pthread_mutex_unlock(&lock);
		if (status != OUTBOARD_OK)
			return status;
	}
	pthread_mutex_lock(&context->lock);
	context->refs++;
	pthread_mutex_unlock(&context->lock);
	*ret = context;
	return OUTBOARD_OK;
}

/* ---- figures ---- */

struct obv_device *obv_context_cpu(struct outboard *context)
{
	for (unsigned i = 0; i < context->count; i++)
		if (context->device[i].backend.ops->pool)
			return &context->device[i];
	return NULL;
}

bool obv_context_has_gpu(const struct outboard *context)
{
	for (unsigned i = 0; i < context->count; i++)
		if (context->device[i].backend.kind == OUTBOARD_GPU)
			return true;
	return false;
}

int outboard_set_strategy(struct outboard *context, uint32_t strategy)
{
	struct outboard *c;

	if (strategy > OUTBOARD_DYNAMIC || obv_context_get(context, &c, NULL) != OUTBOARD_OK)
		return OUTBOARD_ARGUMENT;
	pthread_mutex_lock(&c->lock);
	c->strategy = strategy;
	pthread_mutex_unlock(&c->lock);
	obv_context_unref(c);
	return OUTBOARD_OK;
}

uint32_t outboard_device_count(struct outboard *context)
{
	struct outboard *c;
	uint32_t n = 0;

	if (obv_context_get(context, &c, NULL) == OUTBOARD_OK) {
		n = c->count;
		obv_context_unref(c);
	}
	return n;
}

/*
 * If there are measurements: the speed relative to the estimate for one CPU thread, for products of
 * 2^14 points.
 */
static double score_of(const struct obv_device *d)
{
	struct obv_traits t = traits_of(&d->backend), one = { .kind = OUTBOARD_CPU, .units = 1 };
	double here = obv_curve_seconds(&d->curves.op[OUTBOARD_OP_MSM], OUTBOARD_OP_MSM, 1 << 14);
	struct obv_curves guess;

	if (!d->curves.measured || !(here > 0))
		return obv_score(&t);
	obv_curves_guess(&guess, &one);
	return obv_curve_seconds(&guess.op[OUTBOARD_OP_MSM], OUTBOARD_OP_MSM, 1 << 14) / here;
}

int outboard_device_get(
	struct outboard *context, uint32_t index, struct outboard_device *ret_device)
{
	struct outboard *c;
	struct obv_device *d;
	uint64_t now;

	if (!ret_device || obv_context_get(context, &c, NULL) != OUTBOARD_OK)
		return OUTBOARD_ARGUMENT;
	if (index >= c->count) {
		obv_context_unref(c);
		return OUTBOARD_ARGUMENT;
	}
	d = &c->device[index];
	pthread_mutex_lock(&c->lock);
	now = ob_clock_ns();
	*ret_device = d->stats;
	memcpy(ret_device->name, d->backend.name, sizeof(ret_device->name));
	memcpy(ret_device->what, d->backend.what, sizeof(ret_device->what));
	ret_device->kind = d->backend.kind;
	ret_device->units = d->backend.units;
	ret_device->memory = d->backend.memory;
	ret_device->clock = d->backend.clock;
	ret_device->link = d->backend.link;
	ret_device->fallback_only = d->backend.fallback_only;
	ret_device->score = score_of(d);
	ret_device->breaker = d->breaker.state;
	ret_device->load = obv_device_load(d, now);
	ret_device->busy =
		d->busy + (d->running_seconds > 0 ? (double)(now - d->running_since) / 1e9 : 0);
	pthread_mutex_unlock(&c->lock);
	if (d->backend.ops->stats)
		d->backend.ops->stats(d->backend.self, ret_device);
	obv_context_unref(c);
	return OUTBOARD_OK;
}

uint64_t outboard_threshold(struct outboard *context, uint32_t index, uint32_t operation)
{
	struct outboard *c;
	struct obv_device *cpu;
	uint64_t at = UINT64_MAX;

	if (operation >= OUTBOARD_OP_COUNT || obv_context_get(context, &c, NULL) != OUTBOARD_OK)
		return at;
	cpu = obv_context_cpu(c);
	pthread_mutex_lock(&c->lock);
	if (index < c->count && c->device[index].backend.ops->pool)
		at = 1;
	else if (index < c->count && cpu && (c->device[index].backend.operations >> operation & 1))
		at = obv_curve_threshold(&c->device[index].curves.op[operation],
			&cpu->curves.op[operation], operation);
	pthread_mutex_unlock(&c->lock);
	obv_context_unref(c);
	return at;
}
