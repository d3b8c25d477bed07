/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Copies and fills. Bytes or packed rows travel on the wire. After a copy to the device returns,
 * the bytes are in the log or on the server, so the program may change its memory. A copy from the
 * device returns when the bytes have arrived, also in the asynchronous forms. No state; any thread.
 */
#ifndef OBC_COPY_H
#define OBC_COPY_H

#include "client-shim/cuda/stream.h"

/* bytes of rows received at once when the host rows have gaps */
#define OBC_SCATTER_BYTES (4u << 20)

/* For struct obf_backend. */
CUresult obc_copy_write(
	struct obf_stream *stream, uint64_t dst, const void *src, size_t size, bool blocking);
CUresult obc_copy_read(
	struct obf_stream *stream, void *dst, uint64_t src, size_t size, bool blocking);
CUresult obc_copy_box(struct obf_stream *stream, const struct obf_copy *copy, bool blocking);
CUresult obc_copy_fill(struct obf_stream *stream, const struct obf_fill *fill);

/* Before pinned memory is freed or unregistered: no copy of background.h uses it any more. */
void obc_host_range(const void *p, size_t size, bool added);

#endif
