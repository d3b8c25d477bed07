/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_scratch: the memory inside the window that the interpreter itself uses: parameters, shared
 * and local memory of running blocks. Every launch allocates and frees several pieces, so free
 * pieces are cached. Sizes are rounded up to powers of two. Small pieces are cut from slabs that
 * are never returned. Large pieces are returned to the system when the cache exceeds a limit.
 *
 * The contents of a piece are undefined. The free lists lie outside the window, where kernels
 * cannot reach them. Owned by the process; one lock; any thread.
 */
#ifndef OBD_SCRATCH_H
#define OBD_SCRATCH_H

#include <stddef.h>

#define OBD_SCRATCH_SMALLEST  4096u          /* bytes of the smallest piece */
#define OBD_SCRATCH_SMALL_MAX (1u << 20)     /* bytes; larger pieces get their own units */
#define OBD_SCRATCH_KEEP_MAX  (256ull << 20) /* bytes of free large pieces */

/* The callbacks of obd_env; `user` is not used. */
void *obd_scratch_alloc(void *user, size_t size, size_t align);
void obd_scratch_free(void *user, void *p, size_t size);

#endif
