/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Pinned host memory: ordinary pages of this process that are entered in the map. Copies
 * read and write them; for kernels a range gets a mirror on the device (front/mirror.h). Memory with the
 * flag DEVICEMAP is device memory instead, which the program accesses too, like managed memory. Freeing and unregistering synchronise implicitly:
 * they take effect in every case and return the result of the wait.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "front/memory.h"
#include "front/captured.h"
#include "front/private.h"
#include "front/mirror.h"
#include "protocol/obf_calls.h"

#define HOST_SIZE_MAX (1ull << 46) /* bytes */
#define ALLOC_FLAGS \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS                                                \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | \
		CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)

static void range_changed(const void *p, size_t size, bool added)
{
	if (obf_process.backend->host_range)
		obf_process.backend->host_range(p, size, added);
}

static size_t pages(size_t size)
{
	return ob_round_up(size, (size_t)sysconf(_SC_PAGESIZE));
}

/* Whether the process has memory at all these addresses: msync reports a hole, and does nothing. */
static bool is_memory(const void *p, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)p;
	uintptr_t base = at - at % page;

	/* NOLINTNEXTLINE(performance-no-int-to-ptr): the page of the address */
	return msync((void *)base, size + (at - base), MS_ASYNC) == 0 || errno != ENOMEM;
}

static CUresult mapped_alloc(struct obf_ctx *ctx, void **ret, size_t size, unsigned flags)
{
	uint64_t addr;
	CUresult result = obf_memory_share(ctx, size, OBF_SHARING_MAPPED, flags, &addr);

	if (result == CUDA_SUCCESS)
		*ret = (void *)(uintptr_t)addr; /* NOLINT(performance-no-int-to-ptr) */
	return result;
}

static bool is_host(const struct obf_mem *mem)
{
	return mem->kind == OBF_MEM_HOST || mem->sharing == OBF_SHARING_MAPPED;
}

CUresult obf_cuMemHostAlloc(void **p, size_t size, unsigned flags)
{
	struct obf_ctx *ctx;
	struct obf_mem mem = { .kind = OBF_MEM_HOST, .size = size, .flags = flags };
	CUresult result = obf_ctx_enter(&ctx);
	void *got;

	if (result != CUDA_SUCCESS)
		return result;
	if (!p || size == 0 || (flags & ~(unsigned)ALLOC_FLAGS))
		return CUDA_ERROR_INVALID_VALUE;
	if (size > HOST_SIZE_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = obf_capture_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	/* Without room on the device, copies can still use the memory. */
	if (flags & CU_MEMHOSTALLOC_DEVICEMAP) {
		result = mapped_alloc(ctx, p, size, flags);
		if (result != CUDA_ERROR_OUT_OF_MEMORY && result != CUDA_ERROR_NOT_SUPPORTED)
			return obf_ctx_result(ctx, result);
	}
	got = mmap(NULL, pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (got == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mem.base = (uintptr_t)got;
	mem.ctx = ctx;
	mem.device = ctx->device;
	if (!obf_mem_insert(&mem)) {
		munmap(got, pages(size));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	range_changed(got, size, true);
	*p = got;
	return CUDA_SUCCESS;
}

CUresult obf_cuMemAllocHost_v2(void **p, size_t size)
{
	return obf_cuMemHostAlloc(p, size, 0);
}

CUresult obf_cuMemFreeHost(void *p)
{
	struct obf_mem mem;
	CUresult result = obf_ready(), freed;

	if (result != CUDA_SUCCESS)
		return result;
	if (!p)
		return CUDA_SUCCESS;
	if (!obf_mem_find((uintptr_t)p, &mem) || mem.base != (uintptr_t)p || !is_host(&mem) ||
		mem.registered)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_capture_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	result = obf_ctx_settle(mem.ctx);
	/* If two threads free the same pointer, one of them gets an error. */
	if (!obf_mem_remove(mem.base, NULL))
		return CUDA_ERROR_INVALID_VALUE;
	if (mem.sharing) {
		freed = obf_memory_give(mem.ctx, &mem, true);
		return result == CUDA_SUCCESS ? obf_ctx_result(mem.ctx, freed) : result;
	}
	obf_mirror_end(mem.base);
	range_changed(p, mem.size, false);
	munmap(p, pages(mem.size));
	return result;
}

CUresult obf_cuMemHostRegister_v2(void *p, size_t size, unsigned flags)
{
	struct obf_ctx *ctx;
	struct obf_mem mem = { .kind = OBF_MEM_HOST,
		.base = (uintptr_t)p,
		.size = size,
		.flags = flags,
		.registered = true };
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!p || size == 0 || (flags & ~(unsigned)REGISTER_FLAGS) || mem.base + size < mem.base)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
		return CUDA_ERROR_NOT_SUPPORTED;
	if ((flags & CU_MEMHOSTREGISTER_READ_ONLY) &&
		!obf_device_attr(obf_ctx_device(ctx),
			CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 0))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = obf_capture_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	if (size > HOST_SIZE_MAX || !is_memory(p, size))
		return CUDA_ERROR_INVALID_VALUE;
	mem.ctx = ctx;
	mem.device = ctx->device;
	if (!obf_mem_insert(&mem))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	range_changed(p, size, true);
	return CUDA_SUCCESS;
}

CUresult obf_cuMemHostUnregister(void *p)
{
	struct obf_mem mem;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (!obf_mem_find((uintptr_t)p, &mem) || mem.base != (uintptr_t)p || !mem.registered)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	result = obf_ctx_settle(mem.ctx);
	if (!obf_mem_remove(mem.base, NULL))
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	obf_mirror_end(mem.base);
	range_changed(p, mem.size, false);
	return result;
}

CUresult obf_cuMemHostGetFlags(unsigned *flags, void *p)
{
	struct obf_mem mem;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!flags || !obf_mem_find((uintptr_t)p, &mem) || !is_host(&mem))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = mem.flags;
	return CUDA_SUCCESS;
}

CUresult obf_cuMemHostGetDevicePointer_v2(CUdeviceptr *addr, void *p, unsigned flags)
{
	struct obf_mem mem;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);
	uint64_t device;

	if (result != CUDA_SUCCESS)
		return result;
	if (!addr || flags != 0 || !obf_mem_find((uintptr_t)p, &mem) || !is_host(&mem))
		return CUDA_ERROR_INVALID_VALUE;
	if (mem.sharing) {
		*addr = (uintptr_t)p;
		return CUDA_SUCCESS;
	}
	result = obf_mirror_get(ctx, &mem, (uintptr_t)p, &device);
	if (result == CUDA_SUCCESS)
		*addr = device;
	return obf_ctx_result(ctx, result);
}

void obf_hostmem_end(const struct obf_ctx *ctx)
{
	struct obf_mem mem;
	uint64_t from = 0;

	while (obf_mem_take_next(ctx, OBF_MEM_HOST, &from, &mem)) {
		void *p = (void *)(uintptr_t)mem.base;

		obf_mirror_end(mem.base);
		range_changed(p, mem.size, false);
		if (!mem.registered)
			munmap(p, pages(mem.size));
	}
}
