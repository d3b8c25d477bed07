/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The part that `outboard msm bench`, `ntt bench` and `kzg bench` share: options, the machine, a
 * context for the CPU and one for a GPU, a table of CPU, GPU and speed-up, JSON and a plot. The
 * caller owns the table and adds one row per size or operation. Main thread only.
 */
#ifndef OBX_KERNEL_BENCH_H
#define OBX_KERNEL_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/command_line.h"
#include "compute/command/devices.h"
#include "compute/gpu/gpu.h"

#define OBX_KERNEL_ROWS_MAX 32
#define OBX_KERNEL_RUNS_MAX 101
#define OBX_TABLE_MAX_MIB   65536

enum obx_side { OBX_CPU, OBX_GPU, OBX_SIDES };

struct obx_kernel_row {
	char name[32];
	double size;          /* elements; 0: the rows are operations, not sizes */
	double ms[OBX_SIDES]; /* medians; negative: not measured */
	bool planned;
	/* plan for a product on the GPU; group: that of the largest batch */
	struct outboard_plan plan;
};

struct obx_kernel_bench {
	const char *verb, *what; /* name of the command; title of the table */
	unsigned from, to, runs;
	uint64_t table; /* --table: MiB for tables of the points, on each side */
	struct obx_devices asked;
	bool json;
	const char *plot;
	struct outboard *side[OBX_SIDES]; /* NULL: not available or not requested */
	char no_gpu[512];                 /* the reason if there is no GPU */
	struct obk_gpu_info gpu;
	int driver_version;
	struct obx_kernel_row rows[OBX_KERNEL_ROWS_MAX];
	unsigned n;
};

/* The settings of a bench that has no options of its own; the same address as `b`. */
struct obx_kernel_bench_alone {
	struct obx_kernel_bench b;
};

/* Does the work once on one side. False: it failed, and a message was printed. */
typedef bool obx_kernel_work(void *arg, enum obx_side side);

/* The entries of a bench's option table; field: the struct obx_kernel_bench in its settings. */
#define OBX_KERNEL_BENCH_SIZES(settings, field, largest, from_text, to_text)                  \
	{ OB_OPTION("from", OB_NUMBER, settings, field.from), .arg = "N", .max = (largest),   \
		.fallback = (from_text), .help = "smallest size: 2^N" },                      \
	{                                                                                     \
		OB_OPTION("to", OB_NUMBER, settings, field.to), .arg = "N", .max = (largest), \
								.fallback = (to_text),        \
								.help = "largest size: 2^N"   \
	}
#define OBX_KERNEL_BENCH_OPTIONS(settings, field)                                                 \
	{ OB_OPTION("runs", OB_NUMBER, settings, field.runs), .arg = "N", .min = 1,               \
		.max = OBX_KERNEL_RUNS_MAX, .fallback = "5", .help = "print medians of N runs" }, \
		{ OB_OPTION("table", OB_NUMBER, settings, field.table), .arg = "MIB",             \
			.max = OBX_TABLE_MAX_MIB,                                                 \
			.help = "memory for tables of the points, on each side, in MiB" },        \
		{ OB_OPTION("json", OB_FLAG, settings, field.json),                               \
			.help = "print one JSON object" },                                        \
		{ OB_OPTION("plot", OB_FILE, settings, field.plot), .arg = "FILE",                \
			.help = "write a plot (SVG)" },                                           \
		OBX_DEVICES_OPTIONS(settings, field.asked)

/* Parses the options of a bench into settings, of which b is a part. As ob_options_parse. */
int obx_kernel_bench_parse(const struct ob_command *command, void *settings,
	struct obx_kernel_bench *b, int argc, char **argv);
/*
 * Opens both sides. --device cpu: only the CPU. auto: works without a GPU; gpu: fails without one.
 * Returns 0 or an exit code.
 */
int obx_kernel_bench_open(struct obx_kernel_bench *b);
/*
 * Measures a row. The work is done once to warm up and then `runs` times, by the CPU and, if `gpu`,
 * by the GPU. False: it failed.
 */
bool obx_kernel_bench_row(struct obx_kernel_bench *b, const char *name, double size, bool gpu,
	obx_kernel_work *work, void *arg);
/* Records how the first GPU computed the products of `count` points in the last row. */
void obx_kernel_bench_plan(
	struct obx_kernel_bench *b, struct outboard_bases *bases, uint64_t count);
/* Reports that CPU and GPU have different results for a row. */
void obx_kernel_bench_differ(const struct obx_kernel_bench *b, const char *name);
/*
 * Prints the table, and plots it if requested; with --stats also prints on stderr what each device
 * did. Returns the exit code.
 */
int obx_kernel_bench_show(const struct obx_kernel_bench *b);
/* May be called if nothing was opened. */
void obx_kernel_bench_close(struct obx_kernel_bench *b);

#endif
