/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory for machine code. One range of the process, mapped twice: the code is written through one
 * mapping and executed through the other, so that no address is both. It is reserved when the library
 * is loaded, because a sandbox may forbid executable memory later. Pages take memory when they are first
 * written. Any thread.
 */
#ifndef OBD_CORE_CODE_MEMORY_H
#define OBD_CORE_CODE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* False: the system gives no such memory, or the processor has no code generator. */
bool obd_code_memory_ready(void);
/*
 * Takes `size` bytes for code and calls `fix`, which writes the code to `write`; it runs at `run`. Returns
 * `run`. NULL: no memory is left, and `fix` was not called.
 */
void *obd_code_memory_add(
	size_t size, void (*fix)(void *user, char *write, const char *run), void *user);
/* p: from obd_code_memory_add, with the same size. No thread runs it any more. */
void obd_code_memory_remove(void *p, size_t size);

#endif
