/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * y = a x + y in plain C with the driver API and a kernel written in PTX. Needs no CUDA toolkit,
 * only libcuda.so.1 at run time.
 *   cc saxpy_driver.c -o saxpy_driver -I/usr/local/cuda/include -ldl    (with the toolkit's header)
 *   cc saxpy_driver.c -o saxpy_driver -I.. -ldl                         (with our header)
 */
#if __has_include(<cuda.h>)
#include <cuda.h>
#else
#include "base/cuda_types.h"
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const char KERNEL[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 length)\n"
	"{\n"
	"	.reg .pred outside;\n"
	"	.reg .b32 block, threads, i, n;\n"
	"	.reg .b64 px, py, offset;\n"
	"	.reg .f32 factor, vx, vy;\n"
	"	mov.u32 block, %ctaid.x;\n"
	"	mov.u32 threads, %ntid.x;\n"
	"	mov.u32 i, %tid.x;\n"
	"	mad.lo.u32 i, block, threads, i;\n"
	"	ld.param.u32 n, [length];\n"
	"	setp.ge.u32 outside, i, n;\n"
	"	@outside bra DONE;\n"
	"	mul.wide.u32 offset, i, 4;\n"
	"	ld.param.u64 px, [x];\n"
	"	ld.param.u64 py, [y];\n"
	"	cvta.to.global.u64 px, px;\n"
	"	cvta.to.global.u64 py, py;\n"
	"	add.u64 px, px, offset;\n"
	"	add.u64 py, py, offset;\n"
	"	ld.global.f32 vx, [px];\n"
	"	ld.global.f32 vy, [py];\n"
	"	ld.param.f32 factor, [a];\n"
	"	fma.rn.f32 vy, factor, vx, vy;\n"
	"	st.global.f32 [py], vy;\n"
	"DONE:\n"
	"	ret;\n"
	"}\n";

/* The calls of this program, found by name. The numbers are the versions of their ABI. */
static struct {
	CUresult (*init)(unsigned flags);
	CUresult (*device_get)(CUdevice *device, int ordinal);
	CUresult (*primary_retain)(CUcontext *context, CUdevice device);
	CUresult (*primary_release)(CUdevice device);
	CUresult (*set_current)(CUcontext context);
	CUresult (*module_load)(CUmodule *module, const void *image);
	CUresult (*module_unload)(CUmodule module);
	CUresult (*get_function)(CUfunction *function, CUmodule module, const char *name);
	CUresult (*alloc)(CUdeviceptr *pointer, size_t bytes);
	CUresult (*free)(CUdeviceptr pointer);
	CUresult (*copy_in)(CUdeviceptr to, const void *from, size_t bytes);
	CUresult (*copy_out)(void *to, CUdeviceptr from, size_t bytes);
	CUresult (*launch)(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		unsigned by, unsigned bz, unsigned shared, CUstream stream, void **arguments,
		void **extra);
	CUresult (*error_string)(CUresult error, const char **text);
} cuda;

static const struct {
	const char *name;
	void *to;
} CALLS[] = {
	{ "cuInit", &cuda.init },
	{ "cuDeviceGet", &cuda.device_get },
	{ "cuDevicePrimaryCtxRetain", &cuda.primary_retain },
	{ "cuDevicePrimaryCtxRelease_v2", &cuda.primary_release },
	{ "cuCtxSetCurrent", &cuda.set_current },
	{ "cuModuleLoadData", &cuda.module_load },
	{ "cuModuleUnload", &cuda.module_unload },
	{ "cuModuleGetFunction", &cuda.get_function },
	{ "cuMemAlloc_v2", &cuda.alloc },
	{ "cuMemFree_v2", &cuda.free },
	{ "cuMemcpyHtoD_v2", &cuda.copy_in },
	{ "cuMemcpyDtoH_v2", &cuda.copy_out },
	{ "cuLaunchKernel", &cuda.launch },
	{ "cuGetErrorString", &cuda.error_string },
};

static void check(CUresult status, const char *call)
{
	const char *text = NULL;

	if (status == CUDA_SUCCESS)
		return;
	cuda.error_string(status, &text);
	fprintf(stderr, "%s: %s\n", call, text ? text : "unknown error");
	exit(1);
}

#define CHECK(call) check(call, #call)

static void load_cuda(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	for (size_t i = 0; library && i < sizeof(CALLS) / sizeof(CALLS[0]); i++)
		if (!(*(void **)CALLS[i].to = dlsym(library, CALLS[i].name)))
			library = NULL;
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
}

enum { LENGTH = 100000 };

int main(void)
{
	static float x[LENGTH], y[LENGTH];
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction saxpy;
	CUdeviceptr device_x, device_y;
	float a = 3.0f;
	int length = LENGTH;

	load_cuda();
	for (int i = 0; i < LENGTH; i++) {
		x[i] = (float)i;
		y[i] = 1.0f;
	}
	CHECK(cuda.init(0));
	CHECK(cuda.device_get(&device, 0));
	CHECK(cuda.primary_retain(&context, device));
	CHECK(cuda.set_current(context));
	CHECK(cuda.module_load(&module, KERNEL));
	CHECK(cuda.get_function(&saxpy, module, "saxpy"));

	CHECK(cuda.alloc(&device_x, sizeof(x)));
	CHECK(cuda.alloc(&device_y, sizeof(y)));
	CHECK(cuda.copy_in(device_x, x, sizeof(x)));
	CHECK(cuda.copy_in(device_y, y, sizeof(y)));
	void *arguments[] = { &a, &device_x, &device_y, &length };
	CHECK(cuda.launch(saxpy, (LENGTH + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
	CHECK(cuda.copy_out(y, device_y, sizeof(y)));

	CHECK(cuda.free(device_x));
	CHECK(cuda.free(device_y));
	CHECK(cuda.module_unload(module));
	CHECK(cuda.primary_release(device));
	for (int i = 0; i < LENGTH; i++)
		if (y[i] != a * x[i] + 1.0f) {
			fprintf(stderr, "wrong at %d: %g\n", i, y[i]);
			return 1;
		}
	printf("%d values, all right: y[100] = %g\n", LENGTH, y[100]);
	return 0;
}
