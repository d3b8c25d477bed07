/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "compute/command/kernel_bench.h"
#include "compute/curve/lanes.h"
#include "tools/command.h"
#include "tools/plot.h"

int obx_kernel_bench_parse(const struct ob_command *command, void *settings,
	struct obx_kernel_bench *b, int argc, char **argv)
{
	int code = ob_options_parse(command, settings, argc, argv);

	b->asked.verb = b->verb;
	if (code == OB_OPTIONS_GO && b->from > b->to)
		return ob_usage_error(command, "--from %u is above --to %u", b->from, b->to);
	return code;
}

/* Gets the name and properties of the first GPU. */
static void describe(struct obx_kernel_bench *b)
{
	const struct obk_gpu_driver *driver;
	struct outboard_device device = { .kind = OUTBOARD_CPU };
	struct obk_fault fault;
	uint64_t ordinal;

	for (uint32_t i = 0; device.kind != OUTBOARD_GPU; i++)
		if (outboard_device_get(b->side[OBX_GPU], i, &device) != OUTBOARD_OK)
			return;
	if (strncmp(device.name, "gpu:", 4) != 0 ||
		!ob_text_parse_number(device.name + 4, 0, OBK_GPU_MAX_DEVICES, &ordinal) ||
		obk_gpu_driver_open(b->asked.driver, &driver, &fault) != OB_ERR_NONE)
		return;
	b->driver_version = driver->version;
	obk_gpu_describe(driver, (unsigned)ordinal, &b->gpu, &fault);
}

int obx_kernel_bench_open(struct obx_kernel_bench *b)
{
	const char *list = b->asked.list ? b->asked.list : "auto";
	bool any = strcmp(list, "auto") == 0;
	struct outboard_options options = { .devices = any || strstr(list, "gpu") ? "cpu" : list,
		.threads = (uint32_t)b->asked.threads,
		.driver = b->asked.driver,
		.profile = "" };
	struct outboard_error error;

	if (outboard_open(&options, &b->side[OBX_CPU], &error) != OUTBOARD_OK)
		return obx_devices_refused(&b->asked, &error);
	snprintf(b->no_gpu, sizeof b->no_gpu, "not asked for");
	if (!any && !strstr(list, "gpu"))
		return 0;
	options.devices = any ? "gpu:0" : list;
	if (outboard_open(&options, &b->side[OBX_GPU], &error) == OUTBOARD_OK) {
		describe(b);
		return 0;
	}
	b->side[OBX_GPU] = NULL;
	snprintf(b->no_gpu, sizeof b->no_gpu, "%s", error.text);
	for (char *c = b->no_gpu; *c; c++)
		*c = *c == '"' || *c == '\\' ? '\'' : *c;
	if (any)
		return 0;
	fprintf(stderr, "outboard %s: --device %s: %s\n", b->verb, list, error.text);
	return OBX_EXIT_UNWELL;
}

void obx_kernel_bench_close(struct obx_kernel_bench *b)
{
	outboard_close(b->side[OBX_GPU]);
	outboard_close(b->side[OBX_CPU]);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Whether the CPU did work because GPUs failed. */
static bool stepped_in(struct outboard *context)
{
	struct outboard_device device;
	bool any = false;

	for (uint32_t i = 0; outboard_device_get(context, i, &device) == OUTBOARD_OK; i++)
		any |= device.fallback_only && device.pieces;
	return any;
}

static bool measure(struct obx_kernel_bench *b, enum obx_side side, obx_kernel_work *work,
	void *arg, double *ret_ms)
{
	double ms[OBX_KERNEL_RUNS_MAX];

	if (!work(arg, side))
		return false;
	for (unsigned r = 0; r < b->runs; r++) {
		uint64_t from = ob_clock_ns();

		if (!work(arg, side))
			return false;
		ms[r] = (double)(ob_clock_ns() - from) / 1e6;
	}
	qsort(ms, b->runs, sizeof ms[0], by_value);
	*ret_ms = ms[b->runs / 2];
	return true;
}

bool obx_kernel_bench_row(struct obx_kernel_bench *b, const char *name, double size, bool gpu,
	obx_kernel_work *work, void *arg)
{
	struct obx_kernel_row *row = &b->rows[b->n];

	if (b->n == OBX_KERNEL_ROWS_MAX)
		return false;
	*row = (struct obx_kernel_row){ .size = size, .ms = { -1, -1 } };
	snprintf(row->name, sizeof row->name, "%s", name);
	if (!measure(b, OBX_CPU, work, arg, &row->ms[OBX_CPU]))
		return false;
	if (gpu && b->side[OBX_GPU]) {
		if (!measure(b, OBX_GPU, work, arg, &row->ms[OBX_GPU]))
			return false;
		if (stepped_in(b->side[OBX_GPU])) {
			fprintf(stderr,
				"outboard %s: the GPU failed at %s and the CPU completed the work, "
				"so there is nothing to compare; use --device cpu\nto measure the "
				"CPU alone\n",
				b->verb, name);
			return false;
		}
	}
	b->n++;
	return true;
}

void obx_kernel_bench_plan(struct obx_kernel_bench *b, struct outboard_bases *bases, uint64_t count)
{
	struct obx_kernel_row *row = &b->rows[b->n - 1];
	struct outboard_device device = { .kind = OUTBOARD_CPU };
	struct outboard_plan batch;
	struct outboard_error error;

	for (uint32_t i = 0;
		!row->planned && outboard_device_get(b->side[OBX_GPU], i, &device) == OUTBOARD_OK;
		i++)
		row->planned = device.kind == OUTBOARD_GPU &&
			outboard_msm_plan(bases, i, count, 1, &row->plan, &error) == OUTBOARD_OK &&
			outboard_msm_plan(bases, i, count, OUTBOARD_MAX_BATCH, &batch, &error) ==
				OUTBOARD_OK;
	if (row->planned)
		row->plan.group = batch.group;
}

static const char *const methods[] = { "buckets", "copies", "multiples" };

/* Prints the plan for a product, and the most products that are computed together. */
static void print_plan(const struct obx_kernel_row *r)
{
	const struct outboard_plan *p = &r->plan;

	if (r->planned)
		printf("  %s, %u x %u bits, up to %llu at once, %.1f MiB, %.3f ms expected (%s)",
			methods[p->method], p->copies, p->window, (unsigned long long)p->group,
			(double)p->bytes / 0x1p20, p->seconds * 1e3,
			p->measured ? "measured" : "guessed");
}

static void print_plan_json(const struct obx_kernel_row *r, struct ob_json *json)
{
	const struct outboard_plan *p = &r->plan;

	if (!r->planned)
		return;
	ob_json_object(json, "gpu_plan");
	ob_json_text(json, "method", methods[p->method]);
	ob_json_uint(json, "window", p->window);
	ob_json_uint(json, "copies", p->copies);
	ob_json_uint(json, "batch", p->group);
	ob_json_uint(json, "bytes", p->bytes);
	ob_json_fixed(json, "expected_ms", p->seconds * 1e3, 4);
	ob_json_bool(json, "measured", p->measured);
	ob_json_end(json);
}

void obx_kernel_bench_differ(const struct obx_kernel_bench *b, const char *name)
{
	fprintf(stderr,
		"outboard %s: CPU and GPU have different results for %s: this machine or this "
		"program is faulty; try OUTBOARD_OPT=-all,\nand report it\n",
		b->verb, name);
}

static void processor(char *ret, size_t size)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "re");

	snprintf(ret, size, "unknown processor");
	while (f && fgets(line, sizeof line, f)) {
		char *at = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !at)
			continue;
		at += strspn(at, ": \t");
		at[strcspn(at, "\n")] = 0;
		snprintf(ret, size, "%s", at);
		break;
	}
	if (f)
		fclose(f);
}

static unsigned threads_of(const struct obx_kernel_bench *b)
{
	struct outboard_device device;

	return outboard_device_get(b->side[OBX_CPU], 0, &device) == OUTBOARD_OK ? device.units : 0;
}

static void print_machine_json(
	const struct obx_kernel_bench *b, const char *name, struct ob_json *json)
{
	const struct obk_gpu_info *g = &b->gpu;

	ob_json_object(json, "machine");
	ob_json_text(json, "processor", name);
	ob_json_int(json, "cores", sysconf(_SC_NPROCESSORS_ONLN));
	ob_json_uint(json, "threads", threads_of(b));
	ob_json_text(json, "field", obk_fp_now.name);
	ob_json_text(json, "lanes", obk_lanes_choose()->name);
	if (b->side[OBX_GPU]) {
		ob_json_object(json, "gpu");
		ob_json_text(json, "name", g->name);
		ob_json_textf(json, "compute_capability", "%u.%u", g->major, g->minor);
		ob_json_uint(json, "processors", g->processors);
		ob_json_uint(json, "clock_mhz", g->clock_khz / 1000);
		ob_json_uint(json, "memory", g->memory);
		ob_json_uint(json, "cache", g->cache);
		ob_json_textf(json, "driver", "%d.%d", b->driver_version / 1000,
			b->driver_version % 1000 / 10);
		ob_json_end(json);
	} else {
		ob_json_null(json, "gpu");
		ob_json_text(json, "no_gpu", b->no_gpu);
	}
	ob_json_end(json);
}

static void print_row_json(const struct obx_kernel_row *r, struct ob_json *json)
{
	ob_json_break(json);
	ob_json_object(json, NULL);
	ob_json_text(json, "name", r->name);
	ob_json_fixed(json, "size", r->size, 0);
	ob_json_fixed(json, "cpu_ms", r->ms[OBX_CPU], 4);
	if (r->ms[OBX_GPU] < 0) {
		ob_json_null(json, "gpu_ms");
		ob_json_null(json, "speed_up");
	} else {
		ob_json_fixed(json, "gpu_ms", r->ms[OBX_GPU], 4);
		ob_json_double(json, "speed_up", r->ms[OBX_CPU] / r->ms[OBX_GPU], 4);
	}
	print_plan_json(r, json);
	ob_json_end(json);
}

static void print_json(const struct obx_kernel_bench *b, const char *name)
{
	struct ob_json json;

	ob_json_begin(&json, stdout, OB_JSON_SPACED);
	ob_json_object(&json, NULL);
	ob_json_text(&json, "bench", b->verb);
	ob_json_text(&json, "what", b->what);
	print_machine_json(b, name, &json);
	if (b->side[OBX_GPU])
		obx_devices_print_json(b->side[OBX_GPU], &json);
	ob_json_uint(&json, "runs", b->runs);
	ob_json_array(&json, "rows");
	for (unsigned i = 0; i < b->n; i++)
		print_row_json(&b->rows[i], &json);
	ob_json_end(&json);
	ob_json_end(&json);
	putchar('\n');
}

static void print_table(const struct obx_kernel_bench *b, const char *name)
{
	const struct obk_gpu_info *g = &b->gpu;
	struct outboard_device device;

	printf("CPU: %s, %ld cores, %u threads used, field products '%s', point additions '%s'\n",
		name, sysconf(_SC_NPROCESSORS_ONLN), threads_of(b), obk_fp_now.name,
		obk_lanes_choose()->name);
	if (b->side[OBX_GPU])
		printf("GPU: %s, compute capability %u.%u, %u multiprocessors, %u MHz, %.1f GiB, "
		       "driver for CUDA %d.%d\n",
			g->name, g->major, g->minor, g->processors, g->clock_khz / 1000,
			(double)g->memory / 0x1p30, b->driver_version / 1000,
			b->driver_version % 1000 / 10);
	else
		printf("GPU: none (%s)\n", b->no_gpu);
	printf("%s; medians of %u in ms\n\n", b->what, b->runs);
	printf("%-24s %12s %12s %10s\n", b->rows[0].size > 0 ? "size" : "operation", "CPU", "GPU",
		"speed-up");
	for (unsigned i = 0; i < b->n; i++) {
		const struct obx_kernel_row *r = &b->rows[i];

		if (r->ms[OBX_GPU] < 0)
			printf("%-24s %12.3f %12s %10s", r->name, r->ms[OBX_CPU], "-", "-");
		else
			printf("%-24s %12.3f %12.3f %10.3g", r->name, r->ms[OBX_CPU],
				r->ms[OBX_GPU], r->ms[OBX_CPU] / r->ms[OBX_GPU]);
		print_plan(r);
		printf("\n");
	}
	for (uint32_t i = 0; b->side[OBX_GPU] &&
		outboard_device_get(b->side[OBX_GPU], i, &device) == OUTBOARD_OK;
		i++) {
		if (device.pieces) {
			printf("\n");
			obx_devices_print_stats(stdout, &device);
		}
	}
}

static bool plot(const struct obx_kernel_bench *b, const char *name)
{
	static const char *const lines[] = { "CPU, ms", "GPU, ms" };
	double x[OBX_KERNEL_ROWS_MAX], cpu[OBX_KERNEL_ROWS_MAX], gpu[OBX_KERNEL_ROWS_MAX],
		*y[] = { cpu, gpu };
	const char *names[OBX_KERNEL_ROWS_MAX];
	bool any_gpu = false;
	char title[256];

	for (unsigned i = 0; i < b->n; i++) {
		x[i] = b->rows[i].size;
		cpu[i] = b->rows[i].ms[OBX_CPU];
		gpu[i] = b->rows[i].ms[OBX_GPU];
		names[i] = b->rows[i].name;
		any_gpu |= gpu[i] >= 0;
	}
	snprintf(title, sizeof title, "%s, ms: %s, %u threads%s%.80s", b->what, name, threads_of(b),
		any_gpu ? "; " : "", any_gpu ? b->gpu.name : "");
	return b->rows[0].size > 0 && b->n > 1
		? obx_plot_lines(b->plot, title, x, b->n, lines, y, any_gpu ? 2 : 1)
		: obx_plot_bars(b->plot, title, names, b->n, lines, y, any_gpu ? 2 : 1);
}

int obx_kernel_bench_show(const struct obx_kernel_bench *b)
{
	struct outboard_device device;
	char name[128];

	processor(name, sizeof name);
	(b->json ? print_json : print_table)(b, name);
	for (unsigned side = 0; b->asked.stats && side < OBX_SIDES; side++)
		for (uint32_t i = 0; b->side[side] &&
			outboard_device_get(b->side[side], i, &device) == OUTBOARD_OK;
			i++)
			obx_devices_print_stats(stderr, &device);
	if (b->plot && !plot(b, name)) {
		fprintf(stderr, "outboard %s: %s: %s\n", b->verb, b->plot, strerror(errno));
		return OBX_EXIT_UNWELL;
	}
	return 0;
}
