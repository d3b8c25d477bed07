/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A stream whose peer is the fuzz target. Bytes that the code under test sends are dropped. It
 * receives the content of a buffer, the wire, which the target fills. One wire per process; one
 * thread uses it. A target may combine these functions with its own in a struct obt_ops.
 */
#ifndef OB_FUZZ_STREAM_H
#define OB_FUZZ_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/conn.h"
#include "protocol/control.h"
#include "transport/stream.h"

#define FUZZ_WIRE_MAX (3u << 20)

struct fuzz_wire {
	_Alignas(8) uint8_t data[FUZZ_WIRE_MAX]; /* the first frame can be read in place */
	size_t size, at;                         /* bytes appended; bytes of them received */
};

extern struct fuzz_wire fuzz_wire;

void fuzz_wire_clear(void);
/* Appends bytes; bytes that do not fit are dropped. */
void fuzz_wire_put(const void *data, size_t size);
/* Appends a frame: the header unchanged, the payload, zeros up to a multiple of 8 bytes. */
void fuzz_wire_put_frame(const struct obp_frame *frame, const void *payload, size_t size);
/* Appends a control message in a separate frame; nothing when it cannot be encoded. */
void fuzz_wire_put_message(const struct obp_message *message);

/* Accepts every byte. */
ssize_t fuzz_stream_send(struct obt_stream *stream, const struct iovec *iov, int n, bool block);
/*
 * Receives the wire's next bytes, without blocking; 0, the end of the connection, after the last
 * one.
 */
ssize_t fuzz_stream_recv(struct obt_stream *stream, void *data, size_t size, bool block);
void fuzz_stream_close(struct obt_stream *stream);

extern const struct obt_ops fuzz_stream_ops; /* the three functions above */

#endif
