/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_ptx_merge: several PTX modules made into the text of one, as a linker would: names that a module keeps to itself are told
 * apart, a declaration that another module defines is dropped or turned into a forward one, of weak definitions the first is kept.
 *
 *   head of the newest · declarations of functions · variables · functions with bodies
 *
 * Text in, text out; nothing is executed and nothing is trusted. No state; any thread.
 */
#ifndef OBD_PTX_MERGE_H
#define OBD_PTX_MERGE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/cuda_types.h"

#define OBD_MERGE_MAX_INPUTS 4096u
#define OBD_MERGE_MAX_DEPTH 256u     /* of braces */

struct obd_ptx {
	const char *text;            /* borrowed */
	size_t size;
	const char *name;            /* for messages */
};

/*
 * Appends the merged text to `ret`. CUDA_ERROR_INVALID_PTX: not PTX, or a symbol defined twice; log (cut to log_size) says which.
 */
CUresult obd_ptx_merge(const struct obd_ptx *inputs, size_t n, struct ob_buf *ret, char *log, size_t log_size);

#endif
