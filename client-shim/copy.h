/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Copies: every form that programs have, reduced to bytes or packed rows on the wire. To the
 * device: the bytes are in the log (or with the server) when the call returns, so the host memory
 * is free again. From the device: the call returns when the bytes are there, also in the
 * asynchronous forms. No state; any thread.
 */
#ifndef OBC_COPY_H
#define OBC_COPY_H

#include "client-shim/stream.h"

#define OBC_SCATTER_BYTES (4u << 20) /* rows received at once when the host side has gaps */

/* A resolved copy between host and device in any combination. Exposed for its unit test. */
CUresult obc_copy_box(struct obf_ctx *ctx, const struct obc_lane_of *at,
	const struct obf_copy3d *copy, uint64_t dst_ctx, uint64_t src_ctx);

#endif
