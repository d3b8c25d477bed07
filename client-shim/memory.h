/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_memory: device memory of the session. One heap per device inside the range that client and
 * server hold in common, or, when the driver cannot map memory where we want it, the driver's own
 * addresses. Every allocation stands in the front end's map (obf_mem), with the heap's block in
 * obf_mem.backend. Any thread.
 */
#ifndef OBC_MEMORY_H
#define OBC_MEMORY_H

#include "front/front.h"
#include "protocol/control.h"

/* From the hello. False: the ranges are unusable. */
bool obc_memory_start(const struct obp_welcome *welcome);
/* The front end's backend table (front/backend.h). */
CUresult obc_memory_alloc(struct obf_ctx *ctx, struct obf_mem *mem);
CUresult obc_memory_free(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use);
CUresult obc_memory_info(struct obf_ctx *ctx, uint64_t *ret_free, uint64_t *ret_total);
/* Gives back every page that lies idle. */
void obc_memory_trim(int device);

#endif
