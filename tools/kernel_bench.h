/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What `outboard msm bench`, `ntt bench` and `kzg bench` share: options, the machine, a table of CPU, GPU and speed-up, JSON and a plot. The caller owns the
 * table and fills one row a size or operation. Main thread only.
 */
#ifndef OBX_KERNEL_BENCH_H
#define OBX_KERNEL_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#define OBX_KERNEL_ROWS_MAX 32
#define OBX_KERNEL_RUNS_MAX 101

enum obx_device { OBX_DEVICE_AUTO, OBX_DEVICE_CPU, OBX_DEVICE_GPU };

struct obx_kernel_row {
	char name[32];
	double size;           /* elements; 0: the rows are operations, not sizes */
	double cpu_ms, gpu_ms; /* medians; below 0: not measured */
};

struct obx_kernel_bench {
	const char *verb, *what; /* of the command; of the table, in a line */
	unsigned from, to, runs, threads;
	enum obx_device device;
	bool json;
	const char *plot;
	struct obx_kernel_row rows[OBX_KERNEL_ROWS_MAX];
	unsigned n;
};

/* --device's value; false: said what is allowed. */
bool obx_device_take(const char *verb, const char *text, enum obx_device *ret);
/* False if a GPU was asked for by name and there is none: said so. */
bool obx_device_have(const char *verb, enum obx_device device);

/*
 * Takes options [first, argc) of a bench: --from and --to (powers of two, within low..high), --runs, --threads, --device, --json, --plot; `more` is offered
 * what is none of them (NULL: nothing is). 0, or an exit code.
 */
int obx_kernel_bench_options(struct obx_kernel_bench *b, int argc, char **argv, int first, unsigned low, unsigned high,
	bool (*more)(void *arg, const char *option, const char *value), void *arg);
/* A row whose work(arg) is run once to warm up and then `runs` times; false: work refused, and said why. */
bool obx_kernel_bench_row(struct obx_kernel_bench *b, const char *name, double size, bool (*work)(void *arg), void *arg);
/* Prints, and plots if asked to. The exit code. */
int obx_kernel_bench_show(const struct obx_kernel_bench *b);

#endif
