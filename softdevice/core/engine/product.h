/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Products of small matrices: c += a * b, all row-major. a is m x k, b has n columns, c is m x n; n
 * is 8, 16 or 32. Pure functions. Both files that use this header are compiled once per instruction
 * set.
 *
 * rows: NULL, or m x k row numbers: a[i][x] is then multiplied with row rows[i][x] of b, which may
 * have more than k rows (a sparse a).
 *
 * Each sum is in the order of k. The products must be exact in the type (at most 53 or 24 bits
 * together), so that a fused multiplication and addition has the same result as two operations.
 */
#ifndef OBD_CORE_PRODUCT_H
#define OBD_CORE_PRODUCT_H

#include <stdint.h>

#include "softdevice/core/engine/exec.h"

#define obd_product_f64 OBD_FOR_ISA(obd_product_f64)
#define obd_product_f32 OBD_FOR_ISA(obd_product_f32)

void obd_product_f64(const double *a, const double *b, double *c, const uint8_t *rows, uint32_t m,
	uint32_t n, uint32_t k);
void obd_product_f32(const float *a, const float *b, float *c, const uint8_t *rows, uint32_t m,
	uint32_t n, uint32_t k);

#endif
