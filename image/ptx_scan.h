/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obi_ptx: one quick pass over PTX text for what a launch needs. Not a parser: instructions are
 * skipped, errors in them are the compiler's to find. Bytes only; no state, any thread. Grammar:
 * PTX ISA, "Directives".
 */
#ifndef OBI_PTX_SCAN_H
#define OBI_PTX_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "image/builder.h"

/*
 * True when the text begins with .version after blanks and comments; never reads at or beyond
 * `size`, nor past a NUL.
 */
bool obi_ptx_is(const void *data, size_t size);
/*
 * The .target's SM number, and the letter after it ('a', 'f' or 0); 0 when there is none near the
 * top.
 */
uint32_t obi_ptx_arch(const void *text, size_t size, char *ret_letter);
/*
 * Sets builder->plain too (image/ptx_plain.h). OB_ERR_LIMIT, OB_ERR_NO_MEMORY. Text that is not PTX
 * is scanned up to where that shows: its errors are the compiler's to report.
 */
enum ob_err obi_ptx_scan(const char *text, size_t size, struct obi_builder *builder);

#endif
