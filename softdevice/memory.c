/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/obd_locals.h"
#include "softdevice/config.h"
#include "softdevice/context.h"
#include "softdevice/mempool.h"
#include "softdevice/sched.h"
#include "softdevice/vmm.h"

#define CHUNK_BLOCKS ((uint32_t)((OBD_UNIT - OBD_PAGE) / OBD_BLOCK)) /* the last page guards the end */

struct obd_chunk {
	struct obd_span span;
	struct obd_device *device;
	struct obd_chunk *next, *prev;    /* of the device; next also of the free list */
	uint32_t used;                    /* blocks, guards among them */
	uint32_t cursor;                  /* where to look first */
	uint32_t longest;                 /* no free run is longer */
	struct obd_alloc *_Atomic block[CHUNK_BLOCKS]; /* the allocation each block belongs to */
	uint64_t map[(CHUNK_BLOCKS + 63) / 64];
};

/* Structs for reuse: see the header. */
static struct {
	pthread_mutex_t lock;
	struct obd_alloc *allocs;         /* chained by next */
	struct obd_chunk *chunks;
} spares = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct obd_alloc *alloc_struct_new(void)
{
	struct obd_alloc *alloc;

	pthread_mutex_lock(&spares.lock);
	alloc = spares.allocs;
	if (alloc)
		spares.allocs = alloc->next;
	pthread_mutex_unlock(&spares.lock);
	if (alloc)
		memset(alloc, 0, sizeof *alloc);
	else
		alloc = calloc(1, sizeof *alloc);
	return alloc;
}

static void alloc_struct_free(struct obd_alloc *alloc)
{
	pthread_mutex_lock(&spares.lock);
	alloc->next = spares.allocs;
	spares.allocs = alloc;
	pthread_mutex_unlock(&spares.lock);
}

/* ---- chunks; under the device's lock ---- */

static struct obd_chunk *chunk_new(struct obd_device *device)
{
	struct obd_chunk *chunk;

	pthread_mutex_lock(&spares.lock);
	chunk = spares.chunks;
	if (chunk)
		spares.chunks = chunk->next;
	pthread_mutex_unlock(&spares.lock);
	if (!chunk)
		chunk = calloc(1, sizeof *chunk);
	if (!chunk)
		return NULL;
	chunk->span.kind = OBD_SPAN_CHUNK;
	chunk->device = device;
	chunk->used = chunk->cursor = 0;
	chunk->longest = CHUNK_BLOCKS;
	chunk->prev = NULL;
	chunk->next = device->chunks;
	if (!obd_window_take(&chunk->span, (uint64_t)CHUNK_BLOCKS * OBD_BLOCK)) {
		pthread_mutex_lock(&spares.lock);
		chunk->next = spares.chunks;
		spares.chunks = chunk;
		pthread_mutex_unlock(&spares.lock);
		return NULL;
	}
	if (device->chunks)
		device->chunks->prev = chunk;
	device->chunks = chunk;
	return chunk;
}

static void chunk_free(struct obd_chunk *chunk)
{
	struct obd_device *device = chunk->device;

	if (chunk->prev)
		chunk->prev->next = chunk->next;
	else
		device->chunks = chunk->next;
	if (chunk->next)
		chunk->next->prev = chunk->prev;
	obd_window_give(&chunk->span);
	pthread_mutex_lock(&spares.lock);
	chunk->next = spares.chunks;
	spares.chunks = chunk;
	pthread_mutex_unlock(&spares.lock);
}

static bool bit(const uint64_t *map, uint32_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static void bits_set(uint64_t *map, uint32_t first, uint32_t n, bool on)
{
	for (uint32_t i = first; i < first + n; i++) {
		if (on)
			map[i / 64] |= 1ull << (i % 64);
		else
			map[i / 64] &= ~(1ull << (i % 64));
	}
}

/* The first run of n free blocks in [from, to); CHUNK_BLOCKS when there is none. */
static uint32_t blocks_find(const struct obd_chunk *chunk, uint32_t from, uint32_t to, uint32_t n)
{
	uint32_t run = 0;

	for (uint32_t i = from; i < to; i++) {
		if (run == 0 && i % 64 == 0 && chunk->map[i / 64] == UINT64_MAX) {
			i += 63;
			continue;
		}
		run = bit(chunk->map, i) ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return CHUNK_BLOCKS;
}

static bool chunk_take(struct obd_chunk *chunk, struct obd_alloc *alloc, uint32_t blocks)
{
	uint32_t n = blocks + 1, first; /* one to guard the end */

	if (n > chunk->longest)
		return false;
	first = blocks_find(chunk, chunk->cursor, CHUNK_BLOCKS, n);
	if (first == CHUNK_BLOCKS)
		first = blocks_find(chunk, 0, CHUNK_BLOCKS, n);
	if (first == CHUNK_BLOCKS) {
		chunk->longest = n - 1;
		return false;
	}
	bits_set(chunk->map, first, n, true);
	chunk->used += n;
	chunk->cursor = first + n;
	alloc->chunk = chunk;
	alloc->span.base = chunk->span.base + (uint64_t)first * OBD_BLOCK;
	for (uint32_t i = 0; i < blocks; i++)
		atomic_store_explicit(&chunk->block[first + i], alloc, memory_order_release);
	return true;
}

static void chunk_give(struct obd_alloc *alloc)
{
	struct obd_chunk *chunk = alloc->chunk;
	uint32_t first = (uint32_t)((alloc->span.base - chunk->span.base) / OBD_BLOCK);
	uint32_t blocks = (uint32_t)((alloc->span.size + OBD_BLOCK - 1) / OBD_BLOCK);

	for (uint32_t i = 0; i < blocks; i++)
		atomic_store_explicit(&chunk->block[first + i], NULL, memory_order_release);
	bits_set(chunk->map, first, blocks + 1, false);
	chunk->used -= blocks + 1;
	chunk->longest = CHUNK_BLOCKS;
	/* The memory checker wants a freed address to stay free for long. */
	if (!obd_config.memcheck)
		chunk->cursor = ob_min(chunk->cursor, first);
	if (chunk->used == 0 && chunk->device->chunks->next) /* the last chunk stays */
		chunk_free(chunk);
}

static bool small_take(struct obd_device *device, struct obd_alloc *alloc)
{
	uint32_t blocks = (uint32_t)((alloc->span.size + OBD_BLOCK - 1) / OBD_BLOCK);
	bool ok = false;

	pthread_mutex_lock(&device->lock);
	for (struct obd_chunk *chunk = device->chunks; chunk && !ok; chunk = chunk->next)
		ok = chunk_take(chunk, alloc, blocks);
	if (!ok) {
		struct obd_chunk *chunk = chunk_new(device);

		ok = chunk && chunk_take(chunk, alloc, blocks);
	}
	pthread_mutex_unlock(&device->lock);
	return ok;
}

/* ---- allocations ---- */

static uint64_t charge_of(uint64_t size)
{
	return ob_round_up(size, OBD_BLOCK);
}

static bool place(struct obd_device *device, struct obd_alloc *alloc, uint64_t align)
{
	if (align <= OBD_BLOCK && alloc->span.size <= OBD_SMALL_MAX)
		return small_take(device, alloc);
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
		.ctx = alloc->ctx->face,
		.is_global = alloc->kind == OBD_ALLOC_GLOBAL,
	};

	obf_mem_insert(&mem);
}

struct obd_alloc *obd_memory_new(struct obd_ctx *ctx, uint64_t size, uint64_t align, enum obd_alloc_kind kind)
{
	struct obd_alloc *alloc;

	if (size == 0 || size > obd_window.size / 2 || !obd_device_charge(ctx->device, charge_of(size)))
		return NULL;
	alloc = alloc_struct_new();
	if (alloc) {
		alloc->span.kind = OBD_SPAN_ALLOC;
		alloc->span.size = size;
		alloc->kind = kind;
		alloc->ctx = ctx;
		if (place(ctx->device, alloc, align)) {
			list_add(ctx, alloc);
			if (kind != OBD_ALLOC_HEAP)
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
	struct obf_mem gone;

	if (alloc->kind != OBD_ALLOC_HEAP)
		obf_mem_remove(alloc->span.base, &gone);
	list_remove(alloc->ctx, alloc);
	if (alloc->chunk) {
		pthread_mutex_lock(&device->lock);
		chunk_give(alloc);
		pthread_mutex_unlock(&device->lock);
	} else {
		obd_window_give(&alloc->span);
	}
	obd_device_credit(device, charge_of(alloc->span.size));
	alloc_struct_free(alloc);
}

void obd_memory_forget(struct obd_ctx *ctx)
{
	while (ctx->allocs)
		obd_memory_free(ctx->allocs);
}

/* ---- looking up ---- */

struct obd_alloc *obd_memory_find(uint64_t addr)
{
	struct obd_span *span = obd_window_span(addr);
	struct obd_alloc *alloc = NULL;

	if (span && span->kind == OBD_SPAN_CHUNK) {
		struct obd_chunk *chunk = (struct obd_chunk *)span;
		uint64_t i = (addr - chunk->span.base) / OBD_BLOCK;

		if (i < CHUNK_BLOCKS)
			alloc = atomic_load_explicit(&chunk->block[i], memory_order_acquire);
	} else if (span && span->kind == OBD_SPAN_ALLOC) {
		alloc = (struct obd_alloc *)span;
	}
	return alloc && addr - alloc->span.base < alloc->span.size ? alloc : NULL;
}

bool obd_memory_touchable(uint64_t addr, uint64_t size)
{
	struct obd_span *span = obd_window_span(addr);
	struct obd_alloc *alloc;

	if (!span)
		return false;
	if (span->kind == OBD_SPAN_SCRATCH)
		return ob_span_inside(addr - span->base, size, span->size);
	if (span->kind == OBD_SPAN_MAPPING)
		return obd_vmm_inside(addr, size);
	alloc = obd_memory_find(addr);
	return alloc && ob_span_inside(addr - alloc->span.base, size, alloc->span.size);
}

CUresult obd_memory_check(uint64_t addr, uint64_t size)
{
	struct obd_span *span = obd_window_span(addr);
	struct obd_alloc *alloc;
	bool ok;

	if (size == 0)
		return CUDA_SUCCESS;
	if (span && span->kind == OBD_SPAN_MAPPING) {
		ok = obd_vmm_inside(addr, size);
	} else {
		alloc = obd_memory_find(addr);
		ok = alloc && alloc->kind != OBD_ALLOC_HEAP && ob_span_inside(addr - alloc->span.base, size, alloc->span.size) &&
		     !atomic_load_explicit(&alloc->leaving, memory_order_relaxed);
	}
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- for programs ---- */

void *obd_memory_env_alloc(void *user, size_t size, size_t align)
{
	struct obd_alloc *alloc = obd_memory_new(user, size, align, OBD_ALLOC_GLOBAL);

	return alloc ? memset((void *)alloc->span.base, 0, size) : NULL;
}

static void exact_free(struct obd_ctx *ctx, void *p, enum obd_alloc_kind kind)
{
	struct obd_alloc *alloc = obd_memory_find((uint64_t)p);

	if (!alloc || alloc->span.base != (uint64_t)p || alloc->kind != kind || alloc->ctx != ctx)
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

void *obd_memory_scratch_alloc(void *user, size_t size, size_t align)
{
	struct obd_span *span;

	(void)user;
	if (align > OBD_UNIT)
		return NULL;
	span = calloc(1, sizeof *span);
	if (!span)
		return NULL;
	span->kind = OBD_SPAN_SCRATCH;
	if (!obd_window_take(span, size)) {
		free(span);
		return NULL;
	}
	return (void *)span->base;
}

void obd_memory_scratch_free(void *user, void *p, size_t size)
{
	struct obd_span *span = obd_window_span((uint64_t)p);

	(void)user;
	(void)size;
	if (!span || span->kind != OBD_SPAN_SCRATCH || span->base != (uint64_t)p)
		return;
	obd_window_give(span);
	/* Only kernels that have ended looked it up: nobody races with this one. */
	free(span);
}

bool obd_memory_env_check(void *user, uintptr_t addr, size_t size)
{
	(void)user;
	return obd_memory_touchable(addr, size);
}

/* ---- public calls ---- */

CUresult obd_cuMemAlloc_v2(CUdeviceptr *addr, size_t bytes)
{
	struct obd_ctx *ctx;
	struct obd_alloc *alloc;
	CUresult result = obd_ctx_enter(&ctx);

	if (result)
		return result;
	if (!addr || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	alloc = obd_memory_new(ctx, bytes, OBD_BLOCK, OBD_ALLOC_USER);
	if (!alloc)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*addr = alloc->span.base;
	return CUDA_SUCCESS;
}

CUresult obd_cuMemAllocPitch_v2(CUdeviceptr *addr, size_t *pitch, size_t width, size_t height, unsigned int element_size)
{
	size_t row = ob_round_up(width, 512), size;
	struct obd_ctx *ctx;
	CUresult result = obd_ctx_enter(&ctx);

	if (result)
		return result;
	if (!addr || !pitch || width == 0 || height == 0 || row < width || row > INT32_MAX ||
	    (element_size != 4 && element_size != 8 && element_size != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (ob_mul_overflows(row, height, &size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = obd_cuMemAlloc_v2(addr, size);
	if (!result)
		*pitch = row;
	return result;
}

CUresult obd_cuMemFree_v2(CUdeviceptr addr)
{
	struct obd_ctx *ctx;
	struct obd_alloc *alloc;
	CUresult result = obd_ctx_enter(&ctx);

	if (result || addr == 0)
		return result;
	alloc = obd_memory_find(addr);
	if (!alloc || alloc->span.base != addr || alloc->kind != OBD_ALLOC_USER)
		return CUDA_ERROR_INVALID_VALUE;
	/* Claimed before the wait: of two threads that free the same memory one is wrong. */
	if (atomic_exchange_explicit(&alloc->leaving, true, memory_order_acq_rel))
		return CUDA_ERROR_INVALID_VALUE;
	obd_ctx_wait(ctx, false);
	if (alloc->ctx != ctx)
		obd_ctx_wait(alloc->ctx, false);
	obd_mempool_leave(alloc);
	obd_memory_free(alloc);
	return obd_ctx_result(ctx);
}

CUresult obd_cuMemGetInfo_v2(size_t *free, size_t *total)
{
	struct obd_ctx *ctx;
	uint64_t n_free, n_total;
	CUresult result = obd_ctx_enter(&ctx);

	if (result)
		return result;
	if (!free || !total)
		return CUDA_ERROR_INVALID_VALUE;
	obd_device_account(ctx->device, &n_free, &n_total);
	*free = n_free;
	*total = n_total;
	return CUDA_SUCCESS;
}
