/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Green contexts of the software device: it splits its multiprocessors by CUDA's documented rules.
 * The multiprocessors are threads of one pool: kernels in a green context's streams run on that
 * part of the threads that its multiprocessors are of the device's, rounded up. Graphs run on all
 * of them, as graphs of a device run where they were recorded. For struct obf_backend. Any thread.
 */
#ifndef OBD_GREEN_H
#define OBD_GREEN_H

#include "front/backend.h"
#include "front/green_view.h"

struct obd_limit;

CUresult obd_green_split(const struct obf_split *split, struct obf_split_made *ret);
CUresult obd_green_create(struct obf_green *green, const struct obf_sm_share *share);
void obd_green_destroy(const struct obf_green *green);

/* The limit of the threads that run its kernels, valid for ever; NULL: none. */
static inline struct obd_limit *obd_green_limit(const struct obf_green *green)
{
	return green ? green->backend : NULL;
}

#endif
