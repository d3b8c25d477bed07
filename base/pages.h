/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Gives memory back to the system. free alone often does not: malloc keeps freed memory, and after
 * the first large free it no longer returns blocks of that size. Any thread; no state.
 */
#ifndef OB_PAGES_H
#define OB_PAGES_H

#include <stddef.h>

/*
 * Drops the contents of the whole pages inside [p, p + size), which is private memory of the
 * process. The memory stays mapped. Pages of malloc or an anonymous mapping read as zero
 * afterwards, pages of a file as the file. If the kernel refuses (locked memory), the contents
 * stay.
 */
void ob_pages_discard(void *p, size_t size);

/*
 * Zeroed memory for a large object, of which only the pages that are used take memory. Aligned to
 * 64 bytes. NULL: out of memory. The free returns it to the system at once; NULL is allowed.
 */
void *ob_pages_alloc(size_t size);
void ob_pages_free(void *p);

#endif
