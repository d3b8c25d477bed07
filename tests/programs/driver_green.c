/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Green contexts: splits of the multiprocessors, streams and the default stream of a part of them,
 * events for whole contexts, and wrong uses.
 */
#include "driver.h"

/* cuda.h declares the newest version only. */
CUresult cuCtxCreate_v3(
	CUcontext *ctx, CUexecAffinityParam *affinity, int n, unsigned flags, CUdevice device);

enum { WORDS = 4096, BYTES = WORDS * 4, GROUPS = 64 };

static const char SOURCE[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	/* Adds to each word; slow, so that a missing wait is seen. */
	".visible .entry add(.param .u64 p, .param .u32 n)\n{\n"
	".reg .b32 %r<8>;\n.reg .b64 %rd<4>;\n.reg .pred %p<2>;\n"
	"ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %ctaid.x;\n"
	"mov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\nmad.lo.u32 %r2, %r2, %r3, %r4;\n"
	"mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd1, %rd1, %rd2;\nmov.u32 %r5, 0;\n"
	"loop:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 300;\n@%p1 bra loop;\n"
	"ld.global.u32 %r6, [%rd1];\nadd.u32 %r6, %r6, %r1;\nst.global.u32 [%rd1], %r6;\nret;\n}\n";

static CUdevice device;
static CUcontext primary;
static CUfunction add;
static CUdeviceptr memory;
static CUdevResource whole, parts[GROUPS], rest;
static unsigned n_parts;

static void launch(unsigned n, CUstream stream)
{
	void *args[] = { &memory, &n };

	CU(cuLaunchKernel(add, WORDS / 64, 1, 1, 64, 1, 1, 0, stream, args, NULL));
}

static void words_check(unsigned value)
{
	static unsigned got[WORDS];

	memset(got, 0, sizeof got);
	CU(cuMemcpyDtoH(got, memory, BYTES));
	for (int i = 0; i < WORDS; i++)
		OK(got[i] == value);
}

/* ---- resources ---- */

static void splits(void)
{
	unsigned n = 0, least, align, size;
	CUdevResource few[1];
	int sms;

	CU(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	CU(cuDeviceGetDevResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM));
	OK(whole.type == CU_DEV_RESOURCE_TYPE_SM && whole.sm.smCount == (unsigned)sms);
	least = whole.sm.minSmPartitionSize;
	align = whole.sm.smCoscheduledAlignment;
	OK(least >= 1 && align >= 1 && least <= whole.sm.smCount);

	/* How many there would be, then as many. */
	CU(cuDevSmResourceSplitByCount(NULL, &n, &whole, NULL, 0, least + 1));
	OK(n >= 1 && n <= GROUPS);
	n_parts = n;
	CU(cuDevSmResourceSplitByCount(parts, &n_parts, &whole, &rest, 0, least + 1));
	size = parts[0].sm.smCount;
	OK(n_parts == n && size >= least + 1 && size % align == 0);
	for (unsigned i = 0; i < n; i++)
		OK(parts[i].type == CU_DEV_RESOURCE_TYPE_SM && parts[i].sm.smCount == size);
	OK(rest.type ==
		(n * size < (unsigned)sms ? CU_DEV_RESOURCE_TYPE_SM
					  : CU_DEV_RESOURCE_TYPE_INVALID));
	OK(rest.type == CU_DEV_RESOURCE_TYPE_INVALID || rest.sm.smCount == sms - n * size);

	/* Room for one: the others stay in the rest. */
	n = 1;
	CU(cuDevSmResourceSplitByCount(few, &n, &whole, &rest, 0, least));
	OK(n == 1 && few[0].sm.smCount >= least && few[0].sm.smCount + rest.sm.smCount == sms);
	n = 1;
	CU(cuDevSmResourceSplitByCount(
		few, &n, &whole, NULL, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, 0));
	OK(n == 1 && few[0].sm.smCount >= 1 && few[0].sm.smCount <= least);

	EXPECT(CUDA_ERROR_INVALID_DEVICE,
		cuDeviceGetDevResource(-1, &rest, CU_DEV_RESOURCE_TYPE_SM));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuDeviceGetDevResource(device, NULL, CU_DEV_RESOURCE_TYPE_SM));
	EXPECT(CUDA_ERROR_INVALID_RESOURCE_TYPE,
		cuDeviceGetDevResource(device, &rest, CU_DEV_RESOURCE_TYPE_INVALID));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuDevSmResourceSplitByCount(NULL, NULL, &whole, NULL, 0, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(NULL, &n, NULL, NULL, 0, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuDevSmResourceSplitByCount(NULL, &n, &whole, NULL, 0x40, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuDevSmResourceSplitByCount(NULL, &n, &whole, NULL, 0, (unsigned)sms + 1));
	n = 0;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(few, &n, &whole, NULL, 0, 1));
	n = 1;
	EXPECT(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
		cuDevSmResourceSplitByCount(few, &n, &parts[0], NULL, 0, 1));
	memset(few, 0, sizeof few);
	EXPECT(CUDA_ERROR_INVALID_RESOURCE_TYPE,
		cuDevSmResourceSplitByCount(NULL, &n, few, NULL, 0, 1));
	few[0].type = CU_DEV_RESOURCE_TYPE_SM; /* not made by these calls */
	EXPECT(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
		cuDevSmResourceSplitByCount(NULL, &n, few, NULL, 0, 1));
}

static void descriptors(void)
{
	CUdevResource bad[2] = { parts[0], parts[0] }, other[GROUPS];
	CUdevResourceDesc desc, again;
	unsigned n = n_parts;

	CU(cuDevResourceGenerateDesc(&desc, parts, 1));
	CU(cuDevResourceGenerateDesc(&again, &whole, 1));
	OK(desc && again && desc != again);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(NULL, parts, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(&desc, NULL, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(&desc, parts, 0));
	EXPECT(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&desc, bad, 2));
	/* Of another split. */
	CU(cuDevSmResourceSplitByCount(
		other, &n, &whole, NULL, 0, whole.sm.minSmPartitionSize + 1));
	bad[1] = other[0];
	EXPECT(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&desc, bad, 2));
	bad[1] = whole;
	EXPECT(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&desc, bad, 2));
	memset(bad, 0, sizeof bad);
	EXPECT(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDevResourceGenerateDesc(&desc, bad, 1));
}

static CUgreenCtx green_new(CUdevResource *resources, unsigned n)
{
	CUdevResourceDesc desc;
	CUgreenCtx green = NULL;

	CU(cuDevResourceGenerateDesc(&desc, resources, n));
	CU(cuGreenCtxCreate(&green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
	return green;
}

/* ---- green contexts ---- */

static void resources_of(CUgreenCtx green, unsigned sms)
{
	CUdevResource resource, halves[2];
	unsigned n = 2;
	CUgreenCtx inner;
	CUcontext ctx;

	CU(cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_SM));
	OK(resource.sm.smCount == sms);
	CU(cuCtxFromGreenCtx(&ctx, green));
	CU(cuCtxGetDevResource(ctx, &resource, CU_DEV_RESOURCE_TYPE_SM));
	OK(resource.sm.smCount == sms);
	CU(cuCtxGetDevResource(primary, &resource, CU_DEV_RESOURCE_TYPE_SM));
	OK(resource.sm.smCount == whole.sm.smCount);
	/* What belongs to a green context can be split again. */
	CU(cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_SM));
	CU(cuDevSmResourceSplitByCount(
		halves, &n, &resource, NULL, 0, resource.sm.minSmPartitionSize));
	OK(n >= 1 && halves[0].sm.smCount <= sms);
	inner = green_new(halves, 1);
	CU(cuGreenCtxGetDevResource(inner, &resource, CU_DEV_RESOURCE_TYPE_SM));
	OK(resource.sm.smCount == halves[0].sm.smCount);
	CU(cuGreenCtxDestroy(inner));
	EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED,
		cuGreenCtxGetDevResource(inner, &resource, CU_DEV_RESOURCE_TYPE_SM));
	EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGreenCtxDestroy(inner));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxDestroy(NULL));
}

/* Work in the streams of two green contexts on the same memory, ordered by an event. */
static void streams(CUgreenCtx first, CUgreenCtx second)
{
	CUstream one, two;
	CUgreenCtx of = NULL;
	CUcontext ctx, view;
	CUevent event;
	unsigned flags = 0;
	int priority = 1;

	CU(cuGreenCtxStreamCreate(&one, first, CU_STREAM_NON_BLOCKING, 0));
	CU(cuGreenCtxStreamCreate(&two, second, CU_STREAM_NON_BLOCKING, -2));
	CU(cuStreamGetPriority(two, &priority));
	CU(cuStreamGetFlags(two, &flags));
	OK(priority == -2 && flags == CU_STREAM_NON_BLOCKING);
	CU(cuStreamGetGreenCtx(one, &of));
	OK(of == first);
	CU(cuStreamGetCtx_v2(two, &ctx, &of));
	OK(ctx == primary && of == second);
	CU(cuStreamGetCtx(two, &ctx));
	CU(cuCtxFromGreenCtx(&view, second));
	OK(ctx == view && ctx != primary);
	CU(cuStreamGetGreenCtx(NULL, &of));
	OK(of == NULL);

	CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CU(cuMemsetD32(memory, 0, WORDS));
	CU(cuCtxSynchronize());
	launch(1, one);
	CU(cuEventRecord(event, one));
	CU(cuStreamWaitEvent(two, event, 0));
	launch(10, two);
	CU(cuStreamSynchronize(two));
	words_check(11);
	CU(cuEventDestroy(event));
	CU(cuStreamDestroy(one));
	CU(cuStreamDestroy(two));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(one));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(&one, first, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuGreenCtxStreamCreate(NULL, first, CU_STREAM_NON_BLOCKING, 0));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT,
		cuGreenCtxStreamCreate(&one, NULL, CU_STREAM_NON_BLOCKING, 0));
}

/* The green context is current: its default stream, and streams that wait for it. */
static void current(CUgreenCtx green)
{
	CUexecAffinityParam affinity = { .type = CU_EXEC_AFFINITY_TYPE_SM_COUNT };
	unsigned long long id = 0, same = 1;
	CUstream blocking, apart;
	CUcontext ctx, top;
	CUdeviceptr p;
	CUgreenCtx of = NULL;
	CUdevice on = -1;

	CU(cuCtxFromGreenCtx(&ctx, green));
	CU(cuCtxPushCurrent(ctx));
	CU(cuCtxGetCurrent(&top));
	CU(cuCtxGetDevice(&on));
	OK(top == ctx && on == device);
	CU(cuGreenCtxGetId(NULL, &id));
	CU(cuGreenCtxGetId(green, &same));
	OK(id == same && id != 0);
	CU(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
	OK(affinity.param.smCount.val == parts[0].sm.smCount);
	CU(cuStreamGetGreenCtx(NULL, &of));
	OK(of == green);
	CU(cuStreamGetCtx_v2(CU_STREAM_LEGACY, &top, &of));
	OK(top == primary && of == green);
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamGetCtx_v2(CU_STREAM_PER_THREAD, &top, &of));
	/* Memory and modules are those of the primary context. */
	CU(cuMemAlloc(&p, 64));
	CU(cuMemFree(p));
	CU(cuMemsetD32(memory, 5, WORDS));
	launch(2, NULL);
	CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	launch(3, blocking);
	launch(4, NULL);
	CU(cuStreamSynchronize(NULL));
	words_check(14);
	CU(cuStreamGetGreenCtx(blocking, &of));
	OK(of == green);
	CU(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
	CU(cuStreamGetGreenCtx(apart, &of));
	OK(of == green);
	launch(6, apart);
	CU(cuStreamSynchronize(apart));
	words_check(20);
	CU(cuStreamDestroy(blocking));
	launch(1, NULL); /* the default stream is still there */
	CU(cuCtxSynchronize());
	words_check(21);
	CU(cuStreamDestroy(apart));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(ctx));
	CU(cuCtxPopCurrent(&top));
	OK(top == ctx);
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxGetId(NULL, &id));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGreenCtxGetId(green, NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxFromGreenCtx(NULL, green));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxFromGreenCtx(&ctx, NULL));
}

/* ---- events for contexts ---- */

static void context_events(CUgreenCtx green)
{
	CUstream inside, outside, later, green_later;
	CUcontext view, second;
	CUevent all, part;

	CU(cuGreenCtxStreamCreate(&inside, green, CU_STREAM_NON_BLOCKING, 0));
	CU(cuStreamCreate(&outside, CU_STREAM_NON_BLOCKING));
	CU(cuEventCreate(&all, CU_EVENT_DISABLE_TIMING));
	CU(cuEventCreate(&part, CU_EVENT_DISABLE_TIMING));
	CU(cuMemsetD32(memory, 0, WORDS));
	CU(cuCtxSynchronize());
	/* One after the other in four streams, only by events for contexts. */
	launch(1, inside);
	CU(cuGreenCtxRecordEvent(green, part));
	CU(cuCtxWaitEvent(primary, part));
	launch(2, outside);
	CU(cuCtxRecordEvent(primary, all));
	CU(cuGreenCtxWaitEvent(green, all));
	launch(4, inside);
	CU(cuCtxFromGreenCtx(&view, green));
	CU(cuCtxRecordEvent(view, part));
	CU(cuCtxWaitEvent(view, part));
	CU(cuCtxWaitEvent(primary, part));
	/* Streams that are made later wait, too. */
	CU(cuStreamCreate(&later, CU_STREAM_NON_BLOCKING));
	launch(8, later);
	CU(cuCtxRecordEvent(NULL, all));
	CU(cuGreenCtxWaitEvent(green, all));
	CU(cuGreenCtxStreamCreate(&green_later, green, CU_STREAM_NON_BLOCKING, 0));
	launch(16, green_later);
	CU(cuCtxRecordEvent(primary, all));
	CU(cuEventSynchronize(all));
	OK(cuStreamQuery(inside) == CUDA_SUCCESS && cuStreamQuery(outside) == CUDA_SUCCESS &&
		cuStreamQuery(later) == CUDA_SUCCESS && cuStreamQuery(green_later) == CUDA_SUCCESS);
	words_check(31);

	CU(cuCtxCreate(&second, NULL, 0, device));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(second, all)); /* of another context */
	CU(cuCtxWaitEvent(second, all));
	CU(cuCtxDestroy(second));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxRecordEvent(second, all));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxWaitEvent(second, all));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxRecordEvent(NULL, all));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxWaitEvent(NULL, all));
	CU(cuStreamDestroy(inside));
	CU(cuStreamDestroy(outside));
	CU(cuStreamDestroy(later));
	CU(cuStreamDestroy(green_later));
	CU(cuEventDestroy(part));
	CU(cuEventDestroy(all));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(primary, all));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuCtxWaitEvent(primary, all));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuGreenCtxRecordEvent(green, all));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuGreenCtxWaitEvent(green, all));
}

/* A green context ends: what is left of it. */
static void ends(void)
{
	CUgreenCtx green = green_new(parts, 1), none = NULL;
	CUexecAffinityParam affinity = { .type = CU_EXEC_AFFINITY_TYPE_SM_COUNT };
	CUctxCreateParams create = { .execAffinityParams = &affinity, .numExecAffinityParams = 1 };
	CUdevResourceDesc desc;
	CUcontext view, top;
	CUstream stream;
	CUdeviceptr p;

	CU(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
	CU(cuMemsetD32(memory, 1, WORDS));
	CU(cuCtxSynchronize());
	launch(1, stream);
	CU(cuStreamSynchronize(stream));
	CU(cuCtxFromGreenCtx(&view, green));
	CU(cuCtxPushCurrent(view));
	CU(cuGreenCtxDestroy(green));
	EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&p, 16));
	CU(cuCtxPopCurrent(&top));
	OK(top == view);
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(view));
	EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamQuery(stream));
	EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamDestroy(stream));
	EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxFromGreenCtx(&view, green));
	words_check(2);

	CU(cuDevResourceGenerateDesc(&desc, parts, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(&none, desc, device, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuGreenCtxCreate(NULL, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuGreenCtxCreate(&none, NULL, device, CU_GREEN_CTX_DEFAULT_STREAM));
	EXPECT(CUDA_ERROR_INVALID_DEVICE,
		cuGreenCtxCreate(&none, desc, -1, CU_GREEN_CTX_DEFAULT_STREAM));
	EXPECT(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
		cuCtxCreate_v3(&view, &affinity, 1, 0, device));
	EXPECT(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxCreate(&view, &create, 0, device));
	create.execAffinityParams = NULL;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(&view, &create, 0, device));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v3(&view, NULL, 1, 0, device));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v3(&view, &affinity, -1, 0, device));
}

int main(void)
{
	CUgreenCtx first, second, all;
	CUmodule module;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&primary, device));
	CU(cuCtxPushCurrent(primary));
	CU(cuModuleLoadData(&module, SOURCE));
	CU(cuModuleGetFunction(&add, module, "add"));
	CU(cuMemAlloc(&memory, BYTES));
	splits();
	descriptors();
	first = green_new(parts, 1);
	second = green_new(&parts[n_parts - 1], 1);
	all = green_new(parts, n_parts);
	resources_of(first, parts[0].sm.smCount);
	resources_of(all, n_parts * parts[0].sm.smCount);
	streams(first, second);
	current(first);
	context_events(second);
	ends();
	CU(cuGreenCtxDestroy(first));
	CU(cuGreenCtxDestroy(all));
	/* The last one ends with the primary context. */
	CU(cuDevicePrimaryCtxReset(device));
	EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGreenCtxDestroy(second));
	CU(cuDevicePrimaryCtxRelease(device));
	return verdict("driver_green");
}
