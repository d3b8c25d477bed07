/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Device printf: formats a format string and a buffer of packed arguments. Any thread. */
#ifndef OBD_CORE_FORMAT_H
#define OBD_CORE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Maximum bytes of one printf's format, and of its text; longer ones are cut. The default size of
 * the output buffer (CU_LIMIT_PRINTF_FIFO_SIZE) is the same.
 */
#define OBD_FORMAT_TEXT_MAX (1u << 20)

/*
 * fmt is a string in device memory. args is the address of the packed arguments; each lies at a
 * multiple of its size, which is 4 for int and 8 for all others. The caller frees *ret_text.
 * Returns the number of arguments used, as CUDA's printf does.
 * -1: error in the format; the text is what could be formatted.
 * -2: the arguments lie outside the window.
 * Unreadable device memory causes a fault before anything is allocated.
 */
int obd_format(const char *fmt, uint64_t args, uintptr_t window_base, size_t window_size,
	char **ret_text, size_t *ret_size);

#endif
