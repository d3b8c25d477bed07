/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_shared: device memory that the program accesses directly (managed and mapped memory). Each
 * allocation is ordinary device memory on the server. The client maps pages at the same addresses
 * and keeps both sides equal block by block (client-shim/cuda/shadow.h): a call that gives work to
 * the device uploads what the program has changed and ends its access; an access of the program
 * faults, waits for the device and fetches the block (client-shim/cuda/fault.h).
 *
 * A program without such memory pays one test of obc_shared_used for each call that uses device
 * memory. One lock guards everything else. It is held while bytes are transferred, and no code
 * that runs under it accesses the program's memory. Any thread.
 */
#ifndef OBC_SHARED_H
#define OBC_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/check.h"
#include "client-shim/cuda/stream.h"
#include "front/backend.h"

/* Number of allocations. */
extern _Atomic unsigned obc_shared_used;

static inline bool obc_shared_exist(void)
{
	return ob_unlikely(atomic_load_explicit(&obc_shared_used, memory_order_relaxed) > 0);
}

/*
 * Before a kernel in the stream: it may access all memory that is not attached to another stream.
 * On success the lock is held until obc_shared_launched, so no access of the program comes between.
 */
CUresult obc_shared_launch(struct obc_stream *at);
void obc_shared_launched(void);
/* Before a copy or a fill in the stream that reads or writes [addr, addr + size). */
CUresult obc_shared_work(struct obc_stream *at, uint64_t addr, uint64_t size, bool writes);
/* Before a host function in a stream: its accesses must be served while the stream waits for it. */
CUresult obc_shared_host_function(void);
/*
 * After a host function, in its thread: what it has accessed is on the device again before the work
 * behind the function begins.
 */
void obc_shared_host_function_end(void);
/* In the child of a fork: accesses are no longer served. */
void obc_shared_forget(void);

/* The front end's backend table (front/backend.h). */
CUresult obc_shared_alloc(struct obf_ctx *ctx, struct obf_mem *mem);
CUresult obc_shared_free(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use);
CUresult obc_shared_global(struct obf_ctx *ctx, const struct obf_mem *mem);
void obc_shared_global_end(const struct obf_mem *mem);
CUresult obc_shared_move(struct obf_stream *stream, uint64_t addr, uint64_t size, bool to_host);
CUresult obc_shared_attach(struct obf_stream *stream, const struct obf_mem *mem, unsigned flags);

#endif
