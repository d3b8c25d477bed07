/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "kernels/curve/lanes.h"
#include "kernels/pool/pool.h"
#include "tools/command.h"
#include "tools/kernel_bench.h"
#include "tools/latency.h"

bool obx_device_take(const char *verb, const char *text, enum obx_device *ret)
{
	static const char *const names[] = { "auto", "cpu", "gpu" };

	for (unsigned i = 0; i < ob_count(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum obx_device)i;
			return true;
		}
	}
	obx_usage_error(verb, "--device is auto, cpu or gpu, not '%s'", text);
	return false;
}

bool obx_device_have(const char *verb, enum obx_device device)
{
	if (device == OBX_DEVICE_GPU)
		fprintf(stderr, "outboard %s: --device gpu: this command has no GPU to compute on; use --device cpu or auto\n", verb);
	return device != OBX_DEVICE_GPU;
}

/* One option with its value; false: not one of ours, or said what is wrong with it in *ret_code. */
static bool take_option(struct obx_kernel_bench *b, const char *name, const char *value, unsigned low, unsigned high, int *ret_code)
{
	uint64_t number;
	const struct {
		const char *name;
		unsigned *at;
		uint64_t min, max;
	} numbers[] = {
		{ "--from", &b->from, low, high }, { "--to", &b->to, low, high }, { "--runs", &b->runs, 1, OBX_KERNEL_RUNS_MAX },
		{ "--threads", &b->threads, 1, OBK_POOL_MAX_THREADS },
	};

	for (unsigned i = high ? 0 : 2; i < ob_count(numbers); i++) {
		if (strcmp(name, numbers[i].name) != 0)
			continue;
		if (!ob_text_parse_number(value, numbers[i].min, numbers[i].max, &number)) {
			*ret_code = obx_usage_error(b->verb, "%s is a number from %u to %u, not '%s'", name, (unsigned)numbers[i].min, (unsigned)numbers[i].max,
				value);
			return false;
		}
		*numbers[i].at = (unsigned)number;
		return true;
	}
	if (strcmp(name, "--plot") == 0) {
		b->plot = value;
		return true;
	}
	if (strcmp(name, "--device") == 0) {
		if (obx_device_take(b->verb, value, &b->device))
			return true;
		*ret_code = OBX_EXIT_USAGE;
	}
	return false;
}

int obx_kernel_bench_options(struct obx_kernel_bench *b, int argc, char **argv, int first, unsigned low, unsigned high,
	bool (*more)(void *arg, const char *option, const char *value), void *arg)
{
	for (int a = first; a < argc; a++) {
		int code = 0;

		if (strcmp(argv[a], "--json") == 0) {
			b->json = true;
			continue;
		}
		if (a + 1 == argc)
			return obx_usage_error(b->verb, "unknown option or missing value: '%s'", argv[a]);
		if (!take_option(b, argv[a], argv[a + 1], low, high, &code) && !code && !(more && more(arg, argv[a], argv[a + 1])))
			code = obx_usage_error(b->verb, "unknown option '%s'", argv[a]);
		if (code)
			return code;
		a++;
	}
	if (b->from > b->to)
		return obx_usage_error(b->verb, "--from %u is above --to %u", b->from, b->to);
	return obx_device_have(b->verb, b->device) ? 0 : OBX_EXIT_UNWELL;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

bool obx_kernel_bench_row(struct obx_kernel_bench *b, const char *name, double size, bool (*work)(void *arg), void *arg)
{
	struct obx_kernel_row *row = &b->rows[b->n];
	double ms[OBX_KERNEL_RUNS_MAX];

	if (b->n == OBX_KERNEL_ROWS_MAX || !work(arg))
		return false;
	for (unsigned r = 0; r < b->runs; r++) {
		uint64_t from = ob_clock_ns();

		if (!work(arg))
			return false;
		ms[r] = (double)(ob_clock_ns() - from) / 1e6;
	}
	qsort(ms, b->runs, sizeof ms[0], by_value);
	*row = (struct obx_kernel_row){ .size = size, .cpu_ms = ms[b->runs / 2], .gpu_ms = -1 };
	snprintf(row->name, sizeof row->name, "%s", name);
	b->n++;
	return true;
}

/* The processor's name without what would break a JSON string. */
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
		at[strcspn(at, "\n\"\\")] = 0;
		snprintf(ret, size, "%s", at);
		break;
	}
	if (f)
		fclose(f);
}

static void print_json(const struct obx_kernel_bench *b, const char *name)
{
	printf("{\"bench\": \"%s\", \"what\": \"%s\", \"machine\": {\"processor\": \"%s\", \"threads\": %u, \"field\": \"%s\", \"lanes\": \"%s\", "
	       "\"gpu\": null},\n"
	       " \"runs\": %u, \"rows\": [", b->verb, b->what, name, b->threads, obk_fp_now.name, obk_lanes_choose()->name, b->runs);
	for (unsigned i = 0; i < b->n; i++) {
		const struct obx_kernel_row *r = &b->rows[i];

		printf("%s\n  {\"name\": \"%s\", \"size\": %.0f, \"cpu_ms\": %.4f, ", i ? "," : "", r->name, r->size, r->cpu_ms);
		if (r->gpu_ms < 0)
			printf("\"gpu_ms\": null, \"speed_up\": null}");
		else
			printf("\"gpu_ms\": %.4f, \"speed_up\": %.2f}", r->gpu_ms, r->cpu_ms / r->gpu_ms);
	}
	printf("\n]}\n");
}

static void print_table(const struct obx_kernel_bench *b, const char *name)
{
	printf("%s, %u threads, field products '%s', point additions '%s'; GPU: none\n%s; medians of %u in ms\n\n", name, b->threads, obk_fp_now.name,
		obk_lanes_choose()->name, b->what, b->runs);
	printf("%-24s %12s %12s %10s\n", b->rows[0].size > 0 ? "size" : "operation", "CPU", "GPU", "speed-up");
	for (unsigned i = 0; i < b->n; i++) {
		const struct obx_kernel_row *r = &b->rows[i];

		if (r->gpu_ms < 0)
			printf("%-24s %12.3f %12s %10s\n", r->name, r->cpu_ms, "-", "-");
		else
			printf("%-24s %12.3f %12.3f %10.1f\n", r->name, r->cpu_ms, r->gpu_ms, r->cpu_ms / r->gpu_ms);
	}
}

static bool plot(const struct obx_kernel_bench *b, const char *name)
{
	static const char *const lines[] = { "CPU, ms", "GPU, ms" };
	double x[OBX_KERNEL_ROWS_MAX], cpu[OBX_KERNEL_ROWS_MAX], gpu[OBX_KERNEL_ROWS_MAX], *y[] = { cpu, gpu };
	const char *names[OBX_KERNEL_ROWS_MAX];
	bool any_gpu = false;
	char title[256];

	for (unsigned i = 0; i < b->n; i++) {
		x[i] = b->rows[i].size;
		cpu[i] = b->rows[i].cpu_ms;
		gpu[i] = b->rows[i].gpu_ms;
		names[i] = b->rows[i].name;
		any_gpu |= gpu[i] >= 0;
	}
	snprintf(title, sizeof title, "%s, ms: %s, %u threads", b->what, name, b->threads);
	return b->rows[0].size > 0 && b->n > 1 ? obx_plot_lines(b->plot, title, x, b->n, lines, y, any_gpu ? 2 : 1) :
		obx_plot_bars(b->plot, title, names, b->n, lines, y, any_gpu ? 2 : 1);
}

int obx_kernel_bench_show(const struct obx_kernel_bench *b)
{
	char name[128];

	processor(name, sizeof name);
	(b->json ? print_json : print_table)(b, name);
	if (b->plot && !plot(b, name)) {
		fprintf(stderr, "outboard %s: %s: %s\n", b->verb, b->plot, strerror(errno));
		return OBX_EXIT_UNWELL;
	}
	return 0;
}
