/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * BLS12-381 G1 by OpenSSL's generic curves, an implementation independent of ours. For tests only,
 * because it is slow: half a millisecond per product. Not thread-safe. Points are 96 bytes,
 * uncompressed in the ZCash encoding; scalars are 32 bytes, big-endian.
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
/* out = a b mod m, or 1 / a mod m. Numbers have n bytes, big-endian. */
void oracle_mul_mod(uint8_t *out, const uint8_t *a, const uint8_t *b, const uint8_t *m, size_t n);
void oracle_inv_mod(uint8_t *out, const uint8_t *a, const uint8_t *m, size_t n);
/* A generator of test numbers (splitmix64), the same on every machine. */
uint64_t oracle_random(uint64_t *state);

#endif
