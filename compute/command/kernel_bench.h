/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What `outboard msm bench`, `ntt bench` and `kzg bench` share: options, the machine, a context for
 * the CPU and one for a GPU, a table of CPU, GPU and speed-up, JSON and a plot. The caller owns the
 * table and fills one row a size or operation. Main thread only.
 */
#ifndef OBX_KERNEL_BENCH_H
#define OBX_KERNEL_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "compute/command/devices.h"
#include "compute/gpu/gpu.h"

#define OBX_KERNEL_ROWS_MAX 32
#define OBX_KERNEL_RUNS_MAX 101

enum obx_side { OBX_CPU, OBX_GPU, OBX_SIDES };

struct obx_kernel_row {
	char name[32];
	double size;          /* elements; 0: the rows are operations, not sizes */
	double ms[OBX_SIDES]; /* medians; below 0: not measured */
	bool planned;
	struct outboard_plan plan; /* of a product there; group: of the largest batch */
};

struct obx_kernel_bench {
	const char *verb, *what; /* of the command; of the table, in a line */
	unsigned from, to, runs;
	uint64_t table; /* --table: MiB for tables of the points, on each side */
	struct obx_devices asked;
	bool json;
	const char *plot;
	struct outboard *side[OBX_SIDES]; /* NULL: there is none, or it was not asked for */
	char no_gpu[512];                 /* then: why */
	struct obk_gpu_info gpu;
	int driver_version;
	struct obx_kernel_row rows[OBX_KERNEL_ROWS_MAX];
	unsigned n;
};

/* Does the work once on one side; false: it was refused, and why was said. */
typedef bool obx_kernel_work(void *arg, enum obx_side side);

/* Is --help or -h among the words behind `outboard VERB bench`? */
bool obx_kernel_bench_help(int argc, char **argv);
/*
 * Takes options [first, argc) of a bench: --from and --to (powers of two, within low..high; high 0:
 * neither), --runs, --json, --stats, --plot, --table and those of obx_devices; `more` is offered
 * what is none of them (NULL: nothing is). 0, or an exit code.
 */
int obx_kernel_bench_options(struct obx_kernel_bench *b, int argc, char **argv, int first,
	unsigned low, unsigned high, bool (*more)(void *arg, const char *option, const char *value),
	void *arg);
/*
 * Opens both sides: the CPU alone for --device cpu; auto does without a GPU where there is none,
 * gpu does not. 0, or an exit code.
 */
int obx_kernel_bench_open(struct obx_kernel_bench *b);
/*
 * A row of work that is done once to warm up and then `runs` times, by the CPU and, if `gpu`, by
 * the GPU; false: refused.
 */
bool obx_kernel_bench_row(struct obx_kernel_bench *b, const char *name, double size, bool gpu,
	obx_kernel_work *work, void *arg);
/* Notes how the first GPU did the row that was measured last: products of `count` points. */
void obx_kernel_bench_plan(
	struct obx_kernel_bench *b, struct outboard_bases *bases, uint64_t count);
/* Says that CPU and GPU came to different results for a row. */
void obx_kernel_bench_differ(const struct obx_kernel_bench *b, const char *name);
/*
 * Prints, and plots if asked to; with --stats also what each device did, on stderr. The exit code.
 */
int obx_kernel_bench_show(const struct obx_kernel_bench *b);
/* Also of what was not opened. */
void obx_kernel_bench_close(struct obx_kernel_bench *b);

#endif
