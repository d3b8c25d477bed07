/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by the tests of the software device's driver API: loads the library by dlopen and its
 * calls by name; a module with small kernels; and gates that block a stream until the test opens
 * them. Each program takes the library as first argument, then names of cases.
 */
#ifndef TEST_SOFTAPI_H
#define TEST_SOFTAPI_H

#include <dlfcn.h>
#include <semaphore.h>

#include "base/cuda_types.h"
#include "protocol/obd_locals.h"
#include "protocol/obf_calls.h"
#include "tests/test.h"

static const char *library;
static void *handle;

static inline void *call_find(const char *name)
{
	void *p = dlsym(handle, name);

	if (!p) {
		fprintf(stderr, "%s is not exported\n", name);
		exit(1);
	}
	return p;
}

/*
 * CALL(cuMemMap)(…) calls a function of the software device, FRONT(cuInit)(0) one that the front
 * end answers. Types come from the generated prototypes.
 */
#define FRONT(name) ((__typeof__(&obf_##name))call_find(#name))
#define CALL(name)  ((__typeof__(&obd_##name))call_find(#name))
/*
 * A blocking call without a stream argument: the implementation has one parameter more than the
 * exported function.
 */
typedef CUresult (*copy_htod_fn)(CUdeviceptr, const void *, size_t);
typedef CUresult (*copy_dtoh_fn)(void *, CUdeviceptr, size_t);
typedef CUresult (*copy_dtod_fn)(CUdeviceptr, CUdeviceptr, size_t);
typedef CUresult (*copy_peer_fn)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t);
typedef CUresult (*copy_2d_fn)(const CUDA_MEMCPY2D *);
typedef CUresult (*set8_fn)(CUdeviceptr, unsigned char, size_t);
typedef CUresult (*set16_fn)(CUdeviceptr, unsigned short, size_t);
typedef CUresult (*set32_fn)(CUdeviceptr, unsigned, size_t);
typedef CUresult (*set2d32_fn)(CUdeviceptr, size_t, unsigned, size_t, size_t);
#define HTOD ((copy_htod_fn)call_find("cuMemcpyHtoD_v2"))
#define DTOH ((copy_dtoh_fn)call_find("cuMemcpyDtoH_v2"))
#define DTOD ((copy_dtod_fn)call_find("cuMemcpyDtoD_v2"))

#define OK(call) CHECK_INT(call, CUDA_SUCCESS)

static const char *const kernels =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .u32 counter = 7;\n"
	/* *p = v */
	".visible .entry store(.param .u64 p, .param .u64 v)\n"
	"{\n\t.reg .u64 a;\n\t.reg .u32 b;\n\t.reg .u64 c;\n"
	"\tld.param.u64 a, [p];\n\tld.param.u64 c, [v];\n\tcvt.u32.u64 b, c;\n\tst.global.u32 [a], "
	"b;\n\tret;\n}\n"
	/* *p += v, by one thread */
	".visible .entry add(.param .u64 p, .param .u64 v)\n"
	"{\n\t.reg .u64 a;\n\t.reg .u32 b, d;\n\t.reg .u64 c;\n"
	"\tld.param.u64 a, [p];\n\tld.param.u64 c, [v];\n\tcvt.u32.u64 b, c;\n\tld.global.u32 d, "
	"[a];\n\tadd.u32 d, d, b;\n"
	"\tst.global.u32 [a], d;\n\tret;\n}\n"
	/* runs for ms milliseconds */
	".visible .entry spin(.param .u64 ms)\n"
	"{\n\t.reg .u64 t, e, n;\n\t.reg .pred q;\n"
	"\tld.param.u64 n, [ms];\n\tmul.lo.u64 n, n, 1000000;\n\tmov.u64 e, "
	"%globaltimer;\n\tadd.u64 e, e, n;\n"
	"again:\n\tmov.u64 t, %globaltimer;\n\tsetp.lt.u64 q, t, e;\n\t@q bra again;\n\tret;\n}\n"
	/* votes with a member mask that does not contain the calling SIMD lane */
	".visible .entry outside(.param .u64 p, .param .u64 v)\n"
	"{\n\t.reg .u64 a;\n\t.reg .u32 b, m;\n\t.reg .pred q;\n"
	"\tld.param.u64 a, [p];\n\tmov.u32 m, %lanemask_lt;\n\tsetp.eq.u32 q, m, "
	"m;\n\tvote.sync.ballot.b32 b, q, m;\n\tbar.sync 0;\n"
	"\tst.global.u32 [a], b;\n\tret;\n}\n"
	/* accesses an address that is not allocated */
	".visible .entry fault()\n"
	"{\n\t.reg .u64 a;\n\tmov.u64 a, 4096;\n\tst.global.u32 [a], 1;\n\tret;\n}\n";

static CUcontext context;
static CUmodule module;

/*
 * Opens the library, which the first argument or OUTBOARD_TEST_LIBCUDA names, and runs the cases.
 * No call is made before: each case initialises the driver in a process of its own.
 */
static inline int library_main(int argc, char **argv)
{
	library = argc > 1 ? argv[1] : getenv("OUTBOARD_TEST_LIBCUDA");
	handle = library ? dlopen(library, RTLD_NOW) : NULL;
	if (!handle) {
		fprintf(stderr, "skipped: no library (%s)\n",
			library ? dlerror() : "give its path");
		return TEST_SKIP_EXIT;
	}
	if (!strstr(library, "softdevice"))
		test_fds_allowed = 4096; /* NVIDIA's driver keeps some open */
	argv[argc > 1] = argv[0];
	return test_main(argc - (argc > 1), argv + (argc > 1));
}

/* Calls cuInit and makes device 0's primary context current. */
static inline void device_open(void)
{
	OK(FRONT(cuInit)(0));
	OK(FRONT(cuDevicePrimaryCtxRetain)(&context, 0));
	OK(FRONT(cuCtxSetCurrent)(context));
}

#define DEVICE_TEST_AFTER(name, ...)     \
	static void device_##name(void); \
	TEST(name)                       \
	{                                \
		device_open();           \
		__VA_ARGS__;             \
		device_##name();         \
		device_close();          \
	}                                \
	static void device_##name(void)

/* A case with device 0's primary context current, and with the kernels above or without. */
#define DEVICE_TEST(name) DEVICE_TEST_AFTER(name, module_open())
#define BARE_TEST(name)   DEVICE_TEST_AFTER(name, (void)0)

static inline CUfunction kernel_get(const char *name)
{
	CUfunction f = NULL;

	OK(FRONT(cuModuleGetFunction)(&f, module, name));
	return f;
}

static inline void device_close(void)
{
	OK(FRONT(cuDevicePrimaryCtxRelease_v2)(0));
}

/*
 * Loads all kernels now. A driver that loads a kernel when it is first used may wait for the
 * device, which would hang behind a closed gate.
 */
static inline void module_open(void)
{
	OK(FRONT(cuModuleLoadData)(&module, kernels));
	kernel_get("store");
	kernel_get("add");
	kernel_get("spin");
	kernel_get("fault");
}

static inline CUresult launch(const char *name, CUstream stream, uint64_t a, uint64_t b)
{
	void *params[] = { &a, &b };

	return FRONT(cuLaunchKernel)(kernel_get(name), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static inline CUdeviceptr device_new(size_t size)
{
	CUdeviceptr p = 0;

	OK(FRONT(cuMemAlloc_v2)(&p, size));
	CHECK(p != 0 && p % 256 == 0);
	return p;
}

static inline uint32_t device_u32(CUdeviceptr p)
{
	uint32_t value = 0xdeadbeef;

	OK(DTOH(&value, p, sizeof value));
	return value;
}

/*
 * Whether this is the software device, which alone has this private table. The software device
 * detects destroyed handles and runs host functions of different streams at the same time. NVIDIA's
 * driver dereferences a handle without a check and has one thread for all host functions.
 */
static inline bool soft(void)
{
	const void *table = NULL;
	CUuuid id;

	memcpy(id.bytes, "outboard-softdev", sizeof id.bytes);
	return FRONT(cuGetExportTable)(&table, &id) == CUDA_SUCCESS;
}

/* A stream blocks at its gate until gate_open. */
struct gate {
	sem_t entered, open;
};

static inline void gate_pass(void *user)
{
	struct gate *gate = user;

	sem_post(&gate->entered);
	sem_wait(&gate->open);
}

static inline void gate_set(struct gate *gate, CUstream stream)
{
	sem_init(&gate->entered, 0, 0);
	sem_init(&gate->open, 0, 0);
	OK(FRONT(cuLaunchHostFunc)(stream, gate_pass, gate));
}

static inline void gate_open(struct gate *gate)
{
	sem_post(&gate->open);
}

#endif
