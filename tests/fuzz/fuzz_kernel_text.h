/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Text of a kernel in PTX, put together from templates, and memory functions for a device whose
 * memory is released all at once. One text per process; one thread writes it.
 */
#ifndef OB_FUZZ_KERNEL_TEXT_H
#define OB_FUZZ_KERNEL_TEXT_H

#include <stddef.h>

#define FUZZ_PTX_MAX 65536u

/* The text so far, with a 0 behind it. What does not fit is left out. */
extern char fuzz_ptx[FUZZ_PTX_MAX];
extern size_t fuzz_ptx_size;

/* Starts a new text. */
void fuzz_ptx_start(const char *head);
void fuzz_put(const char *s);
void fuzz_put_number(const char *before, long long v);
/*
 * Writes a statement and its semicolon. For each of the letters in the pattern, put_word is called
 * instead.
 */
void fuzz_put_statement(const char *pattern, const char *letters, void (*put_word)(char letter));

/* For obd_env.free and obd_env.scratch_free: they do nothing. */
void fuzz_memory_keep(void *user, void *p);
void fuzz_scratch_keep(void *user, void *p, size_t size);

#endif
