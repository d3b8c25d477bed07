/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Small parsers and printers that several programs share. No state; any thread. */
#ifndef OB_TEXT_H
#define OB_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OB_TEXT_DISTANCE_MAX   64u
/* The software device's compute capability unless set, and the greatest: 13.0. */
#define OB_TEXT_CAPABILITY_MAX 130u

/*
 * Parses a number of bytes: "4096", "64K", "1.5G" (powers of 1024). False: not a size, or it does
 * not fit.
 */
bool ob_text_parse_size(const char *text, uint64_t *ret_bytes);
/* Parses a decimal number in [min, max] that ends with the text. False: anything else. */
bool ob_text_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret);
/*
 * Parses a compute capability from 5.0 to 13.0 of the software device, "9.0", to 90. False: anything
 * else.
 */
bool ob_text_parse_capability(const char *text, unsigned *ret);
/* Writes a size like "1.5 GiB" to ret_text. */
void ob_text_print_size(uint64_t bytes, char *ret_text, size_t size);
/*
 * Levenshtein distance: how many characters must be changed, inserted or deleted to turn one text
 * into the other. Used for "did you mean". If b is longer than OB_TEXT_DISTANCE_MAX, the result is
 * OB_TEXT_DISTANCE_MAX.
 */
unsigned ob_text_distance(const char *a, const char *b);
/* Lower-case hexadecimal; ret_text takes 2 * n + 1 bytes. */
void ob_text_hex(const void *data, size_t n, char *ret_text);

#endif
