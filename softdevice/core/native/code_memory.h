/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory for machine code. One range of the process, mapped twice: the code is written through one
 * mapping and executed through the other, so that no address is both. It is reserved when the
 * library is loaded, because a sandbox may forbid executable memory later. Pages take memory when
 * they are first written. Any thread.
 */
#ifndef OBD_CORE_CODE_MEMORY_H
#define OBD_CORE_CODE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* False: switched off (OUTBOARD_OPT=-jit), not x86-64, or the system gives no such memory. */
bool obd_code_memory_ready(void);
/*
 * Copies `size` bytes of code, which must not depend on its address. Returns where it runs. NULL:
 * no memory is left.
 */
void *obd_code_memory_add(const void *code, size_t size);
/* p: from obd_code_memory_add, with the same size. No thread runs it any more. */
void obd_code_memory_remove(void *p, size_t size);

#endif
