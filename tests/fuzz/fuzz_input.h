/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The input of a fuzz target, read as a list of choices from its first byte to its last. One per
 * process; one thread reads it. Every choice past the end is 0. An expression must take at most one
 * choice: compilers evaluate two in different orders, so that an input found with one compiler
 * would mean something else with another (tools/dev/check-style checks this).
 */
#ifndef OB_FUZZ_INPUT_H
#define OB_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Starts at the first byte. The caller keeps ownership of the bytes, which must remain valid until
 * the next start.
 */
void fuzz_input_start(const uint8_t *data, size_t size);
/* Whether no byte is left. */
bool fuzz_used_up(void);
/* Takes a choice from one byte: 0 to below - 1; below > 0. */
unsigned fuzz_take(unsigned below);
/* Takes a choice from two bytes: 0 to 65535. */
unsigned fuzz_take_word(void);
/*
 * Sets one byte of data to a value of 0 to below - 1. The input chooses both the byte and the
 * value. size > 0.
 */
void fuzz_take_change(void *data, size_t size, unsigned below);
/* Copies the next bytes; zeros past the end. */
void fuzz_take_bytes(void *data, size_t size);
/* Returns a pointer to the next bytes in the input. *ret_size: their number, at most max. */
const uint8_t *fuzz_take_span(size_t max, size_t *ret_size);

#endif
