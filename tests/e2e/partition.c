/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that works in a session with a share of its device.
 *
 *     partition order | units [DEVICE] | cooperative | waits [LAUNCHES] | reset | work FILE WHERE [STEPS]
 *
 * units divides the device before it has a context, and prints its multiprocessors, by resource
 * before and after, and by attribute. cooperative launches as many blocks as fit, and one more.
 * waits needs two blocking streams at the same time: in a green context it waits for ever. With a
 * number, the streams do not block, and so many kernels are launched in each before the first may go on.
 *
 * work launches one grid after the other until the second number of FILE is not 0; the first one is
 * how many have ended. WHERE: default (stream), apart (a non-blocking stream), further (a context
 * of cuCtxCreate), graph, both (a graph beside a launch, in two streams).
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cuda_types.h"
#include "tests/e2e/calls.h"

#define BLOCKS 4096u /* many for each thread, so that all threads work to the end of a grid */
#define ROUNDS 40u
#define STEPS  60000u

static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry late(.param .u64 p, .param .u32 v, .param .u32 n)\n{\n\t.reg .u32 %r<4>;\n"
	"\t.reg .u64 %rd<3>;\n\t.reg .pred %p;\n"
	"\tld.param.u64 %rd1, [p];\n\tld.param.u32 %r3, [v];\n\tld.param.u32 %r1, [n];\n"
	"\tmov.u32 %r2, 0;\n"
	"loop:\n\tadd.u32 %r2, %r2, 1;\n\tsetp.lt.u32 %p, %r2, %r1;\n\t@%p bra loop;\n"
	"\tcvta.to.global.u64 %rd2, %rd1;\n\tst.global.u32 [%rd2], %r3;\n\tret;\n}\n"
	".visible .entry copy(.param .u64 to, .param .u64 from)\n{\n\t.reg .u32 %r<2>;\n"
	"\t.reg .u64 %rd<5>;\n\tld.param.u64 %rd1, [to];\n\tld.param.u64 %rd2, [from];\n"
	"\tcvta.to.global.u64 %rd3, %rd1;\n\tcvta.to.global.u64 %rd4, %rd2;\n"
	"\tld.global.u32 %r1, [%rd4];\n\tst.global.u32 [%rd3], %r1;\n\tret;\n}\n";

#define CALLS(X)                                                                                   \
	X(cuInit, (unsigned))                                                                      \
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                       \
	X(cuDevicePrimaryCtxReset_v2, (CUdevice))                                                  \
	X(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice))                                       \
	X(cuCtxSetCurrent, (CUcontext))                                                            \
	X(cuCtxSynchronize, (void))                                                                \
	X(cuStreamCreate, (CUstream *, unsigned))                                                  \
	X(cuStreamSynchronize, (CUstream))                                                         \
	X(cuStreamDestroy_v2, (CUstream))                                                          \
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                  \
	X(cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream))                             \
	X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                          \
	X(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))                           \
	X(cuModuleLoadData, (CUmodule *, const void *))                                            \
	X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                             \
	X(cuLaunchKernel,                                                                          \
		(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			CUstream, void **, void **))                                               \
	X(cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode))                                \
	X(cuStreamEndCapture, (CUstream, CUgraph *))                                               \
	X(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))               \
	X(cuGraphLaunch, (CUgraphExec, CUstream))                                                  \
	X(cuStreamWaitValue32_v2, (CUstream, CUdeviceptr, cuuint32_t, unsigned))                   \
	X(cuStreamWriteValue32_v2, (CUstream, CUdeviceptr, cuuint32_t, unsigned))                  \
	X(cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice))                             \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, CUfunction, int, size_t))           \
	X(cuLaunchCooperativeKernel,                                                               \
		(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			CUstream, void **))                                                        \
	X(cuDevSmResourceSplitByCount,                                                             \
		(CUdevResource *, unsigned *, const CUdevResource *, CUdevResource *, unsigned,    \
			unsigned))                                                                 \
	X(cuDevResourceGenerateDesc, (CUdevResourceDesc *, CUdevResource *, unsigned))             \
	X(cuGreenCtxCreate, (CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned))                 \
	X(cuDeviceGetDevResource, (CUdevice, CUdevResource *, CUdevResourceType))

#define MEMBER(name, args) CUresult(*name) args;
#define LOAD(name, args)   *(void **)&cu.name = dlsym(library, #name);
#define NEED(name, ...)    need(cu.name(__VA_ARGS__), #name)

static struct {
	CALLS(MEMBER)
} cu;
static CUfunction late, copy;
static CUdeviceptr p, q;

static void context_enter(CUcontext context)
{
	CUmodule module;

	NEED(cuCtxSetCurrent, context);
	NEED(cuModuleLoadData, &module, ptx);
	NEED(cuModuleGetFunction, &late, module, "late");
	NEED(cuModuleGetFunction, &copy, module, "copy");
	NEED(cuMemAlloc_v2, &p, 4);
	NEED(cuMemAlloc_v2, &q, 4);
}

static void primary_enter(void)
{
	CUcontext context;

	NEED(cuDevicePrimaryCtxRetain, &context, 0);
	context_enter(context);
}

/* *at becomes value, after n steps of each thread. */
static void put_late(CUdeviceptr at, uint32_t value, uint32_t n, unsigned blocks, CUstream stream)
{
	void *params[] = { &at, &value, &n };

	NEED(cuLaunchKernel, late, blocks, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

static void same(const char *what, uint32_t have, uint32_t want)
{
	if (have == want)
		return;
	printf("%s: %u instead of %u\n", what, have, want);
	exit(1);
}

/* What CUDA promises about the default stream and other streams. */
static void order(void)
{
	void *params[] = { &q, &p };
	CUstream blocking, second, apart;
	uint32_t have;

	NEED(cuStreamCreate, &blocking, CU_STREAM_DEFAULT);
	NEED(cuStreamCreate, &second, CU_STREAM_DEFAULT);
	NEED(cuStreamCreate, &apart, CU_STREAM_NON_BLOCKING);
	for (uint32_t i = 1; i < ROUNDS; i++) {
		CUstream legacy = i % 2 ? CU_STREAM_LEGACY : NULL;

		put_late(p, i, 20000, 1, blocking);
		NEED(cuMemcpyDtoHAsync_v2, &have, p, 4, legacy);
		NEED(cuStreamSynchronize, legacy);
		same("the default stream waits for a blocking one", have, i);
		put_late(p, 1000 + i, 20000, 1, legacy);
		NEED(cuLaunchKernel, copy, 1, 1, 1, 1, 1, 1, 0, second, params, NULL);
		NEED(cuStreamSynchronize, second);
		NEED(cuMemcpyDtoH_v2, &have, q, 4);
		same("a blocking stream waits for the default one", have, 1000 + i);
		put_late(p, 2000 + i, 20000, 1, apart);
		NEED(cuCtxSynchronize);
		NEED(cuMemcpyDtoH_v2, &have, p, 4);
		same("cuCtxSynchronize waits for a non-blocking stream", have, 2000 + i);
		NEED(cuMemsetD32Async, p, 3000 + i, 1, apart);
		NEED(cuStreamSynchronize, apart);
		NEED(cuMemcpyDtoH_v2, &have, p, 4);
		same("a non-blocking stream is waited for alone", have, 3000 + i);
	}
	NEED(cuStreamDestroy_v2, blocking);
	NEED(cuStreamDestroy_v2, apart);
	put_late(p, 7, 1, 1, second);
	NEED(cuMemcpyDtoH_v2, &have, p, 4);
	same("the default stream outlives a blocking one", have, 7);
}

static void reset(void)
{
	uint32_t have;

	for (uint32_t i = 0; i < 3; i++) {
		put_late(p, i, 1000, 1, NULL);
		NEED(cuMemcpyDtoH_v2, &have, p, 4);
		same("after a reset", have, i);
		NEED(cuDevicePrimaryCtxReset_v2, 0);
		primary_enter();
	}
}

static unsigned resource_of(CUdevice device, CUdevResource *ret)
{
	NEED(cuDeviceGetDevResource, device, ret, CU_DEV_RESOURCE_TYPE_SM);
	return ret->sm.smCount;
}

static void units(CUdevice device)
{
	CUdevResource whole, part;
	CUdevResourceDesc desc;
	unsigned n = 1, before;
	CUgreenCtx green;
	CUcontext context;
	int attribute;

	NEED(cuDeviceGetAttribute, &attribute, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	before = resource_of(device, &whole);
	NEED(cuDevSmResourceSplitByCount, &part, &n, &whole, NULL, 0, whole.sm.smCount);
	NEED(cuDevResourceGenerateDesc, &desc, &part, 1);
	NEED(cuGreenCtxCreate, &green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM);
	NEED(cuDevicePrimaryCtxRetain, &context, device);
	printf("units %u %u %d\n", before, resource_of(device, &whole), attribute);
}

/* As many blocks as the program can find out that fit at once, and one more. */
static void cooperative(void)
{
	uint32_t value = 5, n = 1, have;
	void *params[] = { &p, &value, &n };
	int each, of;

	NEED(cuDeviceGetAttribute, &of, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
	NEED(cuOccupancyMaxActiveBlocksPerMultiprocessor, &each, late, 256, 0);
	NEED(cuLaunchCooperativeKernel, late, (unsigned)(each * of), 1, 1, 256, 1, 1, 0, NULL,
		params);
	NEED(cuMemcpyDtoH_v2, &have, p, 4);
	same("a cooperative grid", have, value);
	printf("%d blocks; one more: %d\n", each * of,
		(int)cu.cuLaunchCooperativeKernel(
			late, (unsigned)(each * of) + 1, 1, 1, 256, 1, 1, 0, NULL, params));
}

/* One stream waits for a value that is written in another one afterwards. */
static void waits(unsigned launches)
{
	unsigned flags = launches ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
	CUstream first, second;

	NEED(cuStreamCreate, &first, flags);
	NEED(cuStreamCreate, &second, flags);
	NEED(cuMemsetD32Async, p, 0, 1, first);
	NEED(cuStreamSynchronize, first);
	NEED(cuStreamWaitValue32_v2, first, p, 1, CU_STREAM_WAIT_VALUE_EQ);
	for (unsigned i = 0; i < launches; i++) {
		put_late(q, i, 1, 1, first);
		put_late(q, i, 1, 1, second);
	}
	NEED(cuStreamWriteValue32_v2, second, p, 1, CU_STREAM_WRITE_VALUE_DEFAULT);
	printf("queued\n");
	fflush(stdout);
	NEED(cuStreamSynchronize, first);
}

static CUgraphExec recorded(CUstream stream, uint32_t n)
{
	CUgraphExec exec;
	CUgraph graph;

	NEED(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	/* two, so that it is a graph on the server, too: one kernel is simply launched */
	put_late(p, 1, n / 2, BLOCKS, stream);
	put_late(p, 2, n / 2, BLOCKS, stream);
	NEED(cuStreamEndCapture, stream, &graph);
	NEED(cuGraphInstantiateWithFlags, &exec, graph, 0);
	return exec;
}

/* n: steps of each thread. A grid must take much longer than a launch. */
static void work(const char *path, const char *where, uint32_t n)
{
	int fd = open(path, O_RDWR);
	_Atomic uint64_t *shared = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool both = strcmp(where, "both") == 0, graph = both || strcmp(where, "graph") == 0;
	CUstream stream = NULL;
	CUgraphExec exec = NULL;
	CUcontext context;

	if (shared == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	if (strcmp(where, "further") == 0) {
		NEED(cuCtxCreate_v2, &context, 0, 0);
		context_enter(context);
	}
	if (strcmp(where, "apart") == 0 || graph)
		NEED(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	if (graph)
		exec = recorded(stream, n);
	while (!shared[1]) {
		if (exec)
			NEED(cuGraphLaunch, exec, stream);
		if (!exec || both)
			put_late(q, 1, n, BLOCKS, both ? NULL : stream);
		NEED(cuStreamSynchronize, stream);
		if (both)
			NEED(cuStreamSynchronize, NULL);
		shared[0] += both ? 2 : 1;
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "order";
	void *library = library_open();

	CALLS(LOAD)
	NEED(cuInit, 0);
	if (strcmp(what, "units") == 0) {
		units(argc > 2 ? (CUdevice)strtol(argv[2], NULL, 10) : 0);
		return 0;
	}
	primary_enter();
	if (strcmp(what, "order") == 0)
		order();
	else if (strcmp(what, "cooperative") == 0)
		cooperative();
	else if (strcmp(what, "waits") == 0)
		waits(argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0);
	else if (strcmp(what, "reset") == 0)
		reset();
	else if (argc > 3)
		work(argv[2], argv[3], argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : STEPS);
	printf("%s: ok\n", what);
	return 0;
}
