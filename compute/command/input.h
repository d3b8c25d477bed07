/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reads and writes the files of `outboard kzg` and `outboard ntt`: raw, or hex with or without 0x
 * and white space. Main thread only.
 */
#ifndef OBX_INPUT_H
#define OBX_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes n characters of hex into at most `room` bytes; each word may begin with 0x. False if it
 * is not hex or does not fit.
 */
bool obx_input_hex(const char *text, size_t n, uint8_t *out, size_t room, size_t *ret_bytes);
/*
 * Reads a whole file of at most `max` bytes. A longer file is decoded as hex. A shorter one is
 * decoded as hex if it consists only of 0x and hex digits. The caller frees the result. NULL: a
 * message was printed on stderr.
 */
uint8_t *obx_input_file(const char *verb, const char *path, size_t max, size_t *ret_bytes);
/* False: a message was printed on stderr. */
bool obx_output_file(const char *verb, const char *path, const void *data, size_t n);

#endif
