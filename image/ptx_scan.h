/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obi_ptx: scans PTX text once for what a launch needs. It is not a parser: it skips instructions
 * and leaves errors in them to the compiler. No state; any thread. Grammar: PTX ISA, "Directives".
 */
#ifndef OBI_PTX_SCAN_H
#define OBI_PTX_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "image/builder.h"

/*
 * True when the text begins with .version, after white space and comments; never reads at or beyond
 * `size`, nor beyond a NUL.
 */
bool obi_ptx_is(const void *data, size_t size);
/*
 * Returns the SM number of .target, and the letter after it ('a', 'f' or 0); 0 when there is no
 * .target near the beginning.
 */
uint32_t obi_ptx_arch(const void *text, size_t size, char *ret_letter);
/*
 * Also sets builder->plain (image/ptx_plain.h). OB_ERR_LIMIT, OB_ERR_NO_MEMORY. In text that is not
 * PTX the scan stops at the first error, which the compiler reports.
 */
enum ob_err obi_ptx_scan(const char *text, size_t size, struct obi_builder *builder);

#endif
