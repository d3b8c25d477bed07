/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_copy: copies of rows between two addresses, whose device memory is memory too, and fills.
 */
#ifndef OBD_COPY_H
#define OBD_COPY_H

#include <stdbool.h>

#include "front/stream.h"

/* bytes of pageable memory that are taken along; more are waited for */
#define OBD_STAGE_MAX (64u << 10)

#define OBD_SHORT_MAX (64u << 10) /* bytes; less work than waking a thread is worth */

/* The front end's backend table (front/backend.h). */
CUresult obd_copy_write(
	struct obf_stream *stream, uint64_t dst, const void *src, size_t size, bool blocking);
CUresult obd_copy_read(
	struct obf_stream *stream, void *dst, uint64_t src, size_t size, bool blocking);
CUresult obd_copy_box(struct obf_stream *stream, const struct obf_copy *copy, bool blocking);
CUresult obd_fill(struct obf_stream *stream, const struct obf_fill *fill);

#endif
