/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Contexts on the server: making and ending them, and waiting for them. Any thread. */
#ifndef OBC_CONTEXT_H
#define OBC_CONTEXT_H

#include "front/front.h"

/*
 * Kernels or host functions of the context that may be unfinished: a call which CUDA synchronises
 * implicitly must wait for these alone. Kernels are the only work that can fail once it is
 * accepted, and host functions use the program's memory. Costs launches nothing: they are counted
 * by the log anyway.
 */
bool obc_ctx_launched(struct obf_ctx *ctx);
/* The front end's backend table (front/backend.h). */
CUresult obc_ctx_create(struct obf_ctx *ctx);
CUresult obc_ctx_destroy(struct obf_ctx *ctx);
void obc_ctx_release(struct obf_ctx *ctx);
CUresult obc_ctx_synchronize(struct obf_ctx *ctx);
CUresult obc_ctx_settle(struct obf_ctx *ctx);
CUresult obc_ctx_limit(struct obf_ctx *ctx, CUlimit limit, bool set, size_t *value);

#endif
