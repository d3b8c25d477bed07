/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that uses the devices of several servers, of which the first and the last are of
 * different ones. several.py starts it.
 *
 *     several list | copies | order | threads | refused | lost | speed
 *
 * list prints a line for each device. lost waits for a line on stdin between its steps. speed
 * measures copies between the servers beside copies by hand; no test uses it. The others print what
 * is wrong. The exit code is 0 if all is right.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "tests/e2e/calls.h"

#define LARGE   (9u << 20) /* bytes: several parts of a copy between servers */
#define ROUNDS  3000000u   /* of the kernel, which takes long */
#define THREADS 6u

static const char ptx[] = ".version 8.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry busy(.param .u64 out, .param .u32 rounds)\n"
			  "{\n.reg .pred %p;\n.reg .u32 %r<4>;\n.reg .u64 %a;\n"
			  "ld.param.u64 %a, [out];\nld.param.u32 %r1, [rounds];\nmov.u32 %r2, 1;\n"
			  "AGAIN:\nmad.lo.u32 %r2, %r2, 1664525, 1013904223;\n"
			  "sub.u32 %r1, %r1, 1;\nsetp.ne.u32 %p, %r1, 0;\n@%p bra AGAIN;\n"
			  "st.global.u32 [%a], %r2;\nret;\n}\n";

#define CALLS(X)                                                                                   \
	X(cuInit, unsigned)                                                                        \
	X(cuDeviceGetCount, int *)                                                                 \
	X(cuDeviceGetPCIBusId, char *, int, CUdevice)                                              \
	X(cuDeviceGetByPCIBusId, CUdevice *, const char *)                                         \
	X(cuDeviceGetUuid_v2, CUuuid *, CUdevice)                                                  \
	X(cuDeviceGetAttribute, int *, CUdevice_attribute, CUdevice)                               \
	X(cuDeviceCanAccessPeer, int *, CUdevice, CUdevice)                                        \
	X(cuDeviceGetP2PAttribute, int *, CUdevice_P2PAttribute, CUdevice, CUdevice)               \
	X(cuCtxEnablePeerAccess, CUcontext, unsigned)                                              \
	X(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)                                         \
	X(cuCtxCreate_v2, CUcontext *, unsigned, CUdevice)                                         \
	X(cuCtxDestroy_v2, CUcontext)                                                              \
	X(cuCtxSetCurrent, CUcontext)                                                              \
	X(cuCtxGetDevice, CUdevice *)                                                              \
	X(cuCtxSynchronize, void)                                                                  \
	X(cuModuleLoadData, CUmodule *, const void *)                                              \
	X(cuModuleGetFunction, CUfunction *, CUmodule, const char *)                               \
	X(cuMemAlloc_v2, CUdeviceptr *, size_t)                                                    \
	X(cuMemFree_v2, CUdeviceptr)                                                               \
	X(cuMemHostAlloc, void **, size_t, unsigned)                                               \
	X(cuMemAllocManaged, CUdeviceptr *, size_t, unsigned)                                      \
	X(cuMemcpyHtoD_v2, CUdeviceptr, const void *, size_t)                                      \
	X(cuMemcpyDtoH_v2, void *, CUdeviceptr, size_t)                                            \
	X(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, size_t, CUstream)                       \
	X(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, size_t, CUstream)                             \
	X(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, size_t)                                       \
	X(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, size_t, CUstream)                        \
	X(cuMemcpy, CUdeviceptr, CUdeviceptr, size_t)                                              \
	X(cuMemcpyPeer, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t)                    \
	X(cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)     \
	X(cuMemcpy3DPeer, const CUDA_MEMCPY3D_PEER *)                                              \
	X(cuMemcpyBatchAsync_v2, CUdeviceptr *, CUdeviceptr *, size_t *, size_t,                   \
		CUmemcpyAttributes *, size_t *, size_t, CUstream)                                  \
	X(cuMemsetD8_v2, CUdeviceptr, unsigned char, size_t)                                       \
	X(cuMemGetAllocationGranularity, size_t *, const CUmemAllocationProp *,                    \
		CUmemAllocationGranularity_flags)                                                  \
	X(cuMemCreate, CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,        \
		unsigned long long)                                                                \
	X(cuMemRelease, CUmemGenericAllocationHandle)                                              \
	X(cuMemAddressReserve, CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)     \
	X(cuMemMap, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) \
	X(cuMemUnmap, CUdeviceptr, size_t)                                                         \
	X(cuMemSetAccess, CUdeviceptr, size_t, const CUmemAccessDesc *, size_t)                    \
	X(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,  \
		unsigned, CUstream, void **, void **)                                              \
	X(cuStreamCreate, CUstream *, unsigned)                                                    \
	X(cuStreamWaitEvent, CUstream, CUevent, unsigned)                                          \
	X(cuStreamQuery, CUstream)                                                                 \
	X(cuStreamSynchronize, CUstream)                                                           \
	X(cuStreamDestroy_v2, CUstream)                                                            \
	X(cuStreamWriteValue32_v2, CUstream, CUdeviceptr, cuuint32_t, unsigned)                    \
	X(cuEventCreate, CUevent *, unsigned)                                                      \
	X(cuEventRecord, CUevent, CUstream)                                                        \
	X(cuEventQuery, CUevent)                                                                   \
	X(cuEventSynchronize, CUevent)                                                             \
	X(cuEventElapsedTime, float *, CUevent, CUevent)                                           \
	X(cuGraphAddKernelNode_v2, CUgraphNode *, CUgraph, const CUgraphNode *, size_t,            \
		const CUDA_KERNEL_NODE_PARAMS *)                                                   \
	X(cuGraphLaunch, CUgraphExec, CUstream)                                                    \
	X(cuGraphCreate, CUgraph *, unsigned)                                                      \
	X(cuGraphAddMemcpyNode, CUgraphNode *, CUgraph, const CUgraphNode *, size_t,               \
		const CUDA_MEMCPY3D *, CUcontext)                                                  \
	X(cuGraphInstantiateWithFlags, CUgraphExec *, CUgraph, unsigned long long)

static struct {
#define X(name, ...) CUresult (*name)(__VA_ARGS__);
	CALLS(X)
#undef X
} cu;

#define NEED(call) need(cu.call, #call)

static int wrong;

#define EXPECT(condition)                                                        \
	do {                                                                     \
		if (!(condition)) {                                              \
			printf("line %d: not true: %s\n", __LINE__, #condition); \
			wrong++;                                                 \
		}                                                                \
	} while (0)
#define EXPECT_CODE(call, code)                                                              \
	do {                                                                                 \
		CUresult result_ = cu.call;                                                  \
		if (result_ != CUDA_##code) {                                                \
			printf("line %d: %s is %d, not %s\n", __LINE__, #call, (int)result_, \
				#code);                                                      \
			wrong++;                                                             \
		}                                                                            \
	} while (0)

/* One device of the first server and one of the last. */
static struct side {
	CUdevice device;
	CUcontext context;
	CUdeviceptr memory; /* LARGE bytes */
	CUfunction busy;
	CUstream stream;
} sides[2];
static int n_devices;
static uint8_t *pattern, *back;

static void current(unsigned side)
{
	NEED(cuCtxSetCurrent(sides[side].context));
}

static void pattern_set(unsigned seed)
{
	for (size_t i = 0; i < LARGE; i++)
		pattern[i] = (uint8_t)(i * 31 + (i >> 9) + seed);
}

/* The first `size` bytes of the memory are those of the pattern. */
static bool holds(unsigned side, size_t size)
{
	memset(back, 0xee, LARGE);
	current(side);
	NEED(cuMemcpyDtoH_v2(back, sides[side].memory, size));
	return memcmp(back, pattern, size) == 0;
}

static void prepare(void)
{
	void *library = library_open();

#define X(name, ...) *(void **)&cu.name = dlsym(library, #name);
	CALLS(X)
#undef X
	need(cu.cuInit(0), "init");
	NEED(cuDeviceGetCount(&n_devices));
	pattern = malloc(LARGE);
	back = malloc(LARGE);
	if (!pattern || !back)
		exit(2);
}

static void sides_open(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct side *side = &sides[i];
		CUmodule module;

		side->device = i ? n_devices - 1 : 0;
		NEED(cuDevicePrimaryCtxRetain(&side->context, side->device));
		current(i);
		NEED(cuMemAlloc_v2(&side->memory, LARGE));
		NEED(cuModuleLoadData(&module, ptx));
		NEED(cuModuleGetFunction(&side->busy, module, "busy"));
		NEED(cuStreamCreate(&side->stream, 1));
	}
}

/* ---- list ---- */

static void list(void)
{
	for (int i = 0; i < n_devices; i++) {
		char pci[32];
		CUuuid uuid;
		CUdevice found;

		NEED(cuDeviceGetPCIBusId(pci, sizeof pci, i));
		NEED(cuDeviceGetByPCIBusId(&found, pci));
		EXPECT(found == i);
		NEED(cuDeviceGetUuid_v2(&uuid, i));
		printf("%d %s ", i, pci);
		for (unsigned k = 0; k < sizeof uuid.bytes; k++)
			printf("%02x", (uint8_t)uuid.bytes[k]);
		for (int peer = 0; peer < n_devices; peer++) {
			int can = -1;

			NEED(cuDeviceCanAccessPeer(&can, i, peer));
			printf(" %d", can);
		}
		printf("\n");
	}
}

static void peers(void)
{
	int value = -1;

	NEED(cuDeviceGetP2PAttribute(
		&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, sides[1].device));
	EXPECT(value == 0);
	current(0);
	EXPECT_CODE(cuCtxEnablePeerAccess(sides[1].context, 0), ERROR_PEER_ACCESS_UNSUPPORTED);
}

/* ---- copies ---- */

/* Fills one side with a new pattern, and the other one with something else. */
static void refill(unsigned from)
{
	static unsigned seed;

	pattern_set(++seed);
	current(from);
	NEED(cuMemcpyHtoD_v2(sides[from].memory, pattern, LARGE));
	current(!from);
	NEED(cuMemsetD8_v2(sides[!from].memory, 0x55, LARGE));
}

static void copies_row(unsigned from, size_t size)
{
	const struct side *src = &sides[from], *dst = &sides[!from];

	refill(from);
	NEED(cuMemcpyPeer(dst->memory, dst->context, src->memory, src->context, size));
	EXPECT(holds(!from, size));
	for (unsigned at = 0; at < 2; at++) {
		refill(from);
		current(at);
		NEED(cuMemcpyDtoD_v2(dst->memory, src->memory, size));
		EXPECT(holds(!from, size));
		refill(from);
		current(at);
		NEED(cuMemcpy(dst->memory, src->memory, size));
		EXPECT(holds(!from, size));
		refill(from);
		current(at);
		NEED(cuMemcpyDtoDAsync_v2(dst->memory, src->memory, size, sides[at].stream));
		NEED(cuStreamSynchronize(sides[at].stream));
		EXPECT(holds(!from, size));
		refill(from);
		current(at);
		NEED(cuMemcpyPeerAsync(dst->memory, dst->context, src->memory, src->context, size,
			sides[at].stream));
		NEED(cuStreamSynchronize(sides[at].stream));
		EXPECT(holds(!from, size));
	}
}

/* Calls about one side's memory while the other side's context is current. */
static void copies_elsewhere(unsigned side, size_t size)
{
	CUdeviceptr memory = sides[side].memory;

	pattern_set(77);
	current(!side);
	NEED(cuMemcpyHtoD_v2(memory, pattern, size));
	EXPECT(holds(side, size));
	pattern_set(78);
	current(!side);
	NEED(cuMemcpyHtoDAsync_v2(memory, pattern, size, sides[!side].stream));
	memset(back, 0, size);
	NEED(cuMemcpyDtoHAsync_v2(back, memory, size, sides[!side].stream));
	NEED(cuStreamSynchronize(sides[!side].stream));
	EXPECT(memcmp(back, pattern, size) == 0);
	NEED(cuMemsetD8_v2(memory, 9, size));
	memset(pattern, 9, size);
	EXPECT(holds(side, size));
}

/* A box of a pitched array of rows to another place of another one. */
static void copies_box(unsigned from, size_t width, size_t height, size_t depth)
{
	const size_t pitch = width + 13, rows = height + 2;
	CUDA_MEMCPY3D_PEER c = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = sides[from].memory,
		.srcContext = sides[from].context,
		.srcPitch = pitch,
		.srcHeight = rows,
		.srcXInBytes = 3,
		.srcY = 1,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = sides[!from].memory,
		.dstContext = sides[!from].context,
		.dstPitch = pitch + 5,
		.dstHeight = rows,
		.dstXInBytes = 2,
		.dstY = 2,
		.WidthInBytes = width,
		.Height = height,
		.Depth = depth };
	size_t all = (pitch + 5) * rows * depth, bad = 0;

	refill(from);
	NEED(cuMemcpy3DPeer(&c));
	current(!from);
	NEED(cuMemcpyDtoH_v2(back, sides[!from].memory, all));
	for (size_t i = 0; i < all; i++) {
		size_t x = i % (pitch + 5), y = i / (pitch + 5) % rows, z = i / (pitch + 5) / rows;
		bool inside = x >= 2 && x < 2 + width && y >= 2 && y < 2 + height;
		uint8_t want = inside ? pattern[(z * rows + y - 2 + 1) * pitch + x - 2 + 3] : 0x55;

		bad += back[i] != want;
	}
	EXPECT(bad == 0);
}

static void copies_batch(void)
{
	CUdeviceptr dsts[] = { sides[1].memory, sides[1].memory + 5000, sides[0].memory + 65536 };
	CUdeviceptr srcs[] = { sides[0].memory, sides[0].memory + 5000, sides[0].memory };
	size_t sizes[] = { 5000, 4000, 100 }, first = 0;
	CUmemcpyAttributes attributes = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };

	refill(0);
	current(0);
	NEED(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 3, &attributes, &first, 1, sides[0].stream));
	NEED(cuStreamSynchronize(sides[0].stream));
	EXPECT(holds(1, 9000));
}

/* Pinned memory of one side is a source and a destination of copies of both. */
static void copies_pinned(void)
{
	uint8_t *pinned;

	current(0);
	NEED(cuMemHostAlloc((void **)&pinned, LARGE, CU_MEMHOSTALLOC_PORTABLE));
	pattern_set(5);
	for (unsigned i = 0; i < 2; i++) {
		memcpy(pinned, pattern, LARGE);
		current(i);
		NEED(cuMemcpyHtoDAsync_v2(sides[i].memory, pinned, LARGE, sides[i].stream));
		NEED(cuStreamSynchronize(sides[i].stream));
		memset(pinned, 0, LARGE);
		NEED(cuMemcpyDtoHAsync_v2(pinned, sides[i].memory, LARGE, sides[i].stream));
		NEED(cuStreamSynchronize(sides[i].stream));
		EXPECT(memcmp(pinned, pattern, LARGE) == 0);
	}
}

/* Memory of cuMemCreate on one side, made and mapped while the other side is current. */
static void copies_mapped(unsigned side)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, sides[side].device } };
	CUmemAccessDesc access = { .location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemAccessDesc other = access;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	size_t size;

	current(!side);
	NEED(cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	NEED(cuMemCreate(&handle, size, &prop, 0));
	current(side); /* an address belongs to the server of the current context */
	NEED(cuMemAddressReserve(&at, size, 0, 0, 0));
	current(!side);
	NEED(cuMemMap(at, size, 0, handle, 0));
	other.location.id = sides[!side].device;
	EXPECT_CODE(cuMemSetAccess(at, size, &other, 1), ERROR_NOT_SUPPORTED);
	NEED(cuMemSetAccess(at, size, &access, 1));
	NEED(cuMemRelease(handle));
	pattern_set(60 + side);
	NEED(cuMemcpyHtoD_v2(at, pattern, 70000));
	memset(back, 0, 70000);
	NEED(cuMemcpyDtoH_v2(back, at, 70000));
	EXPECT(memcmp(back, pattern, 70000) == 0);
	NEED(cuMemUnmap(at, size));
	NEED(cuMemCreate(&handle, size, &prop, 0));
	NEED(cuMemAddressReserve(&at, size, 0, 0, 0));
	EXPECT_CODE(cuMemMap(at, size, 0, handle, 0), ERROR_NOT_SUPPORTED);
	NEED(cuMemRelease(handle));
}

static void copies(void)
{
	static const size_t sizes[] = { 1, 4096, 100001, (2u << 20) + 1, LARGE };

	for (unsigned from = 0; from < 2; from++) {
		for (size_t i = 0; i < ob_count(sizes); i++) {
			copies_row(from, sizes[i]);
			copies_elsewhere(from, sizes[i]);
		}
		copies_box(from, 100, 7, 3);
		copies_box(from, 5000, 300, 2);
		copies_box(from, (2u << 20) + 100, 2, 1);
		copies_mapped(from);
	}
	copies_batch();
	copies_pinned();
	peers();
}

/* ---- order ---- */

static uint32_t busy_result(void)
{
	uint32_t value = 1;

	for (uint32_t i = 0; i < ROUNDS; i++)
		value = value * 1664525 + 1013904223;
	return value;
}

static void launch(unsigned side)
{
	unsigned rounds = ROUNDS;
	void *params[] = { &sides[side].memory, &rounds };

	current(side);
	NEED(cuLaunchKernel(
		sides[side].busy, 1, 1, 1, 1, 1, 1, 0, sides[side].stream, params, NULL));
}

/* What a stream of one server does after its wait comes after the kernel of the other. */
static void order_event(unsigned from, uint32_t want)
{
	const struct side *src = &sides[from], *dst = &sides[!from];
	uint32_t got = 0;
	CUevent done;

	current(from);
	NEED(cuMemsetD8_v2(src->memory, 0, 4));
	NEED(cuEventCreate(&done, 0));
	launch(from);
	NEED(cuEventRecord(done, src->stream));
	current(!from);
	NEED(cuStreamWaitEvent(dst->stream, done, 0));
	NEED(cuMemcpyPeerAsync(
		dst->memory, dst->context, src->memory, src->context, 4, dst->stream));
	NEED(cuMemcpyDtoHAsync_v2(&got, dst->memory, 4, dst->stream));
	NEED(cuStreamSynchronize(dst->stream));
	EXPECT(got == want);
}

/* A copy in the stream of the kernel comes after the kernel, also to another server. */
static void order_stream(unsigned from, uint32_t want)
{
	const struct side *src = &sides[from], *dst = &sides[!from];
	uint32_t got = 0;

	launch(from);
	NEED(cuMemcpyPeerAsync(
		dst->memory, dst->context, src->memory, src->context, 4, src->stream));
	NEED(cuStreamSynchronize(src->stream));
	current(!from);
	NEED(cuMemcpyDtoH_v2(&got, dst->memory, 4));
	EXPECT(got == want);
	/* The blocking copy waits for the kernels of both contexts. */
	NEED(cuMemsetD8_v2(dst->memory, 0, 4));
	launch(from);
	current(!from);
	NEED(cuMemcpyPeer(dst->memory, dst->context, src->memory, src->context, 4));
	NEED(cuMemcpyDtoH_v2(&got, dst->memory, 4));
	EXPECT(got == want);
}

/* A graph whose nodes are in one context, and whose copies are between the servers. */
static void order_graph(unsigned at, uint32_t want)
{
	unsigned rounds = ROUNDS;
	void *params[] = { &sides[at].memory, &rounds };
	CUDA_KERNEL_NODE_PARAMS kernel = { .func = sides[at].busy,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params };
	CUDA_MEMCPY3D there = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = sides[at].memory,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = sides[!at].memory,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1 };
	CUDA_MEMCPY3D again = there;
	CUgraphNode nodes[3];
	CUgraphExec exec;
	CUgraph graph;
	uint32_t got[2] = { 0, 0 };

	again.srcDevice = sides[!at].memory;
	again.dstDevice = sides[at].memory + 4;
	current(at);
	NEED(cuMemsetD8_v2(sides[at].memory, 0, 8));
	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphAddKernelNode_v2(&nodes[0], graph, NULL, 0, &kernel));
	NEED(cuGraphAddMemcpyNode(&nodes[1], graph, &nodes[0], 1, &there, sides[at].context));
	NEED(cuGraphAddMemcpyNode(&nodes[2], graph, &nodes[1], 1, &again, sides[at].context));
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (unsigned i = 0; i < 2; i++)
		NEED(cuGraphLaunch(exec, sides[at].stream));
	NEED(cuStreamSynchronize(sides[at].stream));
	NEED(cuMemcpyDtoH_v2(got, sides[at].memory, 8));
	EXPECT(got[0] == want && got[1] == want);
}

static void order(void)
{
	uint32_t want = busy_result();
	CUevent events[2], never;
	float ms;

	for (unsigned i = 0; i < 2; i++) {
		current(i);
		NEED(cuEventCreate(&events[i], 0));
		NEED(cuEventRecord(events[i], sides[i].stream));
	}
	NEED(cuEventCreate(&never, 0));
	current(0);
	NEED(cuStreamWaitEvent(sides[0].stream, never, 0)); /* not recorded: nothing to wait for */
	NEED(cuEventSynchronize(events[0]));
	NEED(cuEventSynchronize(events[1]));
	EXPECT_CODE(cuEventElapsedTime(&ms, events[0], events[1]), ERROR_INVALID_HANDLE);
	for (unsigned i = 0; i < 2; i++) {
		order_event(i, want);
		order_stream(i, want);
		order_graph(i, want);
	}
	/* A wait for one context is none for the other. */
	launch(0);
	current(1);
	NEED(cuCtxSynchronize());
	NEED(cuStreamQuery(sides[1].stream));
	EXPECT_CODE(cuStreamQuery(sides[0].stream), ERROR_NOT_READY);
	current(0);
	NEED(cuCtxSynchronize());
	NEED(cuStreamQuery(sides[0].stream));
}

/* ---- threads ---- */

static void *thread_main(void *argument)
{
	unsigned number = (unsigned)(uintptr_t)argument;
	uint32_t got, want = busy_result();
	CUdeviceptr memory[2];
	CUstream streams[2];

	for (unsigned i = 0; i < 2; i++) {
		current(i);
		NEED(cuMemAlloc_v2(&memory[i], 4));
		NEED(cuStreamCreate(&streams[i], 1));
	}
	for (unsigned round = 0; round < 20; round++) {
		unsigned side = (number + round) % 2, rounds = ROUNDS / 1000;
		void *params[] = { &memory[side], &rounds };

		current(side);
		NEED(cuMemsetD8_v2(memory[side], 0, 4));
		NEED(cuLaunchKernel(
			sides[side].busy, 1, 1, 1, 1, 1, 1, 0, streams[side], params, NULL));
		NEED(cuStreamSynchronize(streams[side]));
		NEED(cuMemcpyDtoD_v2(memory[!side], memory[side], 4));
		current(!side);
		NEED(cuMemcpyDtoH_v2(&got, memory[!side], 4));
		if (!round)
			want = got;
		EXPECT(got == want && got);
	}
	for (unsigned i = 0; i < 2; i++)
		NEED(cuStreamDestroy_v2(streams[i])); /* of both servers, whatever is current */
	return NULL;
}

static void threads(void)
{
	pthread_t all[THREADS];

	for (unsigned round = 0; round < 3; round++) {
		for (uintptr_t i = 0; i < THREADS; i++)
			if (pthread_create(&all[i], NULL, thread_main, (void *)i))
				exit(2);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(all[i], NULL);
	}
}

/* ---- refused ---- */

/* A kernel with a name as NCCL's have: the client says that collectives do not end. */
static void refused_nccl(void)
{
	static const char code[] = ".version 8.0\n.target sm_50\n.address_size 64\n"
				   ".visible .entry ncclDevKernel_None()\n{\nret;\n}\n";
	CUfunction function;
	CUmodule module;

	NEED(cuModuleLoadData(&module, code));
	NEED(cuModuleGetFunction(&function, module, "ncclDevKernel_None"));
	NEED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	NEED(cuCtxSynchronize());
}

static void refused(void)
{
	CUdeviceptr managed;

	current(0);
	EXPECT_CODE(cuStreamWriteValue32_v2(sides[0].stream, sides[1].memory, 1, 0),
		ERROR_NOT_SUPPORTED);
	/* Managed memory is that of one server; the program and copies reach it from everywhere. */
	NEED(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	memset((void *)(uintptr_t)managed, 3, 4096);
	current(1);
	NEED(cuMemcpyDtoD_v2(sides[1].memory, managed, 4096));
	memset(pattern, 3, 4096);
	EXPECT(holds(1, 4096));
	current(1);
	NEED(cuMemsetD8_v2(sides[1].memory, 4, 4096));
	NEED(cuMemcpyDtoD_v2(managed, sides[1].memory, 4096));
	EXPECT(((uint8_t *)(uintptr_t)managed)[4095] == 4);
	refused_nccl();
}

/* ---- lost ---- */

static void told(const char *what)
{
	char line[16];

	printf("%s\n", what);
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		exit(2);
}

static void lost(void)
{
	CUcontext context;
	CUdeviceptr more;
	uint32_t got;
	int n;

	refill(0);
	told("ready");
	/* The last server has ended. */
	current(1);
	EXPECT_CODE(cuMemcpyDtoH_v2(&got, sides[1].memory, 4), ERROR_DEVICE_UNAVAILABLE);
	EXPECT_CODE(cuCtxSynchronize(), ERROR_DEVICE_UNAVAILABLE);
	EXPECT_CODE(cuMemAlloc_v2(&more, 4), ERROR_DEVICE_UNAVAILABLE);
	NEED(cuDeviceGetCount(&n));
	EXPECT(n == n_devices);
	current(0);
	EXPECT(holds(0, LARGE));
	launch(0);
	NEED(cuCtxSynchronize());
	NEED(cuMemAlloc_v2(&more, LARGE));
	EXPECT_CODE(cuMemcpyDtoD_v2(sides[1].memory, more, 4096), ERROR_DEVICE_UNAVAILABLE);
	NEED(cuMemcpyDtoD_v2(sides[0].memory, more, 4096));
	NEED(cuMemFree_v2(more));
	NEED(cuCtxCreate_v2(&context, 0, 0));
	NEED(cuCtxDestroy_v2(context));
	told("gone");
}

/* ---- speed ---- */

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void by_hand(unsigned from, size_t size)
{
	current(from);
	NEED(cuMemcpyDtoH_v2(back, sides[from].memory, size));
	current(!from);
	NEED(cuMemcpyHtoD_v2(sides[!from].memory, back, size));
	NEED(cuCtxSynchronize());
}

static void by_peer(unsigned from, size_t size)
{
	NEED(cuMemcpyPeer(sides[!from].memory, sides[!from].context, sides[from].memory,
		sides[from].context, size));
}

/* The two ways in turn; the shortest time of each. */
static void speed(void)
{
	static const size_t sizes[] = { 4096, 256u << 10, 2u << 20, LARGE };

	refill(0);
	for (size_t i = 0; i < ob_count(sizes); i++) {
		double least[2] = { 1e9, 1e9 };

		for (unsigned round = 0; round < 32; round++) {
			double began = seconds();

			(round % 2 ? by_peer : by_hand)(0, sizes[i]);
			least[round % 2] = ob_min(least[round % 2], seconds() - began);
		}
		printf("%8zu bytes: by hand %8.3f ms, cuMemcpyPeer %8.3f ms, ratio %.2f\n",
			sizes[i], least[0] * 1e3, least[1] * 1e3, least[1] / least[0]);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
		bool sides;
	} modes[] = { { "list", list, false }, { "copies", copies, true }, { "order", order, true },
		{ "threads", threads, true }, { "refused", refused, true }, { "lost", lost, true },
		{ "speed", speed, true } };

	if (argc != 2)
		return 2;
	prepare();
	for (size_t i = 0; i < ob_count(modes); i++) {
		if (strcmp(argv[1], modes[i].name) != 0)
			continue;
		if (modes[i].sides)
			sides_open();
		modes[i].run();
		printf("%s: %d wrong\n", argv[1], wrong);
		return wrong != 0;
	}
	return 2;
}
