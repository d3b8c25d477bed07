/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * bulk KIND BYTES COPIES [FILE...]: times copies to the device and back, and checks that the bytes
 * are the same. Used by the measurements of links. One line of output:
 *
 *     up SECONDS... down SECONDS... same
 *
 * Every copy of a session has different bytes, so that no cache has seen them. KIND is zeros,
 * float, bf16, relu, tokens or random for generated data; `file` takes bytes from the files in
 * turn, at a different offset each time, starting over at the end.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cuda_types.h"

#define PERIOD     (6u << 20)
#define COPIES_MAX 16
#define FILE_MAX   (64u << 20)

static uint64_t seed;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/*
 * Nearly a normal distribution with deviation 0.02, like a model's weights: the sum of four uniform
 * values.
 */
static float weight(void)
{
	uint64_t r = next();
	float sum = 0;

	for (int i = 0; i < 4; i++)
		sum += (float)(r >> 16 * i & 0xffff);
	return (sum / 65536 - 2) * 0.0346f;
}

static uint8_t *files_read(char **names, int n, size_t *ret_size)
{
	uint8_t *all = malloc(FILE_MAX);
	size_t size = 0;

	for (int i = 0; i < n && all && size < FILE_MAX; i++) {
		FILE *file = fopen(names[i], "rb");

		if (!file)
			continue;
		size += fread(all + size, 1, FILE_MAX - size, file);
		fclose(file);
	}
	*ret_size = size;
	return all;
}

static int fill(uint8_t *data, size_t n, const char *kind, const uint8_t *file, size_t file_size,
	size_t from)
{
	if (strcmp(kind, "file") == 0) {
		for (size_t i = 0; file_size && i < n; i += file_size - from, from = 0)
			memcpy(data + i, file + from,
				n - i < file_size - from ? n - i : file_size - from);
		return file_size != 0;
	}
	memset(data, 0, n);
	/* The rest repeats, at a distance beyond every codec's window. */
	for (size_t i = 0, made = n < PERIOD ? n : PERIOD;
		strcmp(kind, "zeros") != 0 && i + 8 <= made; i += 8) {
		float x[2] = { weight(), weight() };
		uint64_t r;

		if (strcmp(kind, "bf16") == 0) {
			float y[2] = { weight(), weight() };

			for (int k = 0; k < 2; k++) {
				memcpy(data + i + 2 * k, (char *)&x[k] + 2, 2);
				memcpy(data + i + 4 + 2 * k, (char *)&y[k] + 2, 2);
			}
			continue;
		}
		if (strcmp(kind, "relu") == 0)
			for (int k = 0; k < 2; k++)
				x[k] = x[k] < 0 ? 0 : x[k];
		else if (strcmp(kind, "float") != 0) {
			r = strcmp(kind, "tokens") == 0 ? next() % 32000 : next();
			memcpy(x, &r, 8);
		}
		memcpy(data + i, x, 8);
	}
	for (size_t i = PERIOD; strcmp(kind, "zeros") != 0 && i < n; i += PERIOD)
		memcpy(data + i, data, n - i < PERIOD ? n - i : PERIOD);
	return 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext),
		(*alloc)(CUdeviceptr *, size_t);
	CUresult (*to)(CUdeviceptr, const void *, size_t), (*from)(void *, CUdeviceptr, size_t),
		(*wait)(void);
	size_t n = argc > 3 ? strtoull(argv[2], NULL, 10) : 0, file_size = 0;
	int copies = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0, same = 1;
	double up[COPIES_MAX], down[COPIES_MAX], began;
	uint8_t *file, *data = malloc(n), *back = malloc(n);
	CUdeviceptr device;
	CUcontext ctx;

	if (!library || !n || copies < 1 || copies > COPIES_MAX || !data || !back) {
		fprintf(stderr, "%s\n",
			library ? "usage: bulk KIND BYTES COPIES [FILE...], at most 16 copies"
				: dlerror());
		return 2;
	}
	*(void **)&init = dlsym(library, "cuInit");
	*(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(library, "cuCtxSetCurrent");
	*(void **)&alloc = dlsym(library, "cuMemAlloc_v2");
	*(void **)&to = dlsym(library, "cuMemcpyHtoD_v2");
	*(void **)&from = dlsym(library, "cuMemcpyDtoH_v2");
	*(void **)&wait = dlsym(library, "cuCtxSynchronize");
	seed = (uint64_t)(now() * 1e9) | 1;
	file = files_read(argv + 4, argc - 4, &file_size);
	memset(back, 1, n);
	if (init(0) || retain(&ctx, 0) || set(ctx) || alloc(&device, n)) {
		fprintf(stderr, "no device\n");
		return 1;
	}
	for (int i = 0; i < copies && same; i++) {
		if (!fill(data, n, argv[1], file, file_size, file_size ? next() % file_size : 0))
			return 2;
		began = now();
		if (to(device, data, n) || wait())
			return 1;
		up[i] = now() - began;
		began = now();
		if (from(back, device, n))
			return 1;
		down[i] = now() - began;
		same = memcmp(data, back, n) == 0;
	}
	printf("up");
	for (int i = 0; i < copies; i++)
		printf(" %.6f", up[i]);
	printf(" down");
	for (int i = 0; i < copies; i++)
		printf(" %.6f", down[i]);
	puts(same ? " same" : " WRONG");
	free(file);
	return same ? 0 : 1;
}
