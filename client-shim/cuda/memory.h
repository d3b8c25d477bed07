/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_memory: device memory of the session. Each device has one heap inside the range that client
 * and server have both reserved. If the server's driver cannot map memory at chosen addresses, the
 * driver chooses the addresses. Every allocation is in the front end's map (obf_mem), and
 * obf_mem.backend points to the heap's block. Any thread.
 */
#ifndef OBC_MEMORY_H
#define OBC_MEMORY_H

#include "front/front.h"
#include "protocol/control.h"

/* Called after the hello. False: the ranges are unusable. */
bool obc_memory_start(const struct obp_welcome *welcome);
/* For struct obf_backend. */
CUresult obc_memory_alloc(struct obf_ctx *ctx, struct obf_mem *mem);
CUresult obc_memory_free(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use);
CUresult obc_memory_info(struct obf_ctx *ctx, uint64_t *ret_free, uint64_t *ret_total);
/* Gives every unused page back to the device. */
void obc_memory_trim(int device);

#endif
