/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Contexts on the server: create, destroy and wait. Any thread. */
#ifndef OBC_CONTEXT_H
#define OBC_CONTEXT_H

#include "front/front.h"

/*
 * Whether kernels, host functions or copies in the background of the context may be unfinished. A
 * call that CUDA synchronises implicitly must wait only for these: kernels are the only work that
 * can fail after it was accepted, and the other two use the program's memory. This adds no cost to
 * launches, because the log counts them anyway.
 */
bool obc_ctx_launched(struct obf_ctx *ctx);
/* For struct obf_backend. */
CUresult obc_ctx_create(struct obf_ctx *ctx);
CUresult obc_ctx_destroy(struct obf_ctx *ctx);
void obc_ctx_release(struct obf_ctx *ctx);
CUresult obc_ctx_synchronize(struct obf_ctx *ctx);
CUresult obc_ctx_settle(struct obf_ctx *ctx);
CUresult obc_ctx_limit(struct obf_ctx *ctx, CUlimit limit, bool set, size_t *value);

#endif
