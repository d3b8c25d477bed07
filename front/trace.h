/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_trace: the calls of a program that runs on the software device in its own process, one line
 * each in a file. A client's trace lists the records that it sends; here nothing is sent, so the
 * exported functions write their lines themselves (generated).
 *
 *   142.000117803 #12 lane 0 cuMemAlloc_v2(addr=0x7ffd5c1a2e10, bytes=1024)
 *   142.000119211 #12 lane 0 cuMemAlloc_v2 = 0 (addr=0x200000000000)
 *
 * Seconds of the monotonic clock, the call's number, the thread's. The first line is written before
 * the call does anything, the second, when it returns, only where it failed or has results that are
 * numbers. Any thread.
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
 * Opens the file that OUTBOARD_TRACE names, if it does. What is wrong with it is logged; the
 * program goes on.
 */
void obf_trace_open(void);
/* The call's number, not 0. */
uint64_t obf_trace_call(const char *name, const struct obf_trace_arg *args, unsigned n);
void obf_trace_result(uint64_t number, const char *name, CUresult result,
	const struct obf_trace_arg *outs, unsigned n);

#endif
