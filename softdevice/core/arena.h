/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* obd_arena: memory that is freed all at once. Owned by its creator; one thread at a time. */
#ifndef OBD_CORE_ARENA_H
#define OBD_CORE_ARENA_H

#include <stddef.h>

struct obd_arena;

struct obd_arena *obd_arena_new(void); /* NULL: out of memory */
void obd_arena_free(struct obd_arena *a);
/* Zero-filled, aligned to 16. NULL: out of memory. */
void *obd_arena_alloc(struct obd_arena *a, size_t size);
/* A copy of `size` bytes, followed by a NUL. */
char *obd_arena_copy(struct obd_arena *a, const void *p, size_t size);

#endif
