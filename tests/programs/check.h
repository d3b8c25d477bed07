/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by the test programs that use the CUDA runtime: error checks, a checksum, a small random
 * generator, and the final result. A program prints only what must be the same on every device: no
 * names, addresses, times or counts.
 */
#ifndef TESTS_PROGRAMS_CHECK_H
#define TESTS_PROGRAMS_CHECK_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#include "codes.h"

static int check_failures;

/* The call must succeed, or the program ends: later results would be meaningless. */
#define CU(call)                                                                           \
	do {                                                                               \
		cudaError_t cu_status_ = (call);                                           \
		if (cu_status_ != cudaSuccess) {                                           \
			fprintf(stderr, "%s:%d: %s: %s (%d)\n", __FILE__, __LINE__, #call, \
				cudaGetErrorString(cu_status_), (int)cu_status_);          \
			exit(1);                                                           \
		}                                                                          \
	} while (0)

/* The call must return exactly this error. */
#define EXPECT(error, call)                                                                     \
	do {                                                                                    \
		cudaError_t cu_status_ = (call);                                                \
		code_note(#call, (int)cu_status_);                                              \
		if (cu_status_ != (error)) {                                                    \
			fprintf(stderr, "%s:%d: %s returned %s (%d), not %s (%d)\n", __FILE__,  \
				__LINE__, #call, cudaGetErrorName(cu_status_), (int)cu_status_, \
				cudaGetErrorName(error), (int)(error));                         \
			check_failures++;                                                       \
		}                                                                               \
	} while (0)

/* The condition must hold. The program continues, so that one run shows all failures. */
#define OK(condition)                                                                             \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
			check_failures++;                                                         \
		}                                                                                 \
	} while (0)

/* FNV-1a over bytes: for integers, and for floats whose every bit is defined by IEEE 754. */
static inline uint64_t checksum(const void *bytes, size_t count)
{
	const unsigned char *at = (const unsigned char *)bytes;
	uint64_t hash = 14695981039346656037ull;

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ at[i]) * 1099511628211ull;
	return hash;
}

/* xorshift32; the state must not be zero. */
static inline uint32_t random_next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static inline bool near(double got, double want, double tolerance)
{
	double error = got > want ? got - want : want - got;
	double size = want < 0 ? -want : want;

	return error <= tolerance * (size > 1 ? size : 1);
}

static inline int verdict(const char *program)
{
	printf("%s: %s\n", program, check_failures ? "WRONG" : "ok");
	return check_failures ? 1 : 0;
}

#endif
