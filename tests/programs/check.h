/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The harness of the CUDA test programs, for the runtime (.cu) and the driver API (.c): error
 * checks, a checksum, a small random generator, and the final result. A program prints only what
 * must be the same on every device: no names, addresses, times or counts.
 *
 * The programs do not use tests/test.h. They represent user programs: built by nvcc without this
 * project's headers, and run as whole programs, directly and over each transport.
 */
#ifndef TESTS_PROGRAMS_CHECK_H
#define TESTS_PROGRAMS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codes.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
typedef cudaError_t check_code;
static inline const char *check_text(check_code code)
{
	return cudaGetErrorString(code);
}
#else
#include <cuda.h>
typedef CUresult check_code;
/* Must not call the driver: some programs are not linked with it. */
static inline const char *check_text(check_code code)
{
	return code == CUDA_SUCCESS ? "success" : "error";
}
#endif

static int check_failures;

/* The call must succeed, or the program ends: later results would be meaningless. */
#define CU(call)                                                                           \
	do {                                                                               \
		check_code cu_status_ = (call);                                            \
		if ((int)cu_status_ != 0) {                                                \
			fprintf(stderr, "%s:%d: %s: %s (%d)\n", __FILE__, __LINE__, #call, \
				check_text(cu_status_), (int)cu_status_);                  \
			exit(1);                                                           \
		}                                                                          \
	} while (0)

/* The call must return exactly this error. */
#define EXPECT(error, call)                                                                       \
	do {                                                                                      \
		check_code cu_status_ = (call);                                                   \
		code_note(#call, (int)cu_status_);                                                \
		if (cu_status_ != (error)) {                                                      \
			fprintf(stderr, "%s:%d: %s returned %s (%d), not %s (%d)\n", __FILE__,    \
				__LINE__, #call, check_text(cu_status_), (int)cu_status_, #error, \
				(int)(error));                                                    \
			check_failures++;                                                         \
		}                                                                                 \
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
