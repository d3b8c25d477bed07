/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Each case runs in a separate child process, because cuInit takes effect once per process. A
 * failed CHECK prints its location and expression and ends the child. An alarm kills a case that
 * hangs.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake.h"
#include "protocol/obf_calls.h"

#define CASE_SECONDS 30

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1);                                                               \
		}                                                                               \
	} while (0)

/* The call must return this CUresult. */
#define GIVES(want, call)                                                                         \
	do {                                                                                      \
		int got_ = (int)(call);                                                           \
		if (got_ != (int)(want)) {                                                        \
			fprintf(stderr, "%s:%d: %s gave %d, not %d\n", __FILE__, __LINE__, #call, \
				got_, (int)(want));                                               \
			_exit(1);                                                                 \
		}                                                                                 \
	} while (0)

#define OK(call) GIVES(CUDA_SUCCESS, call)

struct test_case {
	const char *name;
	void (*run)(void);
};

static inline int harness_run(const struct test_case *cases, size_t n)
{
	int failed = 0;

	for (size_t i = 0; i < n; i++) {
		int status = 0;
		pid_t child;

		fflush(NULL);
		child = fork();
		if (child == 0) {
			alarm(CASE_SECONDS);
			cases[i].run();
			exit(0); /* not _exit, so that leak checks run */
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
			fprintf(stderr, "FAIL %s (status %#x)\n", cases[i].name, (unsigned)status);
			failed++;
		}
	}
	printf("%zu cases, %d failed\n", n, failed);
	return failed != 0;
}

#define CASE(name)          \
	{                   \
#name, name \
	}
#define RUN(cases) harness_run(cases, sizeof(cases) / sizeof((cases)[0]))

/* Initialises the process with the fake's devices; device 0's primary context is current. */
static inline CUcontext begin(void)
{
	CUcontext ctx;

	fake_attach(NULL, 0);
	OK(obf_cuInit(0));
	OK(obf_cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(obf_cuCtxSetCurrent(ctx));
	return ctx;
}

/* Two kernels and a variable. */
static const char ptx_text[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .b8 table[64];\n"
	".visible .entry first(.param .u64 p0, .param .u32 p1, .param .u64 p2)\n{\n\tret;\n}\n"
	".visible .entry second(.param .u32 p0)\n.maxntid 128, 1, 1\n{\n\tret;\n}\n"
	".visible .entry third()\n.reqntid 64, 2, 1\n{\n\tret;\n}\n";

#endif
