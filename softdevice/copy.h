/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_copy: copies of rows between two addresses, and fills. Device memory is ordinary memory of
 * the process, so each row is copied by the CPU.
 */
#ifndef OBD_COPY_H
#define OBD_COPY_H

#include <stdbool.h>

#include "front/stream.h"

struct obd_op;

/*
 * Bytes of pageable memory that are copied to a buffer at the call. For more than that the call
 * waits.
 */
#define OBD_STAGE_MAX (64u << 10)

/* bytes; running an op of this size takes less time than waking a thread */
#define OBD_SHORT_MAX (64u << 10)

/* The front end's backend table (front/backend.h). */
CUresult obd_copy_write(
	struct obf_stream *stream, uint64_t dst, const void *src, size_t size, bool blocking);
CUresult obd_copy_read(
	struct obf_stream *stream, void *dst, uint64_t src, size_t size, bool blocking);
CUresult obd_copy_box(struct obf_stream *stream, const struct obf_copy *copy, bool blocking);
/* A copy whose addresses were checked, or are in arrays. */
CUresult obd_copy_checked(struct obf_stream *stream, const struct obf_copy *copy, bool blocking);
/* The check of one side: mappings without access, and queued frees. */
CUresult obd_copy_side_check(
	bool device, uint64_t addr, size_t pitch, size_t slice, const struct obf_copy *copy);
/* Copies at once. */
void obd_copy_rows(const struct obf_copy *copy);
CUresult obd_fill(struct obf_stream *stream, const struct obf_fill *fill);

/*
 * Runs the rows of a copy or a fill. Memory that has been unmapped since the op was submitted is an
 * illegal address, as for a kernel.
 */
void obd_copy_guarded(void (*rows)(void *op), struct obd_op *op);

#endif
