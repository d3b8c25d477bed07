/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_bitmap: one bit for each unit of a space that is allocated in runs of units; a set bit marks
 * a unit in use. The array belongs to the caller, whose lock guards it. Its length is rounded up to
 * whole words of 64 bits, and the bits of the last word beyond the units are 0.
 */
#ifndef OBD_BITMAP_H
#define OBD_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

#define OBD_BITMAP_NONE     UINT64_MAX
/* number of words for n units */
#define OBD_BITMAP_WORDS(n) (((n) + 63) / 64)

void obd_bitmap_set(uint64_t *map, uint64_t first, uint64_t n, bool on);
/* The start of the first run of n > 0 clear bits in [from, to). OBD_BITMAP_NONE: there is none. */
uint64_t obd_bitmap_find(const uint64_t *map, uint64_t from, uint64_t to, uint64_t n);

#endif
