/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_mempool: stream-ordered memory. Memory that is freed in a stream becomes an idle block of its
 * pool. The same stream may reuse it at once, other streams when the work before the free is known
 * to be complete. From then on it may also be given back to the backend, if the pool is above its
 * release threshold.
 *
 * The process owns the pools. An object stays valid after its pool was destroyed, because
 * allocations may outlive the pool. Any thread; `lock` protects all members but handle and limits.
 */
#ifndef OBF_MEMPOOL_H
#define OBF_MEMPOOL_H

#include <pthread.h>

#include "front/backend.h"
#include "front/front.h"

#define OBF_POOL_MAX      4096u /* pools of a process */
#define OBF_POOL_IDLE_MAX 256u  /* limit of idle blocks of one pool */

/* An idle block. */
struct obf_idle {
	struct obf_mem mem;
	struct obf_point last_use; /* every stream may use the block when this point has passed */
	struct obf_ctx *ctx;       /* context of the stream in which it was freed */
	unsigned long long stream_id;
};

struct obf_mempool {
	pthread_mutex_t lock;
	struct obf_mempool *next; /* of a destroyed pool that waits for its next use */
	CUmemoryPool handle;
	int device;
	bool is_default;
	bool shareable;    /* created for export to other processes */
	bool imported;     /* another process's: nothing can be allocated from it */
	uint64_t share[2]; /* its id among processes (share.h); 0: none yet */
	uint64_t max_size; /* bytes; 0: the memory of the device */
	uint64_t threshold, used, used_high, reserved, reserved_high; /* bytes */
	int reuse_events, reuse_opportunistic, reuse_internal;
	CUmemAccess_flags access[OBF_DEVICE_MAX];
	unsigned n_idle;
	struct obf_idle idle[OBF_POOL_IDLE_MAX];
};

/* NULL: no such pool. */
struct obf_mempool *obf_mempool_find(CUmemoryPool handle);
/* The same, with the pool's lock taken. */
struct obf_mempool *obf_mempool_lock(CUmemoryPool handle);
CUresult obf_mempool_new(int device, bool is_default, uint64_t max_size, CUmemoryPool *ret);
/*
 * Returns the device's default pool, created at its first use, or the pool that was set for the
 * device.
 */
CUresult obf_mempool_of_device(int device, bool want_default, CUmemoryPool *ret);
CUresult obf_mempool_set_for_device(int device, CUmemoryPool handle);
/* CUDA_ERROR_INVALID_VALUE: no such pool, or a default one. */
CUresult obf_mempool_destroy(CUmemoryPool handle);
/*
 * Under the pool's lock: gives back idle blocks that every stream may use while more than `keep`
 * bytes are reserved.
 */
void obf_mempool_trim(struct obf_mempool *pool, uint64_t keep);

/*
 * Gives back every idle block of the context's device after waiting for the work that may use it.
 * False: there was none.
 */
bool obf_mempools_flush(struct obf_ctx *ctx);
/* Like obf_memory_alloc, but gives back the idle memory of all pools before it fails. */
CUresult obf_mempools_alloc(
	struct obf_ctx *ctx, size_t size, CUmemoryPool pool, uint64_t *ret_addr);
/* cuMemFree has freed a pooled allocation. */
void obf_mempool_freed(const struct obf_mem *mem);
/* The context has ended: gives back its idle blocks. */
void obf_mempools_end(const struct obf_ctx *ctx);

#endif
