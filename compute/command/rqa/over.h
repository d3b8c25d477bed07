/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Records what a mean of a sweep's rows covers: how many files, modes and values of each parameter.
 * Zeroed before use; one owner.
 */
#ifndef OBX_RQA_OVER_H
#define OBX_RQA_OVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of the columns of results.csv. */
enum obx_over_dimension {
	OBX_OVER_FILE,
	OBX_OVER_MODE,
	OBX_OVER_M,
	OBX_OVER_TAU,
	OBX_OVER_EPS,
	OBX_OVER_LMIN,
	OBX_OVER_DIMENSIONS
};

#define OBX_OVER_TEXT_MAX 400
#define OBX_OVER_NAME_MAX 128

struct obx_over {
	struct obx_over_values {
		uint64_t *keys; /* a hash table; 0: an empty entry */
		uint32_t capacity, count;
		uint64_t last;                 /* the most recent key */
		char first[OBX_OVER_NAME_MAX]; /* the first value, as text */
	} of[OBX_OVER_DIMENSIONS];
};

/* "file", "mode", "m" ... */
const char *obx_over_name(enum obx_over_dimension d);
/* key: the value, or a hash of it. False: out of memory. */
bool obx_over_add(struct obx_over *over, enum obx_over_dimension d, uint64_t key);
/*
 * "5 files, 2 modes, 2 values of lmin"; "" if no dimension except x and y has more than one value.
 */
void obx_over_text(const struct obx_over *over, const char *x, const char *y,
	char ret_text[OBX_OVER_TEXT_MAX]);
/* The dimensions with a single value, except x and y: "mode=1D-x tau=1". */
void obx_over_fixed(const struct obx_over *over, const char *x, const char *y,
	char ret_text[OBX_OVER_TEXT_MAX]);
/*
 * A choice for --where that leaves a single value for each dimension except x and y: "mode=1D-x
 * tau=1 lmin=2". A file is named only if nothing else is left to choose.
 */
void obx_over_choice(const struct obx_over *over, const char *x, const char *y,
	char ret_text[OBX_OVER_TEXT_MAX]);
void obx_over_fini(struct obx_over *over);

#endif
