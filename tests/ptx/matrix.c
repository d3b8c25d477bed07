/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/ptx/matrix.h"

static const struct {
	const char *name;
	unsigned bits;
	const struct pt_float_format *format;
} elements[] = {
	{ "f16", 16, &pt_f16 },
	{ "bf16", 16, &pt_bf16 },
	{ "tf32", 32, &pt_f32 },
	{ "e4m3", 8, &pt_e4m3 },
	{ "e5m2", 8, &pt_e5m2 },
	{ "s8", 8, NULL },
	{ "u8", 8, NULL },
	{ "s4", 4, NULL },
	{ "u4", 4, NULL },
	{ "b1", 1, NULL },
	{ "f64", 64, &pt_f64 },
	{ "f32", 32, &pt_f32 },
	{ "s32", 32, NULL },
	{ "e2m1", 8, &pt_f32 },
	{ "e2m3", 8, &pt_f32 },
	{ "e3m2", 8, &pt_f32 },
};

unsigned pt_element_bits(enum pt_element t)
{
	return elements[t].bits;
}

const char *pt_element_name(enum pt_element t)
{
	return elements[t].name;
}

bool pt_element_integer(enum pt_element t)
{
	return elements[t].format == NULL;
}

uint64_t pt_element_encode(enum pt_element t, int64_t v)
{
	/* 0 to 4; e2m1 begins at bit 2 */
	static const uint8_t small[3][5] = { { 0, 2 << 2, 4 << 2, 5 << 2, 6 << 2 },
		{ 0, 8, 16, 20, 24 }, { 0, 12, 16, 18, 20 } };
	if (t >= PT_M_E2M1)
		return small[t - PT_M_E2M1][v < 0 ? -v : v] | (v < 0 ? 32 : 0);
	if (!elements[t].format)
		return (uint64_t)v & pt_mask(elements[t].bits);
	return pt_num_pack(elements[t].format, pt_num_from_int(v < 0, (uint64_t)(v < 0 ? -v : v)),
		PT_RN, false, NULL);
}

int64_t pt_element_random(struct pt_rng *r, enum pt_element t)
{
	switch (t) {
	case PT_M_S8:
		return (int64_t)pt_rng_below(r, 256) - 128;
	case PT_M_U8:
		return pt_rng_below(r, 256);
	case PT_M_S4:
		return (int64_t)pt_rng_below(r, 16) - 8;
	case PT_M_U4:
		return pt_rng_below(r, 16);
	case PT_M_B1:
		return pt_rng_below(r, 2);
	default:
		return (int64_t)pt_rng_below(r, 9) - 4;
	}
}

void pt_matrix_fill(struct pt_rng *r, struct pt_matrix *m, enum pt_element a, enum pt_element b)
{
	for (unsigned k = 0; k < m->k; k++) {
		for (unsigned i = 0; i < m->m; i++)
			m->a[i][k] = pt_element_random(r, a);
		for (unsigned j = 0; j < m->n; j++)
			m->b[k][j] = pt_element_random(r, b);
	}
	for (unsigned i = 0; i < m->m; i++) {
		for (unsigned j = 0; j < m->n; j++)
			m->c[i][j] = !pt_element_integer(a) ? (int64_t)pt_rng_below(r, 201) - 100
				: pt_rng_below(r, 4)        ? (int32_t)(uint32_t)pt_rng_next(r)
				: pt_rng_below(r, 2)        ? INT32_MAX - 3
							    : INT32_MIN + 3;
	}
}

void pt_matrix_multiply(struct pt_matrix *m, enum pt_element a, bool is_and, bool saturate)
{
	for (unsigned i = 0; i < m->m; i++) {
		for (unsigned j = 0; j < m->n; j++) {
			int64_t sum = m->c[i][j];
			for (unsigned k = 0; k < m->k; k++)
				sum += a == PT_M_B1 && !is_and ? m->a[i][k] ^ m->b[k][j]
							       : m->a[i][k] * m->b[k][j];
			if (saturate && sum > INT32_MAX)
				sum = INT32_MAX;
			if (saturate && sum < INT32_MIN)
				sum = INT32_MIN;
			m->d[i][j] = sum;
		}
	}
}
