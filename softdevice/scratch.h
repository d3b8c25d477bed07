/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_scratch: the interpreter's own memory inside the window: parameters, shared and local memory
 * of running blocks. Every launch takes and gives back several pieces, so they are kept: sizes are
 * rounded up to powers of two, small ones are cut from slabs that stay, large ones go back to the
 * system beyond a limit. Contents are what the last user left. The lists lie outside the window,
 * where no kernel can reach them. The process owns all; one lock; any thread.
 */
#ifndef OBD_SCRATCH_H
#define OBD_SCRATCH_H

#include <stddef.h>

#define OBD_SCRATCH_LEAST     4096u          /* bytes of the smallest piece */
#define OBD_SCRATCH_SMALL_MAX (1u << 20)     /* bytes; larger pieces lie alone */
#define OBD_SCRATCH_KEEP_MAX  (256ull << 20) /* bytes of large pieces that are kept */

/* The callbacks of obd_env; user is not used. */
void *obd_scratch_alloc(void *user, size_t size, size_t align);
void obd_scratch_free(void *user, void *p, size_t size);

#endif
