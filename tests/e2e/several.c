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
#include <time.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/e2e/several.h"

static const char ptx[] = ".version 8.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry busy(.param .u64 out, .param .u32 rounds)\n"
			  "{\n.reg .pred %p;\n.reg .u32 %r<4>;\n.reg .u64 %a;\n"
			  "ld.param.u64 %a, [out];\nld.param.u32 %r1, [rounds];\nmov.u32 %r2, 1;\n"
			  "AGAIN:\nmad.lo.u32 %r2, %r2, 1664525, 1013904223;\n"
			  "sub.u32 %r1, %r1, 1;\nsetp.ne.u32 %p, %r1, 0;\n@%p bra AGAIN;\n"
			  "st.global.u32 [%a], %r2;\nret;\n}\n";

struct several_calls cu;
int wrong;
struct side sides[2];
static int n_devices;
uint8_t *pattern, *back;

void current(unsigned side)
{
	NEED(cuCtxSetCurrent(sides[side].context));
}

void pattern_set(unsigned seed)
{
	for (size_t i = 0; i < LARGE; i++)
		pattern[i] = (uint8_t)(i * 31 + (i >> 9) + seed);
}

bool holds(unsigned side, size_t size)
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
	SEVERAL_CALLS(X)
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

void refill(unsigned from)
{
	static unsigned seed;

	pattern_set(++seed);
	current(from);
	NEED(cuMemcpyHtoD_v2(sides[from].memory, pattern, LARGE));
	current(!from);
	NEED(cuMemsetD8_v2(sides[!from].memory, 0x55, LARGE));
}

void launch(unsigned side)
{
	unsigned rounds = ROUNDS;
	void *params[] = { &sides[side].memory, &rounds };

	current(side);
	NEED(cuLaunchKernel(
		sides[side].busy, 1, 1, 1, 1, 1, 1, 0, sides[side].stream, params, NULL));
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

/* A kernel gets an address of the other server: it may, and a line says what will happen. */
static void refused_address(void)
{
	static const char code[] =
		".version 8.0\n.target sm_50\n.address_size 64\n"
		".visible .entry idle(.param .u32 n, .param .u64 p)\n{\nret;\n}\n";
	unsigned n = 0;
	void *params[] = { &n, &sides[1].memory };
	CUfunction function;
	CUmodule module;

	current(0);
	NEED(cuModuleLoadData(&module, code));
	NEED(cuModuleGetFunction(&function, module, "idle"));
	for (unsigned i = 0; i < 3; i++)
		NEED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	NEED(cuCtxSynchronize());
}

/* Two mappings of a file, as those of two ranks of NCCL in one process. */
static void refused_meeting(void)
{
	int file = memfd_create("meeting", MFD_CLOEXEC);
	CUdeviceptr address;
	void *maps[3];

	if (file < 0 || ftruncate(file, 8192) != 0)
		exit(2);
	for (unsigned i = 0; i < 3; i++) {
		maps[i] = mmap(
			NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, i == 2 ? 4096 : 0);
		if (maps[i] == MAP_FAILED)
			exit(2);
		current(i > 0);
		NEED(cuMemHostRegister_v2(maps[i], 4096, 0));
	}
	current(0);
	NEED(cuMemHostGetDevicePointer_v2(&address, maps[0], 0));
	current(1);
	EXPECT_CODE(cuMemHostGetDevicePointer_v2(&address, maps[1], 0), ERROR_NOT_SUPPORTED);
	/* another part of the file */
	NEED(cuMemHostGetDevicePointer_v2(&address, maps[2], 0));
	/* copies can use it all the same */
	NEED(cuMemcpyDtoH_v2(maps[1], sides[1].memory, 4096));
	current(0);
	NEED(cuMemHostUnregister(maps[0]));
	current(1);
	NEED(cuMemHostGetDevicePointer_v2(&address, maps[1], 0));
	for (unsigned i = 1; i < 3; i++)
		NEED(cuMemHostUnregister(maps[i]));
	close(file);
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
	refused_address();
	refused_meeting();
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
	} modes[] = { { "list", list, false }, { "copies", several_copies, true },
		{ "order", several_order, true }, { "threads", several_threads, true },
		{ "refused", refused, true }, { "lost", lost, true }, { "speed", speed, true } };

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
