/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the operations share beyond the generated prototypes. */
#ifndef OBS_OPS_H
#define OBS_OPS_H

#include "server/worker/context.h"
#include "server/worker/end.h"
#include "server/worker/exec.h"
#include "server/worker/record.h"
#include "server/worker/reply.h"

/*
 * Gives back what was charged for a module with an image of `size` bytes in this context. 0:
 * nothing was charged.
 */
void obs_module_discharge(const struct obs_context *context, uint64_t size);

/*
 * May there be one more module? CUDA_ERROR_OUT_OF_MEMORY if not, or x->refused. Executor. For
 * streams, events, functions and other handles obs_handle_room (protocol/obs_dispatch.h) says so.
 */
CUresult obs_module_room(struct obs_exec *x);

#endif
