/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Bytes from and to the files of `outboard kzg` and `outboard ntt`: raw, or hex with or without 0x
 * and white space. Called by the main thread only.
 */
#ifndef OBX_INPUT_H
#define OBX_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Hex of n characters into at most `room` bytes; each word may begin with 0x. False if it is none
 * or does not fit.
 */
bool obx_input_hex(const char *text, size_t n, uint8_t *out, size_t room, size_t *ret_bytes);
/*
 * A whole file of at most `max` bytes; one longer than that is read as hex. A shorter one is hex if
 * it is nothing but hex digits after 0x. The caller frees it. NULL: said why on stderr.
 */
uint8_t *obx_input_file(const char *verb, const char *path, size_t max, size_t *ret_bytes);
/* False: said why on stderr. */
bool obx_output_file(const char *verb, const char *path, const void *data, size_t n);

#endif
