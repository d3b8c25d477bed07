/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Compiled with contraction of a * b + c, which changes no result here. */
#include "softdevice/core/engine/product.h"

#include <string.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define PANEL 8 /* columns */

typedef double f64_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef float f32_vector __attribute__((vector_size(VECTOR_BYTES > 32 ? 32 : VECTOR_BYTES)));

/*
 * A panel of `height` rows and 8 columns of c, in registers. The memory is copied with memcpy, as
 * it need not be aligned to a vector.
 */
#define PRODUCT(name, type, vec)                                                                  \
	enum { name##_vectors = PANEL * sizeof(type) / sizeof(vec) };                             \
	static inline                                                                             \
		__attribute__((always_inline)) void name##_panel(const type *a, const type *b,    \
			type *c, const uint8_t *rows, uint32_t n, uint32_t k, uint32_t height)    \
	{                                                                                         \
		vec s[4][name##_vectors], p;                                                      \
                                                                                                  \
		for (uint32_t i = 0; i < height; i++)                                             \
			memcpy(s[i], c + (size_t)i * n, sizeof(s[i]));                            \
		for (uint32_t x = 0; x < k; x++)                                                  \
			for (uint32_t v = 0; v < name##_vectors; v++) {                           \
				if (!rows)                                                        \
					memcpy(&p, (const vec *)(const void *)(b + x * n) + v,    \
						sizeof(p));                                       \
				for (uint32_t i = 0; i < height; i++) {                           \
					if (rows)                                                 \
						memcpy(&p,                                        \
							(const vec *)(const void *)(b +           \
								rows[i * k + x] * n) +            \
								v,                                \
							sizeof(p));                               \
					s[i][v] += p * a[i * k + x];                              \
				}                                                                 \
			}                                                                         \
		for (uint32_t i = 0; i < height; i++)                                             \
			memcpy(c + (size_t)i * n, s[i], sizeof(s[i]));                            \
	}                                                                                         \
	void name(const type *a, const type *b, type *c, const uint8_t *rows, uint32_t m,         \
		uint32_t n, uint32_t k)                                                           \
	{                                                                                         \
		const uint32_t height = VECTOR_BYTES == 16 ? 2 : 4;                               \
                                                                                                  \
		for (uint32_t i = 0; i < m; i += height)                                          \
			for (uint32_t j = 0; j < n; j += PANEL)                                   \
				if (rows)                                                         \
					name##_panel(a + i * k, b + j, c + i * n + j,             \
						rows + i * k, n, k, height);                      \
				else                                                              \
					name##_panel(a + i * k, b + j, c + i * n + j, NULL, n, k, \
						height);                                          \
	}

PRODUCT(obd_product_f64, double, f64_vector)
PRODUCT(obd_product_f32, float, f32_vector)
