/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* obd_bitmap against a model with one byte for each unit. */
#include "softdevice/bitmap.h"
#include "tests/test.h"

#define UNITS 200

static uint64_t map[OBD_BITMAP_WORDS(UNITS)];
static bool used[UNITS];
static uint32_t state = 1;

static uint32_t draw(uint32_t below)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % below;
}

static uint64_t model_find(uint64_t from, uint64_t to, uint64_t n)
{
	for (uint64_t first = from; first + n <= to; first++) {
		uint64_t i = 0;

		while (i < n && !used[first + i])
			i++;
		if (i == n)
			return first;
	}
	return OBD_BITMAP_NONE;
}

TEST(against_model)
{
	for (int step = 0; step < 100000; step++) {
		uint64_t first = draw(UNITS), n = 1 + draw((uint32_t)(UNITS - first)), from, want;
		bool on = draw(3) != 0;

		if (step % 4)
			n = 1 + n % 5 <= UNITS - first ? 1 + n % 5 : 1;
		obd_bitmap_set(map, first, n, on);
		for (uint64_t i = first; i < first + n; i++)
			used[i] = on;
		n = 1 + draw(step % 2 ? 4 : 70);
		from = draw(UNITS);
		want = model_find(from, UNITS, n);
		CHECK(obd_bitmap_find(map, from, UNITS, n) == want);
		CHECK(obd_bitmap_find(map, 0, from, n) == model_find(0, from, n));
	}
}

TEST(edges)
{
	CHECK(obd_bitmap_find(map, 0, UNITS, UNITS) == 0);
	CHECK(obd_bitmap_find(map, 0, UNITS, UNITS + 1) == OBD_BITMAP_NONE);
	CHECK(obd_bitmap_find(map, UNITS, UNITS, 1) == OBD_BITMAP_NONE);
	/* full words are skipped; a run may begin in the middle of one and cross into the next */
	obd_bitmap_set(map, 0, 130, true);
	CHECK(obd_bitmap_find(map, 0, UNITS, 1) == 130);
	CHECK(obd_bitmap_find(map, 0, UNITS, 70) == 130);
	CHECK(obd_bitmap_find(map, 0, UNITS, 71) == OBD_BITMAP_NONE);
	obd_bitmap_set(map, 60, 8, false);
	CHECK(obd_bitmap_find(map, 0, UNITS, 8) == 60);
	CHECK(obd_bitmap_find(map, 0, UNITS, 9) == 130);
	CHECK(obd_bitmap_find(map, 61, UNITS, 8) == 130);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
