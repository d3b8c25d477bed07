/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * pt_matrix: matrices of small integers for the cases of mma and wmma, and their elements in each
 * type. All sums are exact, so that the order of additions does not matter. One thread.
 */
#ifndef OB_TESTS_PTX_MATRIX_H
#define OB_TESTS_PTX_MATRIX_H

#include "tests/ptx/run.h"

enum pt_element {
	PT_M_F16,
	PT_M_BF16,
	PT_M_TF32,
	PT_M_E4M3,
	PT_M_E5M2,
	PT_M_S8,
	PT_M_U8,
	PT_M_S4,
	PT_M_U4,
	PT_M_B1,
	PT_M_F64,
	PT_M_F32,
	PT_M_S32,
	/* in bytes, with kind::f8f6f4 */
	PT_M_E2M1,
	PT_M_E2M3,
	PT_M_E3M2,
};

#define PT_MATRIX_MAX_K 256

/* d = a * b + c */
struct pt_matrix {
	unsigned m, n, k;
	int64_t a[32][PT_MATRIX_MAX_K], b[PT_MATRIX_MAX_K][32], c[32][32], d[32][32];
};

unsigned pt_element_bits(enum pt_element t);
const char *pt_element_name(enum pt_element t);
bool pt_element_integer(enum pt_element t);
/* The bits of v in the type. */
uint64_t pt_element_encode(enum pt_element t, int64_t v);
/* A random value of A or B. */
int64_t pt_element_random(struct pt_rng *r, enum pt_element t);

/* Fills a, b and c. Integer sums C use all 32 bits. */
void pt_matrix_fill(struct pt_rng *r, struct pt_matrix *m, enum pt_element a, enum pt_element b);
/* Computes d. b1: the number of bits of a & b, or of a ^ b. */
void pt_matrix_multiply(struct pt_matrix *m, enum pt_element a, bool is_and, bool saturate);

#endif
