/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/bitmap.h"

void obd_bitmap_set(uint64_t *map, uint64_t first, uint64_t n, bool on)
{
	for (uint64_t i = first; i < first + n; i++) {
		if (on)
			map[i / 64] |= 1ull << (i % 64);
		else
			map[i / 64] &= ~(1ull << (i % 64));
	}
}

uint64_t obd_bitmap_find(const uint64_t *map, uint64_t from, uint64_t to, uint64_t n)
{
	uint64_t run = 0;

	for (uint64_t i = from; i < to; i++) {
		if (run == 0 && i % 64 == 0 && map[i / 64] == UINT64_MAX) {
			i += 63;
			continue;
		}
		run = map[i / 64] >> (i % 64) & 1 ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return OBD_BITMAP_NONE;
}
