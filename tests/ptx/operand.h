/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Operand types of PTX and the values that rows are tested with: edge values of each type, and
 * random values chosen so that carries, ties, cancellation and subnormals occur. One thread (edge
 * lists are made on first use).
 */
#ifndef OB_TESTS_PTX_OPERAND_H
#define OB_TESTS_PTX_OPERAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/ptx/softfloat.h"

enum pt_type {
	PT_NONE,
	PT_U8,
	PT_S8,
	PT_B8,
	PT_U16,
	PT_S16,
	PT_B16,
	PT_U32,
	PT_S32,
	PT_B32,
	PT_U64,
	PT_S64,
	PT_B64,
	PT_F16,
	PT_BF16,
	PT_F16X2,
	PT_BF16X2,
	PT_F32,
	PT_F64,
	PT_E4M3X2,
	PT_E5M2X2,
	PT_PRED,
	PT_TYPE_COUNT
};

/* The set from which an operand's values are drawn. */
enum pt_domain {
	PT_ANY,
	PT_SHIFT,    /* shift counts: near the widths, and very large ones */
	PT_BYTE,     /* bit position or length, as in bfe: 0 to 255, mostly small */
	PT_LANE,     /* 0 to 31 */
	PT_NONZERO,  /* divisors */
	PT_NEAR,     /* -64 to 64 */
	PT_TRIG,     /* f32 within 2 pi */
	PT_TRIG_BIG, /* f32 within 100 pi */
	PT_MIDDLE,   /* f32 with exponents far from both ends */
	PT_DOMAIN_COUNT
};

struct pt_rng {
	uint64_t state;
};

uint64_t pt_rng_next(struct pt_rng *r);
uint32_t pt_rng_below(struct pt_rng *r, uint32_t n);

const char *pt_type_name(enum pt_type t); /* "s32" */
enum pt_type pt_type_parse(const char *s, size_t n);
bool pt_domain_parse(const char *s, size_t n, enum pt_domain *ret);
/* value bits: 8 for u8; 32 for pred, which is passed as a word */
unsigned pt_type_bits(enum pt_type t);
bool pt_type_signed(enum pt_type t);
/* NULL for integers. For packed types: the format of one element. */
const struct pt_float_format *pt_type_format(enum pt_type t);
unsigned pt_type_lanes(enum pt_type t); /* 2 for packed types */

uint64_t pt_mask(unsigned bits);
int64_t pt_sext(uint64_t v, unsigned bits);

/*
 * Returns the edge values, in static storage. few: a shorter list, for rows with three operands.
 */
const uint64_t *pt_edges(enum pt_type t, enum pt_domain d, bool few, size_t *ret_n);

/* Returns a random value. near: an earlier operand; some values are chosen close to it. */
uint64_t pt_value(struct pt_rng *r, enum pt_type t, enum pt_domain d, uint64_t near);

#endif
