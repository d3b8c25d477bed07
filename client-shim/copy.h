/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Copies and fills: bytes or packed rows on the wire. To the
 * device: the bytes are in the log (or with the server) when the call returns, so the host memory
 * is free again. From the device: the call returns when the bytes are there, also in the
 * asynchronous forms. No state; any thread.
 */
#ifndef OBC_COPY_H
#define OBC_COPY_H

#include "client-shim/stream.h"

#define OBC_SCATTER_BYTES (4u << 20) /* rows received at once when the host side has gaps */

/* The front end's backend table (front/backend.h). */
CUresult obc_copy_write(
	struct obf_stream *stream, uint64_t dst, const void *src, size_t size, bool blocking);
CUresult obc_copy_read(
	struct obf_stream *stream, void *dst, uint64_t src, size_t size, bool blocking);
CUresult obc_copy_box(struct obf_stream *stream, const struct obf_copy *copy, bool blocking);
CUresult obc_copy_fill(struct obf_stream *stream, const struct obf_fill *fill);

#endif
