/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that keeps its first device busy for a part of the time. For tests of a pool, and for
 * tools/dev/pool-skew.
 *
 *     rack_load WORK_MS PAUSE_MS [STEPS [FILE [stubborn]]]
 *
 * A step is work of WORK_MS (0: one short call) and a pause. It ends after STEPS of them (0: never).
 * With FILE, the number of steps that were done is kept there, so that a program that is started
 * again goes on where it was; it also ends when there is FILE.stop. Prints "step N of STEPS on SERVER" at its start, and "done" at the
 * end. stubborn: SIGTERM is ignored. Exit code 0: all was done; 3: a call failed.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cuda_types.h"

#define BYTES (32u << 20)

static void *library;

static void *call(const char *name)
{
	void *function = dlsym(library, name);

	if (!function) {
		fprintf(stderr, "%s: %s\n", name, dlerror());
		exit(2);
	}
	return function;
}

static void must(const char *what, CUresult result)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s: error %d\n", what, (int)result);
	exit(3);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static unsigned long steps_read(const char *path)
{
	FILE *file = path ? fopen(path, "r") : NULL;
	unsigned long steps = 0;

	if (file && fscanf(file, "%lu", &steps) != 1)
		steps = 0;
	if (file)
		fclose(file);
	return steps;
}

static int stops(const char *path)
{
	char other[4096];

	if (!path)
		return 0;
	snprintf(other, sizeof other, "%s.stop", path);
	return access(other, F_OK) == 0;
}

/* Replaces the file, so that it is whole whenever the process is killed. */
static void steps_write(const char *path, unsigned long steps)
{
	char other[4096];
	FILE *file;

	if (!path)
		return;
	snprintf(other, sizeof other, "%s.new", path);
	file = fopen(other, "w");
	if (!file || fprintf(file, "%lu\n", steps) < 0 || fclose(file) != 0 ||
		rename(other, path) != 0) {
		perror(path);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext),
		(*alloc)(CUdeviceptr *, size_t), (*fill)(CUdeviceptr, unsigned char, size_t),
		(*sync)(void);
	double work_ms = argc > 1 ? atof(argv[1]) : 0, pause_ms = argc > 2 ? atof(argv[2]) : 0;
	unsigned long steps = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	const char *path = argc > 4 ? argv[4] : NULL, *server = getenv("OUTBOARD_SERVER");
	unsigned long step = steps_read(path);
	CUcontext context;
	CUdeviceptr memory;

	if (argc > 5)
		signal(SIGTERM, SIG_IGN);
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	*(void **)&init = call("cuInit");
	*(void **)&retain = call("cuDevicePrimaryCtxRetain");
	*(void **)&set = call("cuCtxSetCurrent");
	*(void **)&alloc = call("cuMemAlloc_v2");
	*(void **)&fill = call("cuMemsetD8_v2");
	*(void **)&sync = call("cuCtxSynchronize");
	must("cuInit", init(0));
	must("cuDevicePrimaryCtxRetain", retain(&context, 0));
	must("cuCtxSetCurrent", set(context));
	must("cuMemAlloc", alloc(&memory, BYTES));
	printf("step %lu of %lu on %s\n", step, steps, server ? server : "none");
	fflush(stdout);
	while ((steps == 0 || step < steps) && !stops(path)) {
		double end = now_ms() + work_ms;

		do {
			/* in flight together, so that the server always has the next one */
			for (unsigned i = 0; i < (work_ms > 0 ? 16 : 1); i++)
				must("cuMemsetD8",
					fill(memory, (unsigned char)step, work_ms > 0 ? BYTES : 1));
			must("cuCtxSynchronize", sync());
		} while (now_ms() < end);
		steps_write(path, ++step);
		usleep((useconds_t)(pause_ms * 1000)); // poll: the pace of the load
	}
	printf("done\n");
	return 0;
}
