/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/plain.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/log.h"
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/progress.h"
#include "client-shim/cuda/slabs.h"
#include "client-shim/session/log.h"
#include "client-shim/session/server.h"
#include "protocol/obc_calls.h"
#include "protocol/welcome.h"

_Static_assert(OBC_BLOCK_ALIGN == OBP_SLAB_ALIGN, "client and server use the same units");

/* bytes of a context's first slab, unless the server granted one */
#define STEP_FIRST (32ull << 20)
/*
 * A new slab holds at least this many allocations like the one that needs it. Larger allocations
 * are single calls, since the rest of a slab is too small for them: memory that the program could
 * not use.
 */
#define SLAB_PARTS 8u
/* bytes of free memory that a context keeps when an unused slab is returned */
#define KEEP       (256ull << 20)
#define PAUSE_MAX  63u /* allocations for which no slab is asked after one was refused */
#define CLASHES    4u  /* slabs at unusable addresses, before the client does without */

/* The slabs of one context. */
struct obc_plain {
	struct obc_plain *next;
	struct obc_slabs slabs;
	uint64_t step; /* bytes of the next slab */
	/*
	 * After a slab was refused, none is asked for during the next `pause` allocations.
	 * pause_next: the same after the next refusal.
	 */
	unsigned pause, pause_next;
	int device;
	bool ended; /* the server drops or has dropped the slabs */
};

struct contexts_state {
	pthread_mutex_t lock;
	uint64_t largest; /* slab; 0: every allocation is a call */
	struct obc_plain *first;
	/* first slabs of primary contexts without allocations yet, by the server's device number */
	struct obp_range granted[OBP_DEVICE_MAX];
};

static OBC_PER_SERVER struct contexts_state contexts_first = { .lock = PTHREAD_MUTEX_INITIALIZER };
#define contexts OBC_HERE(contexts_first)

/* ---- addresses ---- */

/* False: this process has something at these addresses. */
static bool reserve(uint64_t addr, uint64_t size)
{
	void *wanted = (void *)(uintptr_t)addr; /* NOLINT(performance-no-int-to-ptr) */
	void *p = mmap(wanted, size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == wanted)
		return true;
	if (p != MAP_FAILED)
		munmap(p, size);
	ob_debug("cannot reserve device address 0x%llx in this process", (unsigned long long)addr);
	return false;
}

static void unreserve(uint64_t addr, uint64_t size)
{
	munmap((void *)(uintptr_t)addr, size); /* NOLINT(performance-no-int-to-ptr) */
}

/* Whether the bytes lie in a slab of this session. Under the lock. */
static bool overlaps(uint64_t addr, uint64_t size)
{
	for (const struct obc_plain *p = contexts.first; p; p = p->next)
		if (!p->ended && obc_slabs_overlap(&p->slabs, addr, size))
			return true;
	for (uint32_t i = 0; i < OBP_DEVICE_MAX; i++)
		if (addr < contexts.granted[i].base + contexts.granted[i].size &&
			contexts.granted[i].base < addr + size)
			return true;
	return false;
}

/* The server broke the protocol: ends the session. */
static void refuse(uint64_t addr, uint64_t size, const char *why)
{
	ob_error("the server allocated %llu bytes at device address 0x%llx, which %s: client and "
		 "server versions may differ, see 'outboard check'",
		(unsigned long long)size, (unsigned long long)addr, why);
	obc_log_fail(OB_ERR_PROTOCOL);
}

/* ---- slabs; under the lock ---- */

/* A freed address in a slab is no host memory: the front end must know. */
static bool slab_reserve(const struct obp_range *slab)
{
	if (!reserve(slab->base, slab->size))
		return false;
	if (obf_mem_window(slab->base, slab->size))
		return true;
	unreserve(slab->base, slab->size);
	return false;
}

static void slab_unreserve(uint64_t base, uint64_t size)
{
	obf_mem_window_end(base);
	unreserve(base, size);
}

static void slab_return(uint64_t base, uint64_t size)
{
	obc_call_op_mem_slab_free(base);
	slab_unreserve(base, size);
}

static struct obc_plain *plain_of(struct obf_ctx *ctx)
{
	struct obc_ctx *home = obc_ctx_of(ctx);
	struct obp_range *granted = &contexts.granted[obc_device_number(ctx->device)];
	struct obc_plain *p = home->plain;

	if (ob_likely(p != NULL))
		return p;
	p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->device = ctx->device;
	p->step = ob_min(STEP_FIRST, contexts.largest);
	if (ctx->primary && granted->size &&
		obc_slabs_add(&p->slabs, granted->base, granted->size)) {
		p->step = ob_min(ob_max(STEP_FIRST, 2 * granted->size), contexts.largest);
		*granted = (struct obp_range){ 0 };
	}
	p->next = contexts.first;
	contexts.first = home->plain = p;
	return p;
}

/* Checks and reserves what the server allocated. False: it cannot be used; *ret_clash: reserved. */
static bool slab_take(
	struct obc_plain *p, const struct obp_range *slab, uint64_t least, bool *ret_clash)
{
	*ret_clash = false;
	if (!obp_slab_possible(slab) || slab->size > p->step || slab->size < least) {
		refuse(slab->base, slab->size, "is not what was asked for");
		return false;
	}
	if (overlaps(slab->base, slab->size)) {
		refuse(slab->base, slab->size, "the session has already");
		return false;
	}
	*ret_clash = !slab_reserve(slab);
	if (*ret_clash)
		return false;
	if (obc_slabs_add(&p->slabs, slab->base, slab->size))
		return true;
	slab_return(slab->base, slab->size);
	return false;
}

/*
 * Asks for a slab for an allocation of `least` bytes. Slabs that clash with mappings of this
 * process are returned after another was found, so that the driver does not choose them again.
 */
static bool slab_ask(struct obf_ctx *ctx, struct obc_plain *p, uint64_t least)
{
	uint64_t clashed[CLASHES], id = (uint64_t)(uintptr_t)ctx->backend;
	bool taken = false, clash = true;
	struct obp_range slab;
	unsigned n = 0;

	while (clash && n < CLASHES) {
		CUresult result = obc_call_op_mem_slab(id, p->step, least, &slab.base, &slab.size);

		if (result == CUDA_ERROR_NOT_SUPPORTED)
			contexts.largest = 0;
		if (result != CUDA_SUCCESS) {
			p->pause_next = ob_min(2 * p->pause_next + 1, PAUSE_MAX);
			p->pause = p->pause_next;
			break;
		}
		p->pause_next = 0;
		taken = slab_take(p, &slab, least, &clash);
		if (clash)
			clashed[n++] = slab.base;
	}
	if (n == CLASHES) {
		ob_info("the addresses of the server's device memory are in use in this process: "
			"each allocation waits for the server");
		contexts.largest = 0;
	}
	while (n > 0)
		obc_call_op_mem_slab_free(clashed[--n]);
	if (taken)
		p->step = ob_min(2 * p->step, contexts.largest);
	return taken;
}

/* Whether a slab may be asked for an allocation of this size. */
static bool slab_due(struct obc_plain *p, uint64_t size)
{
	if (!contexts.largest || size > p->step / SLAB_PARTS)
		return false;
	if (!p->pause)
		return true;
	p->pause--;
	return false;
}

/* Takes a block for an allocation, from a new slab if necessary. NULL: it must be a call. */
static struct obc_block *block_take(struct obf_ctx *ctx, uint64_t size)
{
	struct obc_plain *p = contexts.largest ? plain_of(ctx) : obc_ctx_of(ctx)->plain;
	struct obc_block *block;

	if (!p || p->ended)
		return NULL;
	block = obc_slabs_take(&p->slabs, size);
	if (ob_unlikely(!block && slab_due(p, size) && slab_ask(ctx, p, size)))
		block = obc_slabs_take(&p->slabs, size);
	return block;
}

/* Returns unused slabs of the context while `keep` bytes remain. */
static uint64_t slabs_trim(struct obc_plain *p, uint64_t keep)
{
	uint64_t base, size, bytes = 0;

	while (!p->ended && obc_slabs_remove_unused(&p->slabs, keep, &base, &size)) {
		slab_return(base, size);
		bytes += size;
	}
	return bytes;
}

static void block_give(struct obc_plain *p, struct obc_block *block)
{
	if (ob_unlikely(obc_slabs_give(&p->slabs, block) && p->slabs.blocks.free_bytes > KEEP))
		slabs_trim(p, KEEP);
}

/* ---- single allocations ---- */

static const char reserved; /* backend of an allocation whose addresses are reserved */

/* Sets mem->base and mem->backend. */
static CUresult single_alloc(struct obf_mem *mem)
{
	uint64_t addr = 0, size = mem->size;
	CUresult result = obc_call_op_mem_alloc_plain(size, &addr);
	bool overlap;

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&contexts.lock);
	overlap = !addr || size > UINT64_MAX - addr || overlaps(addr, size);
	pthread_mutex_unlock(&contexts.lock);
	if (overlap) {
		refuse(addr, size, addr ? "the session has already" : "is not a valid address");
		return obc_log_error();
	}
	mem->base = addr;
	mem->backend = reserve(addr, size) ? (void *)&reserved : NULL;
	return CUDA_SUCCESS;
}

/* ---- public ---- */

void obc_plain_start(const struct obp_welcome *welcome)
{
	contexts.largest = welcome->slabs & ~(uint64_t)(OBP_SLAB_PAGE - 1);
	for (uint32_t i = 0; i < welcome->n_devices; i++) {
		const struct obp_range *slab = &welcome->devices[i].range;

		if (slab->size && slab_reserve(slab))
			contexts.granted[i] = *slab;
		else if (slab->size)
			obc_call_op_mem_slab_free(slab->base);
	}
}

CUresult obc_plain_alloc(struct obf_ctx *ctx, struct obf_mem *mem)
{
	struct obc_block *block;
	CUresult result;

	pthread_mutex_lock(&contexts.lock);
	block = block_take(ctx, mem->size);
	pthread_mutex_unlock(&contexts.lock);
	if (ob_likely(block != NULL)) {
		mem->base = block->addr;
		mem->backend = block;
		return obc_call_op_mem_alloc(mem->base, mem->size, obc_device_number(ctx->device));
	}
	result = single_alloc(mem);
	/* Unused slabs may be what the device lacks. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY && obc_plain_trim(ctx->device))
		result = single_alloc(mem);
	return result;
}

CUresult obc_plain_free(const struct obf_mem *mem, bool fence)
{
	CUresult result = CUDA_SUCCESS;
	struct obc_plain *p;

	if (!mem->backend || mem->backend == &reserved) {
		result = obc_call_op_mem_free(mem->base, fence);
		if (mem->backend)
			unreserve(mem->base, mem->size);
		return result;
	}
	/*
	 * The record is written before the address is free, so that it precedes the records of the
	 * next owner; and never after the record that destroys the context.
	 */
	pthread_mutex_lock(&contexts.lock);
	p = mem->ctx && mem->ctx->backend ? obc_ctx_of(mem->ctx)->plain : NULL;
	if (p && !p->ended)
		result = obc_call_op_mem_free(mem->base, fence);
	if (p)
		block_give(p, mem->backend);
	pthread_mutex_unlock(&contexts.lock);
	return result;
}

uint64_t obc_plain_free_bytes(int device)
{
	uint64_t bytes;

	pthread_mutex_lock(&contexts.lock);
	bytes = contexts.granted[obc_device_number(device)].size;
	for (const struct obc_plain *p = contexts.first; p; p = p->next)
		if (p->device == device && !p->ended)
			bytes += p->slabs.blocks.free_bytes;
	pthread_mutex_unlock(&contexts.lock);
	return bytes;
}

uint64_t obc_plain_trim(int device)
{
	struct obp_range *granted = &contexts.granted[obc_device_number(device)];
	uint64_t bytes;

	pthread_mutex_lock(&contexts.lock);
	bytes = granted->size;
	if (bytes)
		slab_return(granted->base, granted->size);
	*granted = (struct obp_range){ 0 };
	for (struct obc_plain *p = contexts.first; p; p = p->next)
		if (p->device == device)
			bytes += slabs_trim(p, 0);
	pthread_mutex_unlock(&contexts.lock);
	return bytes;
}

void obc_plain_end(const struct obf_ctx *ctx)
{
	struct obp_range *granted = &contexts.granted[obc_device_number(ctx->device)];
	struct obc_plain *p;

	pthread_mutex_lock(&contexts.lock);
	p = obc_ctx_of(ctx)->plain;
	if (p)
		p->ended = true;
	if (ctx->primary && granted->size) {
		slab_unreserve(granted->base, granted->size);
		*granted = (struct obp_range){ 0 };
	}
	pthread_mutex_unlock(&contexts.lock);
}

void obc_plain_release(const struct obf_ctx *ctx)
{
	struct obc_plain **link = &contexts.first, *p;

	pthread_mutex_lock(&contexts.lock);
	p = obc_ctx_of(ctx)->plain;
	obc_ctx_of(ctx)->plain = NULL;
	while (*link && *link != p)
		link = &(*link)->next;
	if (p)
		*link = p->next;
	pthread_mutex_unlock(&contexts.lock);
	for (uint32_t i = 0; p && i < p->slabs.n; i++)
		slab_unreserve(p->slabs.list[i].base, p->slabs.list[i].size);
	if (p)
		obc_slabs_fini(&p->slabs);
	free(p);
}
