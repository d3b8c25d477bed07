/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Small parsers and printers that several programs share. No state; any thread. */
#ifndef OB_TEXT_H
#define OB_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OB_TEXT_DISTANCE_MAX 64u

/* "4096", "64K", "1.5G" (powers of 1024): bytes. False: not a size, or it does not fit. */
bool ob_text_parse_size(const char *text, uint64_t *ret_bytes);
/* A decimal number in [min, max]; nothing may follow it. */
bool ob_text_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret);
/* "1.5 GiB" into ret_text. */
void ob_text_print_size(uint64_t bytes, char *ret_text, size_t size);
/*
 * Levenshtein's distance: how many characters must be changed, added or left out to make one of the
 * other. For "did you mean". b's that are longer than OB_TEXT_DISTANCE_MAX are as far as that.
 */
unsigned ob_text_distance(const char *a, const char *b);
/* Lower-case hexadecimal; ret_text takes 2 * n + 1 bytes. */
void ob_text_hex(const void *data, size_t n, char *ret_text);

#endif
