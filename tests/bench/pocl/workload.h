/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What opencl.c and cuda.cu share: the sizes of the kernels, their input, and the conversation with
 * tools/dev/beside-pocl. The tool writes the name of a kernel in a line; the program runs it once and
 * answers with milliseconds elapsed, milliseconds of processor time, and a sum of the result.
 */
#ifndef POCL_WORKLOAD_H
#define POCL_WORKLOAD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRIAD, MATMUL, NBODY, OPTIONS, REDUCTION, HISTOGRAM, STENCIL, MANDELBROT, HASH, KERNELS };

#define BUFFERS      4
#define BUFFER_BYTES ((size_t)64 << 20)
#define CLEARED      4096 /* bytes of the result that are zero before each run */
#define THREADS      (256 * 256)

/* n: elements, or elements of a side; x, y: threads; bx, by: of a block; results: elements of out */
static const struct workload {
	const char *name;
	int n;
	size_t x, y, bx, by;
	size_t results;
} workloads[KERNELS] = {
	{ "triad", 1 << 24, 1 << 24, 1, 256, 1, 1 << 24 },
	{ "matmul", 512, 512, 512, 16, 16, 512 * 512 },
	{ "nbody", 4096, 4096, 1, 256, 1, 4 * 4096 },
	{ "options", 1 << 20, 1 << 20, 1, 256, 1, 1 << 20 },
	{ "reduction", 1 << 24, THREADS, 1, 256, 1, 256 },
	{ "histogram", 1 << 22, THREADS, 1, 256, 1, 256 },
	{ "stencil", 4096, 4096, 4096, 32, 8, (size_t)4096 * 4096 },
	{ "mandelbrot", 1024, 1024, 1024, 16, 16, 1024 * 1024 },
	{ "hash", 1 << 20, 1 << 20, 1, 256, 1, 2 << 20 },
};

static double workload_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Fills the inputs: numbers from 0 to 1, or bits. */
static void workload_fill(int k, unsigned *x, unsigned *y)
{
	unsigned state = 12345;

	for (size_t i = 0; i < BUFFER_BYTES / 4; i++) {
		float v;

		state = state * 1664525 + 1013904223;
		v = (float)(state >> 8) / (1 << 24);
		memcpy(&x[i], k == HISTOGRAM || k == HASH ? (void *)&state : (void *)&v, 4);
		v = 1 - v * v;
		memcpy(&y[i], &v, 4);
	}
}

static double workload_sum(int k, const unsigned *out)
{
	double sum = 0;

	for (size_t i = 0; i < workloads[k].results; i++) {
		float v;

		memcpy(&v, &out[i], 4);
		sum += k == HISTOGRAM     ? (double)out[i] * (double)i
			: k >= MANDELBROT ? (double)out[i]
					  : (double)v;
	}
	return sum;
}

/*
 * What a device does: `load` copies the inputs to the device, `clear` clears the
 * start of the result, `run` executes a kernel and waits for its end, `read` copies the result.
 */
struct workload_device {
	void (*load)(const void *x, const void *y);
	void (*clear)(void);
	void (*run)(int k);
	void (*read)(void *out);
};

/* Answers the tool until the end of stdin. */
static int workload_answer(const struct workload_device *device)
{
	unsigned *x = (unsigned *)malloc(BUFFER_BYTES), *y = (unsigned *)malloc(BUFFER_BYTES),
		 *out = (unsigned *)malloc(BUFFER_BYTES);
	int loaded = -1;
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		int k = 0;

		line[strcspn(line, "\n")] = 0;
		while (k < KERNELS && strcmp(line, workloads[k].name) != 0)
			k++;
		if (k == KERNELS)
			return 1;
		if (loaded != k) {
			workload_fill(k, x, y);
			device->load(x, y);
			device->run(k);
			loaded = k;
		}
		device->clear();
		double wall = workload_ms(CLOCK_MONOTONIC),
		       cpu = workload_ms(CLOCK_PROCESS_CPUTIME_ID);

		device->run(k);
		wall = workload_ms(CLOCK_MONOTONIC) - wall;
		cpu = workload_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
		device->read(out);
		printf("%.4f %.4f %.17g\n", wall, cpu, workload_sum(k, out));
		fflush(stdout);
	}
	free(x);
	free(y);
	free(out);
	return 0;
}

#endif
