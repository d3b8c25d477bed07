/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * BLS12-381 G1 by OpenSSL's generic curves: arithmetic nobody here wrote. Slow (half a millisecond
 * a product); test-only. One thread. Points travel as 96 uncompressed bytes in the ZCash encoding,
 * scalars as 32 bytes, the highest first.
 */
#ifndef OBK_TEST_ORACLE_H
#define OBK_TEST_ORACLE_H

#include <stddef.h>
#include <stdint.h>

/* out = k P; P = NULL is the generator. */
void oracle_mul(uint8_t out[96], const uint8_t point[96], const uint8_t k[32]);
void oracle_add(uint8_t out[96], const uint8_t p[96], const uint8_t q[96]);
/* out = sum of k_i P_i. */
void oracle_msm(uint8_t out[96], const uint8_t *points, const uint8_t *scalars, size_t n);
/* out = a b mod m and 1 / a mod m, numbers of n bytes, the highest first. */
void oracle_mul_mod(uint8_t *out, const uint8_t *a, const uint8_t *b, const uint8_t *m, size_t n);
void oracle_inv_mod(uint8_t *out, const uint8_t *a, const uint8_t *m, size_t n);
/* A generator of test numbers (splitmix64): the same everywhere. */
uint64_t oracle_random(uint64_t *state);

#endif
