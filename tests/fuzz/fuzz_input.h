/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The input of a fuzz target, read as a list of choices from its first byte to its last. One per
 * process; one thread reads it. Every choice past the end is 0. An expression takes one choice at
 * most: of two, compilers take either first, and read what another has found as another input
 * (tools/dev/check-style looks).
 */
#ifndef OB_FUZZ_INPUT_H
#define OB_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Starts at the first byte. The bytes stay the caller's and must remain valid until the next start.
 */
void fuzz_input_start(const uint8_t *data, size_t size);
/* No byte is left. */
bool fuzz_used_up(void);
/* A choice from one byte: 0 to below - 1, below > 0. */
unsigned fuzz_take(unsigned below);
/* A choice from two bytes: 0 to 65535. */
unsigned fuzz_take_word(void);
/*
 * A byte of data that the input chooses takes a value of 0 to below - 1 that it chooses, too. size
 * > 0.
 */
void fuzz_take_change(void *data, size_t size, unsigned below);
/* The next bytes, copied; zeros past the end. */
void fuzz_take_bytes(void *data, size_t size);
/*
 * The next bytes where they lie in the input, at most max of them; *ret_size says how many there
 * are.
 */
const uint8_t *fuzz_take_span(size_t max, size_t *ret_size);

#endif
