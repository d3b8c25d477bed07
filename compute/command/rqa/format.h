/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Formatting of numbers and words in CSV and folder names: the same bytes on every run,
 * whatever the locale. No state; any thread.
 */
#ifndef OBX_RQA_FORMAT_H
#define OBX_RQA_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OBX_NUMBER_MAX    32 /* most bytes in a formatted number, with its terminating zero */
#define OBX_NUMBER_DIGITS 12

/*
 * `digits` significant digits (1..17), without trailing zeros: "0.05", "13", "2.5e-07", "nan". The
 * text is that of printf's %g, except that whole numbers below 10^9 have no exponent. Up to 13
 * digits are computed with integer arithmetic, which is an order of magnitude faster (the long form
 * of a sweep has tens of millions of numbers). Returns the length.
 */
size_t obx_number_print(double value, int digits, char *ret_text);
/* The fewest digits from which the same number is read again. */
size_t obx_number_exact(double value, char *ret_text);
/* "1,234,567". ret_text has OBX_NUMBER_MAX bytes. Returns ret_text. */
const char *obx_number_group(uint64_t value, char *ret_text);
/* Quoted as RFC 4180 asks when it holds a comma, a quote or a line end. */
void obx_csv_print(FILE *file, const char *text);

#endif
