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

/* ---- for copies with arrays (array.c) ---- */

/* A copy is ordered in its stream: when its bytes have arrived, all earlier work is complete. */
CUresult obc_copy_arrived(struct obc_stream *at, uint64_t launches, CUresult result);
/*
 * After an upload by a call that is not "Async": above OBF_COPY_SMALL bytes the call waits for its
 * stream if need be. So does a smaller one while copies are pending in the background: the server
 * may hold the upload back for long. `launches`: the count before the upload.
 */
CUresult obc_copy_uploaded(struct obc_stream *at, uint64_t launches, size_t size);
/* The context's id on the wire; 0: not a peer copy. */
uint64_t obc_copy_peer(const struct obf_ctx *ctx);
/*
 * Host functions that are ordered before a copy may still write its source: waits for the stream.
 */
CUresult obc_copy_before_host_read(struct obc_stream *at);

/* Before pinned memory is freed or unregistered: no copy of background.h uses it any more. */
void obc_host_range(const void *p, size_t size, bool added);

#endif
