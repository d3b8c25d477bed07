/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_trace: writes the calls of a program that runs on the software device in its own process to a
 * file, one line each. The trace of the client library lists the records that it sends. The
 * software device sends nothing, so its exported functions (generated) write the lines.
 *
 *   142.000117803 #12 lane 0 cuMemAlloc_v2(addr=0x7ffd5c1a2e10, bytes=1024)
 *   142.000119211 #12 lane 0 cuMemAlloc_v2 = 0 (addr=0x200000000000)
 *
 * A line starts with seconds of the monotonic clock, the number of the call and the number of the
 * thread. The first line is written before the call does anything. The second is written when the
 * call returns, but only if it failed or has numeric results. Any thread.
 */
#ifndef OBF_TRACE_H
#define OBF_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

enum obf_trace_kind { OBF_TRACE_SIGNED, OBF_TRACE_UNSIGNED, OBF_TRACE_ADDRESS, OBF_TRACE_TEXT };

struct obf_trace_arg {
	const char *name;
	enum obf_trace_kind kind;
	uint64_t value; /* TEXT: a pointer, may be NULL */
};

extern bool obf_trace_on; /* written before cuInit returns */

/*
 * Opens the file that OUTBOARD_TRACE names, if it is set. An error is logged, and the program
 * continues.
 */
void obf_trace_open(void);
/* Returns the call's number, which is not 0. */
uint64_t obf_trace_call(const char *name, const struct obf_trace_arg *args, unsigned n);
void obf_trace_result(uint64_t number, const char *name, CUresult result,
	const struct obf_trace_arg *outs, unsigned n);

#endif
