/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Compiled with contraction of a * b + c, which changes no result here. */
#include "softdevice/core/engine/product.h"

#include <string.h>

typedef double f64x8 __attribute__((vector_size(64)));
typedef float f32x8 __attribute__((vector_size(32)));

/*
 * Two rows of c at a time, all columns in registers; nv: number of vectors of 8 in a row. The
 * memory is copied with memcpy, as it need not be aligned to a vector.
 */
#define PRODUCT(name, type, vec)                                                                  \
	static inline __attribute__((always_inline)) void name##_rows(const type *a,              \
		const type *b, type *c, const uint8_t *rows, uint32_t m, uint32_t k, uint32_t nv) \
	{                                                                                         \
		for (uint32_t i = 0; i < m; i += 2) {                                             \
			const type *a0 = a + (size_t)i * k, *a1 = a0 + k;                         \
			const uint8_t *r0 = rows ? rows + (size_t)i * k : NULL;                   \
			vec s[8];                                                                 \
                                                                                                  \
			for (uint32_t v = 0; v < 2 * nv; v++)                                     \
				memcpy(&s[v], c + ((size_t)i * nv + v) * 8, sizeof(vec));         \
			for (uint32_t x = 0; x < k; x++) {                                        \
				const type *b0 = b + (size_t)(rows ? r0[x] : x) * nv * 8;         \
				const type *b1 = rows ? b + (size_t)r0[k + x] * nv * 8 : b0;      \
				vec p, q;                                                         \
                                                                                                  \
				for (uint32_t v = 0; v < nv; v++) {                               \
					memcpy(&p, b0 + v * 8, sizeof(vec));                      \
					memcpy(&q, b1 + v * 8, sizeof(vec));                      \
					s[v] += p * a0[x];                                        \
					s[nv + v] += q * a1[x];                                   \
				}                                                                 \
			}                                                                         \
			for (uint32_t v = 0; v < 2 * nv; v++)                                     \
				memcpy(c + ((size_t)i * nv + v) * 8, &s[v], sizeof(vec));         \
		}                                                                                 \
	}                                                                                         \
	void name(const type *a, const type *b, type *c, const uint8_t *rows, uint32_t m,         \
		uint32_t n, uint32_t k)                                                           \
	{                                                                                         \
		if (rows)                                                                         \
			name##_rows(a, b, c, rows, m, k, 1);                                      \
		else if (n == 8)                                                                  \
			name##_rows(a, b, c, NULL, m, k, 1);                                      \
		else if (n == 16)                                                                 \
			name##_rows(a, b, c, NULL, m, k, 2);                                      \
		else                                                                              \
			name##_rows(a, b, c, NULL, m, k, 4);                                      \
	}

PRODUCT(obd_product_f64, double, f64x8)
PRODUCT(obd_product_f32, float, f32x8)
