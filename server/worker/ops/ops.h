/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the operations (ops_*.c) share beyond the generated prototypes. */
#ifndef OBS_OPS_H
#define OBS_OPS_H

#include "server/worker/exec.h"

/*
 * A module with an image of `size` bytes is gone from its context: what was charged for it goes
 * back. 0: nothing was.
 */
void obs_module_discharge(const struct obs_context *context, uint64_t size);
/*
 * An OBP_OP_WRITE whose data is still in the socket: received straight into page-locked memory.
 * False: the connection broke, nothing was done.
 */
bool obs_big_write(struct obs_exec *x, const struct obp_item *item);

#endif
