/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_mempool: stream-ordered memory. The client orders it: memory freed in a stream is handed out
 * again to the same stream at once, and to others when the work before the free is known to be
 * complete. Only then does it go back to the device's heap. Any thread.
 */
#ifndef OBC_MEMPOOL_H
#define OBC_MEMPOOL_H

#include "front/front.h"

#define OBC_POOL_MAX      4096u /* pools of a process */
#define OBC_POOL_IDLE_MAX 256u  /* freed pieces that one pool keeps */

/*
 * Gives back every idle piece of the context's device, waiting for the work it may be used by.
 * False: there was none.
 */
bool obc_mempools_flush(struct obf_ctx *ctx);
/* A pooled allocation was freed by cuMemFree: out of the pool's books. */
void obc_mempool_freed(const struct obf_mem *mem);
/* The context has ended: its idle pieces go back. */
void obc_mempools_end(const struct obf_ctx *ctx);

#endif
