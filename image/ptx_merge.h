/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obi_ptx_merge: several PTX modules made into the text of one, as a linker would: names that a
 * module keeps to itself are told apart, a declaration that another module defines is dropped or
 * turned into a forward one, of weak definitions the first is kept.
 *
 *   head of the newest · declarations of functions · variables · functions with bodies
 *
 * Text in, text out; nothing is executed and nothing is trusted. No state; any thread.
 */
#ifndef OBI_PTX_MERGE_H
#define OBI_PTX_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define OBI_MERGE_MAX_INPUTS 4096u
#define OBI_MERGE_MAX_DEPTH  256u /* of braces */

struct obi_ptx {
	const char *text; /* borrowed */
	size_t size;
	const char *name; /* for messages */
};

/*
 * Appends the merged text to `ret`. OB_ERR_IMAGE_DAMAGED: not PTX, or a symbol defined twice; log
 * (cut to log_size) says which.
 */
enum ob_err obi_ptx_merge(
	const struct obi_ptx *inputs, size_t n, struct ob_buf *ret, char *log, size_t log_size);

/*
 * What the separately compiled objects of an image hold beside the linked cubin (nvcc -rdc=true),
 * linked again for a device that takes no such cubin: PTX text, NUL-terminated. Objects without PTX
 * for the device are left out; OB_ERR_IMAGE_NO_ENTRY: all are.
 */
struct obi_image;
enum ob_err obi_image_relink(
	const struct obi_image *image, uint32_t cc, struct ob_buf *ret, char *log, size_t log_size);

#endif
