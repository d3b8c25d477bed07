/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * pt_run: one execution of a case: its module, its device memory and its first failure.
 *
 * After a failure the helpers do nothing, so that a case can call them without checks and return
 * pt_run_ok(). The runner frees the memory. One thread.
 */
#ifndef OB_TESTS_PTX_RUN_H
#define OB_TESTS_PTX_RUN_H

#include "tests/ptx/suite.h"

#define PT_RUN_MAX_BUFFERS 16

/* Every kernel of a case has these four parameters. */
#define PT_ENTRY(name)                                                                          \
	".visible .entry " name "(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 " \
	"p3)\n"
/*
 * Registers that most kernels use: %p0..%p3: the parameters; %t: the thread in the block; %i: the
 * index in the 1-D grid.
 */
/* clang-format off */
#define PT_PROLOGUE \
	"\t.reg .pred %q<16>;\n\t.reg .b16 %h<16>;\n\t.reg .b32 %r<64>, %t, %i;\n\t.reg .b64 %l<32>, %p<4>, %at;\n" \
	"\t.reg .f32 %f<16>;\n\t.reg .f64 %g<16>;\n" \
	"\tld.param.u64 %p0, [p0];\n\tld.param.u64 %p1, [p1];\n\tld.param.u64 %p2, [p2];\n\tld.param.u64 %p3, [p3];\n" \
	"\tmov.u32 %t, %tid.x;\n\tmov.u32 %r62, %ctaid.x;\n\tmov.u32 %r63, %ntid.x;\n\tmad.lo.u32 %i, %r62, %r63, %t;\n"
/* clang-format on */

struct pt_dim {
	unsigned x, y, z;
};

struct pt_run {
	struct pt_suite *suite;
	struct pt_driver *d;
	const struct pt_case *c;
	CUmodule module;
	struct pt_rng rng;
	char *message; /* reason of the failure, or NULL */
	bool absent;   /* an optional case whose module was refused */
	CUdeviceptr buffers[PT_RUN_MAX_BUFFERS];
	unsigned n_buffers;
	CUresult error; /* of the call that failed */
};

bool pt_run_ok(const struct pt_run *run);

/* Records a failure unless there is one already. Returns false. */
bool pt_run_fail(struct pt_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Allocates device memory with a copy of host's n bytes, or filled with 0xa5 when host is NULL. */
CUdeviceptr pt_run_put(struct pt_run *run, const void *host, size_t n);
void pt_run_get(struct pt_run *run, CUdeviceptr from, void *host, size_t n);

/* Launches and waits. */
void pt_run_go(struct pt_run *run, const char *kernel, struct pt_dim grid, struct pt_dim block,
	unsigned shared, const uint64_t params[4]);
/* The same over a 1-D grid. */
void pt_run_line(struct pt_run *run, const char *kernel, unsigned grid, unsigned block, uint64_t p0,
	uint64_t p1, uint64_t p2, uint64_t p3);

/* Compares n words. The message names `what` and the first index that differs. */
bool pt_run_same32(
	struct pt_run *run, const char *what, const uint32_t *got, const uint32_t *want, size_t n);
bool pt_run_same64(
	struct pt_run *run, const char *what, const uint64_t *got, const uint64_t *want, size_t n);

#endif
