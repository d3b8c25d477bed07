/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * How numbers and words are written into CSV, JSON and names of folders: the same bytes on every
 * run, whatever the locale. No state; any thread.
 */
#ifndef OBX_RQA_FORMAT_H
#define OBX_RQA_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OBX_NUMBER_MAX    32 /* bytes that a printed number takes at most, its end included */
#define OBX_NUMBER_DIGITS 12

/*
 * `digits` significant digits (1..17), trailing zeros dropped: "0.05", "13", "2.5e-07", "nan". The same text as printf's %g gives,
 * whole numbers below 10^9 aside, which are written out; up to 13 digits by integer arithmetic, an
 * order of magnitude faster (long forms of sweeps have tens of millions of numbers). Returns the
 * length.
 */
size_t obx_number_print(double value, int digits, char *ret_text);
/* As few digits as give back the same number. */
size_t obx_number_exact(double value, char *ret_text);
/* "1,234,567". ret_text takes OBX_NUMBER_MAX bytes. Returns ret_text. */
const char *obx_number_group(uint64_t value, char *ret_text);
/* "0:07", "12:40", "3:05:00"; "-:--" when not known. Returns ret_text. */
const char *obx_time_print(double seconds, char *ret_text, size_t size);
/* Quoted as RFC 4180 asks when it holds a comma, a quote or a line end. */
void obx_csv_print(FILE *file, const char *text);
/* A JSON string with its quotes; bytes that are not valid UTF-8 become U+FFFD. */
void obx_json_print(FILE *file, const char *text);
/* A JSON number, or null for NaN and infinity. */
void obx_json_number(FILE *file, double value);

#endif
