/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Fills, for the calls and for the nodes of graphs. */
#ifndef OBF_FILL_H
#define OBF_FILL_H

#include "front/front.h"

struct obf_stream;

/*
 * Checks a fill, whose element size is 1, 2 or 4. *ret_device: it is of device memory, else of
 * pinned memory; unset for an empty fill. CUDA_ERROR_INVALID_VALUE.
 */
CUresult obf_fill_check(const struct obf_fill *fill, bool *ret_device);
/* Puts a checked fill that is not empty into the stream. */
CUresult obf_fill_put(struct obf_stream *stream, const struct obf_fill *fill, bool device);

#endif
