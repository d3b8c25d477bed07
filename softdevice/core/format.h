/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Device printf: a format string and a packed argument buffer into text. Any thread. */
#ifndef OBD_CORE_FORMAT_H
#define OBD_CORE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/*
 * bytes of one printf's text, and of its format; what is longer is cut. A device's buffer for all
 * of them is as large
 */
#define OBD_FORMAT_TEXT_MAX (1u << 20)

/*
 * fmt lies in device memory; args is the address of the packed arguments (each at a multiple of its
 * size: 4 for int, 8 for the rest). *ret_text is the caller's to free. Returns the number of
 * arguments used, as CUDA's printf does;
 * -1: format with an error (the text is what could be formatted); -2: the arguments lie outside the window.
 * Device memory that cannot be read faults before anything is allocated.
 */
int obd_format(const char *fmt, uint64_t args, uintptr_t window_base, size_t window_size,
	char **ret_text, size_t *ret_size);

#endif
