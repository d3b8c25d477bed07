/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "compute/command/devices.h"
#include "compute/command/progress.h"
#include "compute/msm/tune.h"
#include "tools/command.h"

#define OPEN_SECONDS 0.3 /* approximate time until a GPU has its context and kernels */

/* "auto", or a comma-separated list of gpu, gpu:N, cpu and cpu:N. */
static bool is_list(const char *text)
{
	if (strcmp(text, "auto") == 0)
		return true;
	for (;;) {
		size_t digits;

		if (strncmp(text, "cpu", 3) != 0 && strncmp(text, "gpu", 3) != 0)
			return false;
		text += 3;
		digits = *text == ':' ? strspn(text + 1, "0123456789") : 0;
		if (*text == ':' && !digits)
			return false;
		text += digits ? digits + 1 : 0;
		if (*text == 0)
			return true;
		if (*text++ != ',')
			return false;
	}
}

enum ob_err obx_devices_take_list(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	(void)option;
	(void)ret_cause;
	*(const char **)target = text;
	return is_list(text) ? OB_ERR_NONE : OB_ERR_ARGUMENT;
}

static double threads_of(const struct obx_devices *d)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	return d->threads ? (double)d->threads : processors > 0 ? (double)processors : 1;
}

double obx_devices_guess_msm(const struct obx_devices *d, uint64_t n, uint64_t products)
{
	return (double)products * (double)n * 2.2e-4 / (12 + log2((double)n + 1)) / threads_of(d);
}

double obx_devices_guess_ntt(const struct obx_devices *d, unsigned log_n, uint64_t transforms)
{
	return (double)transforms * ldexp(log_n + 1, (int)log_n) * 1.2e-8 / threads_of(d);
}

bool obx_devices_open(struct obx_devices *d, double cpu_seconds, int *ret_code)
{
	bool any = !d->list || strcmp(d->list, "auto") == 0;
	struct outboard_options options = { .devices = any && cpu_seconds < OPEN_SECONDS ? "cpu"
											 : d->list,
		.threads = (uint32_t)d->threads,
		.driver = d->driver };
	struct outboard_error error;
	struct obk_fault fault;
	int status;

	/*
	 * The library ignores a damaged profile of windows without a message, so the command loads
	 * it to print one.
	 */
	if (obk_tune_load_default(&fault) != OB_ERR_NONE)
		fprintf(stderr, "outboard %s: %s\n", d->verb, fault.text);
	status = outboard_open(&options, &d->context, &error);
	if (status == OUTBOARD_OK)
		return true;
	fprintf(stderr, "outboard %s: --device %s: %s\n", d->verb, d->list ? d->list : "auto",
		error.text);
	*ret_code = status == OUTBOARD_ARGUMENT ? OBX_EXIT_USAGE : OBX_EXIT_UNWELL;
	d->context = NULL;
	return false;
}

int obx_devices_wait(struct obx_devices *d, int started, struct outboard_ticket *ticket,
	struct outboard_error *error)
{
	int status;

	if (started != OUTBOARD_OK)
		return started;
	status = outboard_wait(ticket, -1, error);
	outboard_ticket_attempt(ticket, 0, &d->attempt);
	outboard_ticket_free(ticket);
	return status;
}

int obx_devices_refused(const struct obx_devices *d, const struct outboard_error *error)
{
	fprintf(stderr, "outboard %s: %s\n", d->verb, error->text);
	return OBX_EXIT_UNWELL;
}

void obx_devices_print_stats(FILE *out, const struct outboard_device *s)
{
	fprintf(out, "%s: %s; %llu pieces, %llu items, %.3f s busy", s->name, s->what,
		(unsigned long long)s->pieces, (unsigned long long)s->items, s->busy);
	if (s->kind == OUTBOARD_GPU)
		fprintf(out,
			"; memory: peak %.1f MiB, %.1f in use, %.1f cached, %llu of %llu requests "
			"served from the cache",
			(double)s->pool_peak / 0x1p20, (double)s->pool_used / 0x1p20,
			(double)s->pool_kept / 0x1p20, (unsigned long long)s->pool_reused,
			(unsigned long long)s->pool_requests);
	if (s->failures)
		fprintf(out, "; %llu failures, %llu retries, paused %llu times",
			(unsigned long long)s->failures, (unsigned long long)s->retries,
			(unsigned long long)s->opened);
	fprintf(out, "\n");
}

void obx_devices_report(const struct obx_devices *d, char *ret_names)
{
	size_t n = 0;

	ret_names[0] = 0;
	for (uint32_t i = 0; i < outboard_device_count(d->context); i++) {
		struct outboard_device s;

		if (outboard_device_get(d->context, i, &s) != OUTBOARD_OK)
			continue;
		if (s.pieces && n + sizeof s.name + 2 < OBX_DEVICES_NAMES)
			n += (size_t)snprintf(
				ret_names + n, OBX_DEVICES_NAMES - n, "%s%s", n ? "," : "", s.name);
		if (s.failures)
			fprintf(stderr,
				"outboard %s: %s failed %llu times%s%s; retries or other devices "
				"completed its work\n",
				d->verb, s.name, (unsigned long long)s.failures,
				d->attempt.status ? ", at first with " : "",
				d->attempt.status ? d->attempt.text : "");
		if (d->stats)
			obx_devices_print_stats(stderr, &s);
	}
}

struct obk_pool *obx_devices_pool(const struct obx_devices *d)
{
	struct obk_pool *pool = NULL;

	if (obk_pool_new((unsigned)d->threads, &pool) != OB_ERR_NONE)
		obx_usage_error(d->verb, "%u threads cannot be started", (unsigned)d->threads);
	return pool;
}

void obx_devices_print_json(struct outboard *context, struct ob_json *json)
{
	struct outboard_device s;

	ob_json_array(json, "devices");
	for (uint32_t i = 0; i < outboard_device_count(context); i++) {
		if (outboard_device_get(context, i, &s) != OUTBOARD_OK)
			continue;
		ob_json_object(json, NULL);
		ob_json_text(json, "name", s.name);
		ob_json_text(json, "what", s.what);
		ob_json_uint(json, "pieces", s.pieces);
		ob_json_uint(json, "items", s.items);
		ob_json_fixed(json, "busy_s", s.busy, 6);
		ob_json_uint(json, "failures", s.failures);
		ob_json_uint(json, "retries", s.retries);
		if (s.kind == OUTBOARD_GPU) {
			ob_json_object(json, "pool");
			ob_json_uint(json, "used", s.pool_used);
			ob_json_uint(json, "kept", s.pool_kept);
			ob_json_uint(json, "peak", s.pool_peak);
			ob_json_uint(json, "requests", s.pool_requests);
			ob_json_uint(json, "reused", s.pool_reused);
			ob_json_end(json);
		} else {
			ob_json_null(json, "pool");
		}
		ob_json_end(json);
	}
	ob_json_end(json);
}

void obx_devices_close(struct obx_devices *d)
{
	outboard_close(d->context);
	d->context = NULL;
}

int obx_devices_progress(void *arg, double done)
{
	obx_progress_step(arg, done);
	return 0;
}
