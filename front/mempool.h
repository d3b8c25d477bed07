/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_mempool: stream-ordered memory. Memory that is freed in a stream lies idle in its pool: it is
 * handed out again to the same stream at once, and to others when the work before the free is known
 * to be complete. Only then, and above the release threshold, does it go back to the backend.
 *
 * The process owns the pools; an object stays when its pool is destroyed, because allocations may
 * outlive it. Any thread; `lock` guards all but the first four members.
 */
#ifndef OBF_MEMPOOL_H
#define OBF_MEMPOOL_H

#include <pthread.h>

#include "front/backend.h"
#include "front/front.h"

#define OBF_POOL_MAX      4096u /* pools of a process */
#define OBF_POOL_IDLE_MAX 256u  /* freed pieces that one pool keeps */

/* A freed piece. */
struct obf_idle {
	struct obf_mem mem;
	struct obf_point behind; /* free for every stream when this is passed */
	struct obf_ctx *ctx;     /* of the stream in which it was freed */
	unsigned long long stream_id;
};

struct obf_mempool {
	CUmemoryPool handle;
	int device;
	bool is_default;
	uint64_t max_size; /* bytes; 0: as much as the device has */
	pthread_mutex_t lock;
	uint64_t threshold, used, used_high, reserved, reserved_high; /* bytes */
	int reuse_events, reuse_opportunistic, reuse_internal;
	CUmemAccess_flags access[OBF_DEVICE_MAX];
	unsigned n_idle;
	struct obf_idle idle[OBF_POOL_IDLE_MAX];
};

/* NULL: no pool has the handle. */
struct obf_mempool *obf_mempool_find(CUmemoryPool handle);
CUresult obf_mempool_new(int device, bool is_default, uint64_t max_size, CUmemoryPool *ret);
/* The device's default pool, made at its first use, or the one that was set for it. */
CUresult obf_mempool_of_device(int device, bool want_default, CUmemoryPool *ret);
CUresult obf_mempool_set_for_device(int device, CUmemoryPool handle);
/* CUDA_ERROR_INVALID_VALUE: no such pool, or a default one. */
CUresult obf_mempool_destroy(CUmemoryPool handle);
/* Under the pool's lock: gives back what is free for everyone while more than `keep` is reserved. */
void obf_mempool_trim(struct obf_mempool *pool, uint64_t keep);

/*
 * Gives back every idle piece of the context's device, waiting for the work that may use it. False:
 * there was none.
 */
bool obf_mempools_flush(struct obf_ctx *ctx);
/* obf_memory_alloc, with the idle memory of all pools as the last reserve. */
CUresult obf_mempools_alloc(
	struct obf_ctx *ctx, size_t size, CUmemoryPool pool, uint64_t *ret_addr);
/* A pooled allocation was freed by cuMemFree. */
void obf_mempool_freed(const struct obf_mem *mem);
/* The context has ended: its idle pieces go back. */
void obf_mempools_end(const struct obf_ctx *ctx);

#endif
