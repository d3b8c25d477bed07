/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What `outboard kzg` reads: options in hex, and files of blobs, points and cells. One thread. */
#ifndef OBX_KZG_INPUT_H
#define OBX_KZG_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes `want` bytes of hex from the command line; false: a message was printed. */
bool obx_kzg_take_hex(const char *option, const char *text, uint8_t *ret, size_t want);
/* Reads the file of one blob. The caller frees it. NULL: a message was printed. */
uint8_t *obx_kzg_take_blob(const char *path);
/*
 * Reads a file with items of `each` bytes, *n of them (0: as many as it contains, at most `most`).
 * The caller frees it. NULL: a message was printed.
 */
uint8_t *obx_kzg_take_items(
	const char *option, const char *path, size_t each, size_t most, size_t *n);
/* Parses at most `room` numbers; 0: the list is empty or invalid. */
size_t obx_kzg_take_indices(const char *text, uint64_t *ret_indices, size_t room);

#endif
