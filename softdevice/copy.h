/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_copy: copies of rows between two addresses, of whatever kind: device memory is memory.
 *
 * What CUDA promises of the two kinds of host memory is kept: a copy from pageable memory has read
 * it when the call returns, one to pageable memory has written it; pinned memory is read and
 * written when the stream comes to it. Any thread.
 */
#ifndef OBD_COPY_H
#define OBD_COPY_H

#include <stdbool.h>

#include "front/front.h"

/* bytes of pageable memory that are taken along; more are waited for */
#define OBD_STAGE_MAX (64u << 10)

#define OBD_SHORT_MAX (64u << 10) /* bytes; less work than waking a thread is worth */

enum obd_copy_mode {
	OBD_COPY_BLOCKING,
	OBD_COPY_ASYNC,
};

CUresult obd_copy_do(const struct obf_copy3d *copy, enum obd_copy_mode mode, CUstream stream);

/*
 * [addr, addr + size) may be used where a call takes a CUdeviceptr: device memory, or pinned host
 * memory.
 */
CUresult obd_copy_check(uint64_t addr, uint64_t size);

#endif
