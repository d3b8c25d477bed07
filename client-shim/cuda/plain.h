/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Device memory for a server whose driver has no virtual memory management: the driver chooses the
 * addresses. The server allocates slabs, in which the client places most allocations without asking
 * (client-shim/cuda/slabs.h); a large allocation is one call. The client reserves the addresses of
 * both, because no host memory may be at an address of device memory: the direction of a copy is
 * derived from its addresses.
 *
 * A slab belongs to a context and ends with it. One lock for all contexts; it is held while the
 * server allocates a slab. Any thread.
 */
#ifndef OBC_PLAIN_H
#define OBC_PLAIN_H

#include "front/backend.h"
#include "protocol/control.h"

/* Once, after the welcome. */
void obc_plain_start(const struct obp_welcome *welcome);
/* As mem_alloc and mem_free of struct obf_backend. fence: wait for work that uses the memory. */
CUresult obc_plain_alloc(struct obf_ctx *ctx, struct obf_mem *mem);
CUresult obc_plain_free(const struct obf_mem *mem, bool fence);
/* Unused bytes of the device's slabs. */
uint64_t obc_plain_free_bytes(int device);
/* Returns the unused slabs of the device to the server. Returns the number of bytes. */
uint64_t obc_plain_trim(int device);
/* The context is about to be destroyed: the server drops its slabs then. */
void obc_plain_end(const struct obf_ctx *ctx);
/* The context has no allocations any more: gives up the addresses of its slabs. */
void obc_plain_release(const struct obf_ctx *ctx);

#endif
