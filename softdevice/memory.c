/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "softdevice/address.h"
#include "softdevice/chunk.h"
#include "softdevice/config.h"
#include "softdevice/context.h"
#include "softdevice/sched.h"

/* Structs for reuse (see alloc.h). */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static struct obd_alloc *spare; /* linked by `next` */

static struct obd_alloc *alloc_struct_new(void)
{
	struct obd_alloc *alloc;

	pthread_mutex_lock(&spare_lock);
	alloc = spare;
	if (alloc)
		spare = alloc->next;
	pthread_mutex_unlock(&spare_lock);
	if (alloc)
		memset(alloc, 0, sizeof *alloc);
	else
		alloc = calloc(1, sizeof *alloc);
	return alloc;
}

static void alloc_struct_free(struct obd_alloc *alloc)
{
	pthread_mutex_lock(&spare_lock);
	alloc->next = spare;
	spare = alloc;
	pthread_mutex_unlock(&spare_lock);
}

/* ---- allocations ---- */

static uint64_t charge_of(uint64_t size)
{
	return ob_round_up(size, OBD_BLOCK);
}

static bool place(struct obd_device *device, struct obd_alloc *alloc, uint64_t align)
{
	if (align <= OBD_BLOCK && alloc->span.size <= OBD_SMALL_MAX)
		return obd_chunk_take(device, alloc);
	return align <= OBD_UNIT && obd_window_take(&alloc->span, alloc->span.size) != 0;
}

static void list_add(struct obd_ctx *ctx, struct obd_alloc *alloc)
{
	pthread_mutex_lock(&ctx->lock);
	alloc->next = ctx->allocs;
	if (ctx->allocs)
		ctx->allocs->prev = alloc;
	ctx->allocs = alloc;
	pthread_mutex_unlock(&ctx->lock);
}

static void list_remove(struct obd_ctx *ctx, struct obd_alloc *alloc)
{
	pthread_mutex_lock(&ctx->lock);
	if (alloc->prev)
		alloc->prev->next = alloc->next;
	else
		ctx->allocs = alloc->next;
	if (alloc->next)
		alloc->next->prev = alloc->prev;
	pthread_mutex_unlock(&ctx->lock);
}

static void map_insert(const struct obd_alloc *alloc)
{
	struct obf_mem mem = {
		.base = alloc->span.base,
		.size = alloc->span.size,
		.kind = OBF_MEM_DEVICE,
		.device = (int)alloc->ctx->device->ordinal,
		.ctx = alloc->ctx->front,
		.is_global = true,
	};

	obf_mem_insert(&mem);
}

struct obd_alloc *obd_memory_new(
	struct obd_ctx *ctx, uint64_t size, uint64_t align, enum obd_alloc_kind kind)
{
	struct obd_alloc *alloc;

	if (size == 0 || size > obd_window.size / 2 ||
		!obd_device_charge(ctx->device, charge_of(size)))
		return NULL;
	alloc = alloc_struct_new();
	if (alloc) {
		alloc->span.kind = OBD_SPAN_ALLOC;
		alloc->span.size = size;
		alloc->kind = kind;
		alloc->ctx = ctx;
		if (place(ctx->device, alloc, align)) {
			list_add(ctx, alloc);
			if (kind == OBD_ALLOC_GLOBAL)
				map_insert(alloc);
			return alloc;
		}
		alloc_struct_free(alloc);
	}
	obd_device_credit(ctx->device, charge_of(size));
	return NULL;
}

void obd_memory_free(struct obd_alloc *alloc)
{
	struct obd_device *device = alloc->ctx->device;

	if (alloc->kind == OBD_ALLOC_GLOBAL)
		obf_mem_remove(alloc->span.base, NULL);
	list_remove(alloc->ctx, alloc);
	if (alloc->chunk)
		obd_chunk_give(device, alloc);
	else
		obd_window_give(&alloc->span);
	obd_device_credit(device, charge_of(alloc->span.size));
	alloc_struct_free(alloc);
}

void obd_memory_forget(struct obd_ctx *ctx)
{
	while (ctx->allocs)
		obd_memory_free(ctx->allocs);
}

/* ---- callbacks of obd_env ---- */

void *obd_memory_env_alloc(void *user, size_t size, size_t align)
{
	struct obd_alloc *alloc = obd_memory_new(user, size, align, OBD_ALLOC_GLOBAL);

	return alloc ? memset((void *)alloc->span.base, 0, size) : NULL;
}

static void exact_free(struct obd_ctx *ctx, void *p, enum obd_alloc_kind kind)
{
	struct obd_address at = obd_address_classify((uint64_t)p, 1);
	struct obd_alloc *alloc = at.alloc;

	if (at.kind != OBD_ADDRESS_MEMORY && at.kind != OBD_ADDRESS_HEAP)
		return;
	if (alloc->span.base != (uint64_t)p || alloc->kind != kind || alloc->ctx != ctx)
		return;
	if (kind == OBD_ALLOC_HEAP) {
		pthread_mutex_lock(&ctx->lock);
		ctx->heap_used -= charge_of(alloc->span.size);
		pthread_mutex_unlock(&ctx->lock);
	}
	obd_memory_free(alloc);
}

void obd_memory_env_free(void *user, void *p)
{
	exact_free(user, p, OBD_ALLOC_GLOBAL);
}

void *obd_memory_heap_alloc(void *user, size_t size)
{
	struct obd_ctx *ctx = user;
	struct obd_alloc *alloc = NULL;
	bool ok;

	if (size == 0 || size > OBD_WINDOW_SIZE)
		return NULL;
	pthread_mutex_lock(&ctx->lock);
	ok = ctx->heap_used + charge_of(size) <= ctx->heap_limit;
	if (ok)
		ctx->heap_used += charge_of(size);
	pthread_mutex_unlock(&ctx->lock);
	if (ok)
		alloc = obd_memory_new(ctx, size, 16, OBD_ALLOC_HEAP);
	if (ok && !alloc) {
		pthread_mutex_lock(&ctx->lock);
		ctx->heap_used -= charge_of(size);
		pthread_mutex_unlock(&ctx->lock);
	}
	return alloc ? (void *)alloc->span.base : NULL;
}

void obd_memory_heap_free(void *user, void *p)
{
	exact_free(user, p, OBD_ALLOC_HEAP);
}

bool obd_memory_env_check(void *user, uintptr_t addr, size_t size)
{
	(void)user;
	return obd_address_kernel_may_access(addr, size);
}

bool obd_memory_env_check_texture(void *user, uintptr_t addr, size_t size)
{
	(void)user;
	return obd_address_texture_may_access(addr, size);
}

/* ---- the backend's functions ---- */

static _Atomic bool shared_exist; /* some memory is or was shared */

CUresult obd_memory_alloc(struct obf_ctx *ctx, struct obf_mem *mem)
{
	struct obd_alloc *alloc =
		obd_memory_new(ctx->backend, mem->size, OBD_BLOCK, OBD_ALLOC_USER);

	if (!alloc)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mem->base = alloc->span.base;
	mem->backend = alloc;
	return CUDA_SUCCESS;
}

CUresult obd_memory_share(struct obf_ctx *ctx, struct obf_mem *mem)
{
	CUresult result = obd_memory_alloc(ctx, mem);

	if (result != CUDA_SUCCESS)
		return result;
	/* Larger allocations have new pages. */
	if (((struct obd_alloc *)mem->backend)->chunk)
		memset((void *)mem->base, 0, mem->size);
	((struct obd_alloc *)mem->backend)->shared = true;
	atomic_store(&shared_exist, true);
	return CUDA_SUCCESS;
}

CUresult obd_memory_share_global(struct obf_ctx *ctx, const struct obf_mem *mem)
{
	struct obd_address at = obd_address_classify(mem->base, 1);

	(void)ctx;
	if (at.kind != OBD_ADDRESS_MEMORY)
		return CUDA_ERROR_NOT_SUPPORTED;
	at.alloc->shared = true;
	atomic_store(&shared_exist, true);
	return CUDA_SUCCESS;
}

bool obd_memory_is_shared(uint64_t addr)
{
	struct obd_address at;

	if (ob_likely(!atomic_load_explicit(&shared_exist, memory_order_relaxed)))
		return false;
	at = obd_address_classify(addr, 1);
	return at.kind == OBD_ADDRESS_MEMORY && at.alloc->shared;
}

CUresult obd_memory_release(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use)
{
	struct obd_alloc *alloc = mem->backend;
	struct obd_ctx *owner = alloc->ctx;

	/* A host function that is still running may use the memory. */
	if (owner->abandoned)
		return CUDA_SUCCESS;
	if (in_use) {
		obd_ctx_wait(ctx->backend, false);
		if (owner != ctx->backend)
			obd_ctx_wait(owner, false);
	}
	obd_memory_free(alloc);
	return CUDA_SUCCESS;
}

CUresult obd_memory_info(struct obf_ctx *ctx, uint64_t *ret_free, uint64_t *ret_total)
{
	obd_device_account(((struct obd_ctx *)ctx->backend)->device, ret_free, ret_total);
	return CUDA_SUCCESS;
}
