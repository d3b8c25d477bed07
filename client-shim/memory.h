/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_memory: device memory of the session. One heap per device inside the range that client and
 * server hold in common, or, when the driver cannot map memory where we want it, the driver's own
 * addresses. Every allocation stands in the front end's map (obf_mem), with the heap's block in
 * obf_mem.host. Any thread.
 */
#ifndef OBC_MEMORY_H
#define OBC_MEMORY_H

#include "client-shim/context.h"
#include "front/front.h"
#include "protocol/control.h"

/* From the hello. False: the ranges are unusable. */
bool obc_memory_start(const struct obp_welcome *welcome);
/*
 * An allocation of the context, in the map. pool: its owner, or NULL. May ask the server; never a
 * pending error's carrier.
 */
CUresult obc_memory_alloc(struct obf_ctx *ctx, size_t size, CUmemoryPool pool, uint64_t *ret_addr);
/*
 * Gives back what was removed from the map: tells the server, then the heap. fence: unfinished work
 * may still use it, so the server waits before it goes on.
 */
CUresult obc_memory_release(const struct obf_mem *mem, bool fence);
/* For obf_mem_remove_ctx: the context is gone, and with it all its work. */
void obc_memory_gone(const struct obf_mem *mem);
/* Gives back every page that lies idle. */
void obc_memory_trim(int device);

#endif
