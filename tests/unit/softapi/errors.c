/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What goes wrong and how it is told: a kernel's fault stays with its context, images that do not
 * run, limits.
 *
 * On another driver than the software device only what cuda.h promises is asserted; what it leaves
 * open is reported (SEEN), and no test fails by it.
 */
#include "tests/unit/softapi/api.h"

static bool ours;

static void errors_begin(void)
{
	device_open();
	module_open();
	ours = soft() || strstr(library, "softdevice");
}

#define ERROR_TEST(name)                 \
	static void errors_##name(void); \
	TEST(name)                       \
	{                                \
		errors_begin();          \
		errors_##name();         \
		device_close();          \
	}                                \
	static void errors_##name(void)

#define SEEN(expression, expected)                                                               \
	do {                                                                                     \
		long long seen_got = (long long)(expression), seen_here = (long long)(expected); \
		if (ours)                                                                        \
			CHECK_INT(seen_got, seen_here);                                          \
		else                                                                             \
			printf("report %d: %s is %lld, on the software device %lld\n", __LINE__, \
				#expression, seen_got, seen_here);                               \
	} while (0)

static int functions_run;
static CUresult callback_status;
static sem_t called;

static void function(void *user)
{
	(void)user;
	functions_run++;
}

static void callback(CUstream stream, CUresult status, void *user)
{
	(void)stream;
	(void)user;
	callback_status = status;
	sem_post(&called);
}

/*
 * Everything is as new in another context, and in this one when it is reset. cuda.h promises
 * neither: the process is to be ended.
 */
static void recovery(void)
{
	CUcontext second = NULL;
	CUdeviceptr p = 0;

	SEEN(FRONT(cuCtxCreate_v2)(&second, 0, 0), CUDA_SUCCESS);
	SEEN(FRONT(cuMemAlloc_v2)(&p, 4), CUDA_SUCCESS);
	SEEN(FRONT(cuMemFree_v2)(p), CUDA_SUCCESS);
	SEEN(FRONT(cuCtxDestroy_v2)(second), CUDA_SUCCESS);
	SEEN(FRONT(cuDevicePrimaryCtxReset_v2)(0), CUDA_SUCCESS);
	SEEN(FRONT(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_SUCCESS);
	SEEN(FRONT(cuCtxSetCurrent)(context), CUDA_SUCCESS);
	if (!ours && FRONT(cuMemAlloc_v2)(&p, 4) != CUDA_SUCCESS)
		return; /* it said so: nothing more can be asked of this process */
	module_open();
	p = device_new(4);
	OK(launch("store", NULL, p, 8));
	CHECK_INT(device_u32(p), 8);
	OK(FRONT(cuMemFree_v2)(p));
}

/*
 * After a fault every call returns its error. The context is not released: on another driver no
 * call works any more.
 */
TEST(sticky)
{
	CUdeviceptr p, q;
	CUstream s;
	CUevent e;
	struct gate gate;

	errors_begin();
	p = device_new(4);
	OK(FRONT(cuStreamCreate)(&s, 0));
	OK(FRONT(cuEventCreate)(&e, 0));
	sem_init(&called, 0, 0);
	gate_set(&gate, s);
	OK(launch("fault", s, 0, 0)); /* the launch itself is fine */
	OK(FRONT(cuLaunchHostFunc)(s, function, NULL));
	OK(FRONT(cuStreamAddCallback)(s, callback, NULL, 0));
	OK(FRONT(cuEventRecord)(e, s));
	OK(launch("store", s, p, 1));
	gate_open(&gate);
	CHECK_INT(FRONT(cuStreamSynchronize)(s), CUDA_ERROR_ILLEGAL_ADDRESS);
	/* Who is told early that the context has failed does not wait for what is still queued. */
	sem_wait(&called);
	CHECK_INT(functions_run, 0);
	CHECK_INT(callback_status, CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(FRONT(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(FRONT(cuMemAlloc_v2)(&q, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	SEEN(FRONT(cuMemFree_v2)(p), CUDA_ERROR_ILLEGAL_ADDRESS); /* no work for the device */
	CHECK_INT(FRONT(cuEventQuery)(e), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(FRONT(cuEventSynchronize)(e), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(FRONT(cuStreamQuery)(s), CUDA_ERROR_ILLEGAL_ADDRESS);
	recovery();
}

/*
 * A kernel that would run for ever does not hold up the end of its context. cuda.h does not say
 * whether it may: elsewhere the time is told.
 */
ERROR_TEST(endless)
{
	CUcontext second;
	CUmodule m;
	double start = waiting_now();

	OK(FRONT(cuCtxCreate_v2)(&second, 0, 0));
	m = module;
	module_open();
	/* longer than alarm() lets the test run */
	OK(launch("spin", NULL, ours ? 600000 : 3000, 0));
	OK(FRONT(cuCtxDestroy_v2)(second));
	if (!ours)
		printf("report: the end of a context with a kernel of 3 s took %.1f s\n",
			waiting_now() - start);
	module = m;
	OK(FRONT(cuCtxSetCurrent)(context));
}

ERROR_TEST(bad_ptx)
{
	static const char text[] = ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry "
				   "k()\n{\n\tfrobnicate.syntax_error r1, r2;\n\tret;\n}\n";
	CUmodule m = NULL;
	char log[512] = "";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_WALL_TIME };
	void *values[] = { log, (void *)(uintptr_t)sizeof log, NULL };
	CUjit_option unknown = (CUjit_option)999;

	CHECK_INT(FRONT(cuModuleLoadDataEx)(&m, text, 3, options, values), CUDA_ERROR_INVALID_PTX);
	CHECK(log[0] && (uintptr_t)values[1] <= sizeof log);
	SEEN(m == NULL, true);
	SEEN(strstr(log, "line ") != NULL, true);
	SEEN((uintptr_t)values[1], strlen(log));
	SEEN(FRONT(cuModuleLoadDataEx)(&m, kernels, 1, &unknown, values), CUDA_ERROR_INVALID_VALUE);
}

/*
 * The least of an ELF file that says it holds code for sm_90: what a driver meets when nothing but
 * SASS was built.
 */
ERROR_TEST(sass_only)
{
	unsigned char elf[512] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7 };
	CUmodule m = NULL;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;

	u16 = 2, memcpy(elf + 16, &u16, 2);   /* executable */
	u16 = 190, memcpy(elf + 18, &u16, 2); /* EM_CUDA */
	u32 = 130, memcpy(elf + 20, &u32, 4);
	u64 = 64, memcpy(elf + 40, &u64, 8); /* section headers */
	u32 = 90 << 16 | 90 | 0x500, memcpy(elf + 48, &u32, 4);
	u16 = 64, memcpy(elf + 52, &u16, 2);
	u16 = 56, memcpy(elf + 54, &u16, 2);
	u16 = 64, memcpy(elf + 58, &u16, 2);
	u16 = 2, memcpy(elf + 60, &u16, 2); /* two sections: none, and the names */
	u16 = 1, memcpy(elf + 62, &u16, 2);
	u32 = 3, memcpy(elf + 64 + 64 + 4, &u32, 4); /* SHT_STRTAB */
	u64 = 192, memcpy(elf + 64 + 64 + 24, &u64, 8);
	u64 = 1, memcpy(elf + 64 + 64 + 32, &u64, 8);
	/* a driver for sm_90 may call it a bad image */
	SEEN(FRONT(cuModuleLoadData)(&m, elf), CUDA_ERROR_NO_BINARY_FOR_GPU);
	SEEN(m == NULL, true);
}

ERROR_TEST(limits)
{
	size_t value = 0;
	int major = 0;

	OK(FRONT(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	OK(FRONT(cuCtxGetLimit)(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
	SEEN(value, 8 << 20);
	/* Setting is a request: a driver may round and clamp. */
	OK(FRONT(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20));
	OK(FRONT(cuCtxGetLimit)(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
	SEEN(value, 32 << 20);
	OK(FRONT(cuCtxGetLimit)(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
	SEEN(value, 1 << 20);
	OK(FRONT(cuCtxGetLimit)(&value, CU_LIMIT_STACK_SIZE));
	SEEN(value, 1024);
	OK(FRONT(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
	value = 77;
	OK(FRONT(cuCtxGetLimit)(&value, CU_LIMIT_CIG_ENABLED)); /* cuBLASLt needs the answer */
	CHECK_INT(value, 0);
	if (major >= 9) /* it applies below compute capability 9.0 only */
		CHECK_INT(FRONT(cuCtxSetLimit)(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 4),
			CUDA_ERROR_UNSUPPORTED_LIMIT);
}

ERROR_TEST(bad_launches)
{
	CUfunction f = kernel_get("store");
	uint64_t a = 0, b = 0;
	void *params[] = { &a, &b };

	/* no blocks, too many threads, too much memory: refused, cuda.h does not say with what */
	for (unsigned i = 0; i < 3; i++) {
		CUresult result = FRONT(cuLaunchKernel)(f, i != 0, 1, 1, i == 1 ? 1025 : 1, 1, 1,
			i == 2 ? 49153 : 0, NULL, params, NULL);

		CHECK(result != CUDA_SUCCESS);
		SEEN(result, CUDA_ERROR_INVALID_VALUE);
	}
	if (soft()) {
		CHECK_INT(FRONT(cuLaunchKernel)(
				  (CUfunction)0x77, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
			CUDA_ERROR_INVALID_HANDLE);
		CHECK_INT(
			FRONT(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, (CUstream)0x77, params, NULL),
			CUDA_ERROR_INVALID_HANDLE);
	}
	CHECK_INT(FRONT(cuLaunchCooperativeKernel)(f, 1000000, 1, 1, 1024, 1, 1, 0, NULL, params),
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	OK(FRONT(cuCtxSynchronize)());
}

ERROR_TEST(private_table)
{
	void (*why)(CUfunction function, char *ret, size_t size);
	int (*event_fd)(const CUipcEventHandle *handle);
	void (*event_set_fd)(CUipcEventHandle * handle, int fd);
	CUipcEventHandle shared = { { 0 } };
	const void *table = NULL;
	char text[100] = "?";
	CUfunction function;
	CUuuid id;

	if (!ours)
		TEST_SKIP("for the software device alone");
	memcpy(id.bytes, "outboard-softdev", 16);
	OK(FRONT(cuGetExportTable)(&table, &id));
	CHECK(((const uintptr_t *)table)[0] == 6 * sizeof(uintptr_t));
	CHECK_INT(((int (*const *)(void))table)[1](), 1);
	why = (void (*)(CUfunction, char *, size_t))((void (*const *)(void))table)[3];
	OK(FRONT(cuModuleGetFunction)(&function, module, "store"));
	why(function, text, sizeof text);
	CHECK(text[0] == '\0');
	event_fd = (int (*)(const CUipcEventHandle *))((void (*const *)(void))table)[4];
	event_set_fd = (void (*)(CUipcEventHandle *, int))((void (*const *)(void))table)[5];
	event_set_fd(&shared, 77);
	CHECK_INT(event_fd(&shared), 77);
}

int main(int argc, char **argv)
{
	return library_main(argc, argv);
}
