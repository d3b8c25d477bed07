/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by the programs that use the driver API: error checks, a checksum, and reading the device
 * code that the build puts beside the program.
 */
#ifndef TESTS_PROGRAMS_DRIVER_H
#define TESTS_PROGRAMS_DRIVER_H

#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codes.h"

static int check_failures;

/* The call must succeed, or the program ends. */
#define CU(call)                                                                            \
	do {                                                                                \
		CUresult cu_status_ = (call);                                               \
		if (cu_status_ != CUDA_SUCCESS) {                                           \
			fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, \
				(int)cu_status_);                                           \
			exit(1);                                                            \
		}                                                                           \
	} while (0)

/* The call must return exactly this error. */
#define EXPECT(error, call)                                                                    \
	do {                                                                                   \
		CUresult cu_status_ = (call);                                                  \
		code_note(#call, (int)cu_status_);                                             \
		if (cu_status_ != (error)) {                                                   \
			fprintf(stderr, "%s:%d: %s returned %d, not %d\n", __FILE__, __LINE__, \
				#call, (int)cu_status_, (int)(error));                         \
			check_failures++;                                                      \
		}                                                                              \
	} while (0)

#define OK(condition)                                                                             \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
			check_failures++;                                                         \
		}                                                                                 \
	} while (0)

static inline uint64_t checksum(const void *bytes, size_t count)
{
	const unsigned char *at = (const unsigned char *)bytes;
	uint64_t hash = 14695981039346656037ull;

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ at[i]) * 1099511628211ull;
	return hash;
}

static inline int verdict(const char *program)
{
	printf("%s: %s\n", program, check_failures ? "WRONG" : "ok");
	return check_failures ? 1 : 0;
}

/* Returns the path of a file beside this program; valid until the next call. */
static inline const char *beside(const char *file)
{
	static char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 256);

	if (length < 0)
		exit(1);
	path[length] = 0;
	snprintf(strrchr(path, '/') + 1, 255, "%s", file);
	return path;
}

/* Reads the whole file and appends a zero byte; the caller frees it. */
static inline void *read_beside(const char *file)
{
	FILE *in = fopen(beside(file), "rb");
	char *data = (char *)malloc(1 << 20);
	size_t length;

	if (!in || !data) {
		fprintf(stderr, "cannot read %s\n", beside(file));
		exit(1);
	}
	length = fread(data, 1, (1 << 20) - 1, in);
	data[length] = 0;
	fclose(in);
	return data;
}

#endif
