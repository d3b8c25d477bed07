/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The rest of a libcuda.so.1 over the front end and the generated stubs: device memory is this process's
 * memory, and one kernel is known by name and computed here, so that a program built by nvcc can
 * check that its parameters arrived.
 */
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "protocol/obd_locals.h"
#include "protocol/obd_procs.h"

__attribute__((constructor)) static void attach(void);

static void attach(void)
{
	fake_attach(obd_procs, obd_n_procs);
}

CUresult obd_cuMemAlloc_v2(CUdeviceptr *addr, size_t bytes)
{
	struct obf_mem mem = { .kind = OBF_MEM_DEVICE, .size = bytes };
	CUresult result = obf_ctx_enter(&mem.ctx);

	if (result != CUDA_SUCCESS)
		return result;
	mem.base = (uintptr_t)malloc(bytes);
	mem.device = mem.ctx->device;
	if (!mem.base || !obf_mem_insert(&mem))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*addr = mem.base;
	return CUDA_SUCCESS;
}

CUresult obd_cuMemFree_v2(CUdeviceptr addr)
{
	if (!obf_mem_remove(addr, NULL))
		return CUDA_ERROR_INVALID_VALUE;
	free((void *)(uintptr_t)addr);
	return CUDA_SUCCESS;
}

CUresult obd_cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	(void)stream;
	memcpy((void *)(uintptr_t)dst, src, bytes);
	return obf_mem_check_device(dst, bytes);
}

CUresult obd_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	(void)stream;
	memcpy(dst, (void *)(uintptr_t)src, bytes);
	return obf_mem_check_device(src, bytes);
}

CUresult obd_cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
	(void)stream;
	memset((void *)(uintptr_t)dst, value, count);
	return obf_mem_check_device(dst, count);
}

/* add(const float *a, const float *b, float *c, int n) */
struct add_params {
	const float *a, *b;
	float *c;
	int n;
};

CUresult obd_cuLaunchKernel(CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	struct obf_launch launch = { .grid = { gx, gy, gz },
		.block = { bx, by, bz },
		.dynamic_shared = shared,
		.cluster = { 1, 1, 1 } };
	struct add_params packed;
	struct obf_ctx *ctx;
	struct obf_func *func;
	CUresult result = obf_ctx_enter(&ctx);

	(void)stream;
	if (result == CUDA_SUCCESS)
		result = obf_func_resolve(handle, ctx, &func);
	if (result == CUDA_SUCCESS)
		result = obf_launch_check(ctx, func, &launch);
	if (result == CUDA_SUCCESS)
		result = strstr(func->name, "add") && func->param_bytes == 28
			? CUDA_SUCCESS
			: CUDA_ERROR_LAUNCH_FAILED;
	if (result == CUDA_SUCCESS)
		result = obf_launch_pack(func, params, extra, &packed);
	if (result != CUDA_SUCCESS)
		return result;
	for (int i = 0; i < packed.n; i++)
		packed.c[i] = packed.a[i] + packed.b[i];
	return CUDA_SUCCESS;
}
