/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_array: the memory of an array, in the layout that its descriptor has: element by element, row
 * by row, slice by slice, without gaps. Levels of a mipmapped array and planes of an array lie one
 * after the other, each at a multiple of OBD_ARRAY_ALIGN. Programs cannot see the layout.
 * Any thread.
 */
#ifndef OBD_ARRAY_H
#define OBD_ARRAY_H

#include "front/array.h"

#define OBD_ARRAY_ALIGN 512u /* bytes */

struct obd_alloc;

struct obd_array {
	struct obd_alloc *alloc; /* NULL: a part, which uses the memory of its array */
	uint64_t base;
	size_t pitch, slice; /* bytes; 0: a planar format, which is copied plane by plane */
};

/* Bytes before part `number`; of all parts if there are no more. */
uint64_t obd_array_offset(const struct obf_array *array, unsigned number);

/* The front end's backend table (front/backend.h). */
CUresult obd_array_create(struct obf_array *array);
CUresult obd_array_destroy(struct obf_array *array, bool ctx_ended);
CUresult obd_array_part(struct obf_array *array);
CUresult obd_array_copy(
	struct obf_stream *stream, const struct obf_array_copy *copy, bool blocking);

#endif
