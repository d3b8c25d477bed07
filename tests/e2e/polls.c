/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that polls and times kernels: what each round of these loops costs is counted by
 * round_trips.py.
 *
 *     polls event | stream | timed | slept ROUNDS
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "tests/e2e/calls.h"
#include "tests/waiting.h"

static const char ptx[] = ".version 8.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry busy(.param .u64 out, .param .u32 rounds)\n"
			  "{\n.reg .pred %p;\n.reg .u32 %r<4>;\n.reg .u64 %a;\n"
			  "ld.param.u64 %a, [out];\nld.param.u32 %r1, [rounds];\nmov.u32 %r2, 1;\n"
			  "AGAIN:\nmad.lo.u32 %r2, %r2, 1664525, 1013904223;\n"
			  "sub.u32 %r1, %r1, 1;\nsetp.ne.u32 %p, %r1, 0;\n@%p bra AGAIN;\n"
			  "st.global.u32 [%a], %r2;\nret;\n}\n";

#define LONG  200000u /* rounds of the kernel */
#define SHORT 1000u

#define CALLS(X)                                                                                  \
	X(cuInit, unsigned)                                                                       \
	X(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)                                        \
	X(cuCtxSetCurrent, CUcontext)                                                             \
	X(cuModuleLoadData, CUmodule *, const void *)                                             \
	X(cuModuleGetFunction, CUfunction *, CUmodule, const char *)                              \
	X(cuMemAlloc_v2, CUdeviceptr *, size_t)                                                   \
	X(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
		unsigned, CUstream, void **, void **)                                             \
	X(cuStreamCreate, CUstream *, unsigned)                                                   \
	X(cuStreamQuery, CUstream)                                                                \
	X(cuEventCreate, CUevent *, unsigned)                                                     \
	X(cuEventRecord, CUevent, CUstream)                                                       \
	X(cuEventQuery, CUevent)                                                                  \
	X(cuEventSynchronize, CUevent)                                                            \
	X(cuEventElapsedTime, float *, CUevent, CUevent)

static struct {
#define X(name, ...) CUresult (*name)(__VA_ARGS__);
	CALLS(X)
#undef X
} cu;

static CUfunction busy;
static CUdeviceptr out;
static CUstream stream;
static CUevent start, end;
static unsigned long not_ready;

static void launch(unsigned rounds)
{
	void *params[] = { &out, &rounds };

	need(cu.cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL), "launch");
}

static void poll_until(CUresult (*query)(void))
{
	CUresult result;

	while ((result = query()) == CUDA_ERROR_NOT_READY)
		not_ready++;
	need(result, "query");
}

static CUresult query_event(void)
{
	return cu.cuEventQuery(end);
}

static CUresult query_stream(void)
{
	return cu.cuStreamQuery(stream);
}

static void round_event(void)
{
	launch(LONG);
	need(cu.cuEventRecord(end, stream), "record");
	poll_until(query_event);
}

static void round_stream(void)
{
	launch(LONG);
	poll_until(query_stream);
}

/* Work that ended long before the query is reported as complete. */
static void round_slept(void)
{
	launch(SHORT);
	need(cu.cuEventRecord(end, stream), "record");
	let_pass(300000, "the work ends long before the query");
	need(cu.cuEventQuery(end), "query after a pause");
}

static void round_timed(void)
{
	float ms = -1, again = -1;

	need(cu.cuEventRecord(start, stream), "record");
	launch(LONG);
	need(cu.cuEventRecord(end, stream), "record");
	need(cu.cuEventSynchronize(end), "synchronize");
	need(cu.cuEventElapsedTime(&ms, start, end), "elapsed");
	need(cu.cuEventElapsedTime(&again, start, end), "elapsed");
	if (ms <= 0 || ms != again)
		need(CUDA_ERROR_UNKNOWN, "times");
}

static void prepare(void)
{
	void *library = library_open();
	CUcontext context;
	CUmodule module;

#define X(name, ...) *(void **)&cu.name = dlsym(library, #name);
	CALLS(X)
#undef X
	need(cu.cuInit(0), "init");
	need(cu.cuDevicePrimaryCtxRetain(&context, 0), "retain");
	need(cu.cuCtxSetCurrent(context), "current");
	need(cu.cuModuleLoadData(&module, ptx), "load");
	need(cu.cuModuleGetFunction(&busy, module, "busy"), "function");
	need(cu.cuMemAlloc_v2(&out, 4), "alloc");
	need(cu.cuStreamCreate(&stream, 1), "stream");
	need(cu.cuEventCreate(&start, 0), "event");
	need(cu.cuEventCreate(&end, 0), "event");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = { { "event", round_event }, { "stream", round_stream },
		{ "timed", round_timed }, { "slept", round_slept } };
	uint64_t rounds = 0;
	bool valid = argc > 2 && ob_text_parse_number(argv[2], 1, 1000, &rounds);

	for (size_t i = 0; valid && i < sizeof modes / sizeof *modes; i++) {
		if (strcmp(argv[1], modes[i].name) != 0)
			continue;
		prepare();
		while (rounds-- > 0)
			modes[i].run();
		printf("not ready %lu\n", not_ready);
		return 0;
	}
	fprintf(stderr, "polls event | stream | timed | slept ROUNDS\n");
	return 2;
}
