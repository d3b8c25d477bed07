/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obi_ptx_merge: merges several PTX modules into the text of one, as a linker would. Names that are
 * local to a module are made unique. A declaration of a symbol that another module defines is
 * removed or becomes a forward declaration. The first of several weak definitions is kept.
 *
 *   head of the newest · declarations of functions · variables · functions with bodies
 *
 * All input is validated, and nothing is executed. No state; any thread.
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
 * Appends the merged text to `ret`. OB_ERR_IMAGE_DAMAGED: not PTX, or a symbol is defined twice;
 * log says which (cut at log_size bytes).
 */
enum ob_err obi_ptx_merge(
	const struct obi_ptx *inputs, size_t n, struct ob_buf *ret, char *log, size_t log_size);

/*
 * Links the separately compiled objects of an image (nvcc -rdc=true) again, for a device that
 * cannot use the linked cubin. The image contains them beside the cubin. The result is PTX text,
 * NUL-terminated. Objects without PTX for the device are left out; OB_ERR_IMAGE_NO_ENTRY: no object
 * has any.
 */
struct obi_image;
enum ob_err obi_image_relink(
	const struct obi_image *image, uint32_t cc, struct ob_buf *ret, char *log, size_t log_size);

#endif
