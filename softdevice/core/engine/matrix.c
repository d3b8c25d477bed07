/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The sums. The order of additions in the hardware, and what it rounds between them, is not
 * documented and differs between generations. Here:
 *   f16, bf16, tf32, fp8  exact products, summed in double precision in the order of k, starting
 *                         with C; rounded once to the type of D
 *   f64                   a chain of fused operations in the order of k, starting with C
 *   integers              exact; without .satfinite the sum wraps, with it the exact sum is clamped
 * NaN results are canonical. All instruction sets give the same bits.
 */
#include "softdevice/core/engine/matrix.h"

#include <math.h>
#include <string.h>

#include "softdevice/core/engine/element.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/fragment.h"
#include "softdevice/core/engine/product.h"
#include "softdevice/core/engine/sparse.h"

#define MAX_FLOAT   512  /* elements of A or B: m32k16, k64 x n8 */
#define MAX_INTEGER 1024 /* m16k64 of 4 bits, k128 x n8 */
#define MAX_C       256

#if defined(__FMA__)
#define FMA64(a, b, c) __builtin_fma(a, b, c)
#else
#define FMA64(a, b, c) fma(a, b, c)
#endif

typedef uint16_t u16x8 __attribute__((vector_size(16)));

struct job {
	char *regs;
	struct obd_mma_shape shape;
	uint32_t a, b, c, d; /* enum obd_mma_type */
	uint32_t stored_k;   /* columns of A in the registers: half of k if A is sparse */
	uint32_t flags;
	const uint16_t *la, *lb, *lc, *ld; /* slots */
	const uint32_t *meta;              /* of a sparse A, else NULL */
};

/* Registers of C or D. */
static uint32_t sum_registers(const struct job *j, uint32_t type)
{
	return j->shape.m / 8 * (j->shape.n / 8) * (type == OBD_MMA_F16 ? 1 : 2);
}

static void job_init(struct job *j, const struct obd_warp *w, const struct obd_insn *in, char *regs)
{
	const uint16_t *list = obd_operand_list(w, in) + 2;
	bool sparse = in->d & OBD_MMA_SPARSE;

	*j = (struct job){ .regs = regs,
		.shape = { OBD_MMA_M(in->d), OBD_MMA_N(in->d), in->c },
		.a = in->e & 15,
		.b = (in->e >> 4) & 15,
		.c = (in->e >> 8) & 15,
		.d = in->e >> 12,
		.stored_k = sparse ? in->c / 2 : in->c,
		.flags = in->d };
	uint32_t width = obd_block_width(obd_element_bits(j->a)),
		 na = j->shape.m / 8 * (j->stored_k / width),
		 nb = j->shape.n / 8 * (j->shape.k / width);

	if (in->d & OBD_MMA_REPEAT)
		na = nb = 8;
	j->la = list;
	j->lb = j->la + na;
	j->lc = j->lb + nb;
	j->ld = j->lc + sum_registers(j, j->c);
	if (sparse)
		j->meta = obd_reg32(regs, *j->ld++);
}

/* ---- elements of A and B ---- */

/* Transposes a block of B, so that its rows are rows of the matrix. */
static void transpose16(const uint32_t *words, uint32_t *to)
{
	u16x8 r[8], t[8];

	memcpy(r, words, sizeof(r));
	/* three rounds that interleave rows which are 4 apart */
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 4; i++) {
			t[2 * i] =
				__builtin_shufflevector(r[i], r[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
			t[2 * i + 1] =
				__builtin_shufflevector(r[i], r[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
		}
		memcpy(r, t, sizeof(r));
	}
	memcpy(to, r, sizeof(r));
}

/*
 * Fill the matrices a (m x stored k) and b (k x n) from the registers. Blocks of 8 x 8 are the most
 * frequent ones, and have constant sizes.
 */
#define FILL(type, block)                                                                 \
	static inline __attribute__((always_inline)) void fill_a_##type(                  \
		const struct job *j, type *a, uint32_t width)                             \
	{                                                                                 \
		struct obd_mma_shape s = { j->shape.m, j->shape.n, j->stored_k };         \
		uint32_t blocks = obd_fragment_blocks(OBD_FRAGMENT_A, &s, width);         \
		struct obd_place at = { 0, 0 };                                           \
		type x[256];                                                              \
                                                                                          \
		for (uint32_t q = 0; q < blocks; q++) {                                   \
			block(j->a, obd_reg32(j->regs, j->la[q]), x);                     \
			for (uint32_t r = 0; r < 8; r++)                                  \
				memcpy(a + (at.row + r) * s.k + at.column, x + r * width, \
					width * sizeof(type));                            \
			at = obd_fragment_next(OBD_FRAGMENT_A, &s, width, at);            \
		}                                                                         \
	}                                                                                 \
	static inline __attribute__((always_inline)) void fill_b_##type(                  \
		const struct job *j, type *b, uint32_t width)                             \
	{                                                                                 \
		uint32_t n = j->shape.n,                                                  \
			 blocks = obd_fragment_blocks(OBD_FRAGMENT_B, &j->shape, width);  \
		struct obd_place at = { 0, 0 };                                           \
		uint32_t words[OBD_LANES];                                                \
		type x[256];                                                              \
                                                                                          \
		for (uint32_t q = 0; q < blocks; q++) {                                   \
			const uint32_t *from = obd_reg32(j->regs, j->lb[q]);              \
			type *to = b + at.row * n + at.column;                            \
                                                                                          \
			if (width == 8) {                                                 \
				transpose16(from, words);                                 \
				block(j->b, words, x);                                    \
				for (uint32_t r = 0; r < 8; r++)                          \
					memcpy(to + r * n, x + r * 8, 8 * sizeof(type));  \
			} else {                                                          \
				block(j->b, from, x);                                     \
				for (uint32_t c = 0; c < width; c++)                      \
					for (uint32_t r = 0; r < 8; r++)                  \
						to[c * n + r] = x[r * width + c];         \
			}                                                                 \
			at = obd_fragment_next(OBD_FRAGMENT_B, &j->shape, width, at);     \
		}                                                                         \
	}                                                                                 \
	static void fill_##type(const struct job *j, type *a, type *b)                    \
	{                                                                                 \
		uint32_t width = obd_block_width(obd_element_bits(j->a));                 \
                                                                                          \
		if (width == 8) {                                                         \
			fill_a_##type(j, a, 8);                                           \
			fill_b_##type(j, b, 8);                                           \
		} else if (width == 16) {                                                 \
			fill_a_##type(j, a, 16);                                          \
			fill_b_##type(j, b, 16);                                          \
		} else {                                                                  \
			fill_a_##type(j, a, width);                                       \
			fill_b_##type(j, b, width);                                       \
		}                                                                         \
	}

FILL(double, obd_block_f64)
FILL(float, obd_block_f32)

/* ---- C and D ---- */

/* c: m x n. Each block of C or D is 8 x 8. */
static void read_sums(const struct job *j, double *c)
{
	uint32_t n = j->shape.n;
	struct obd_place at = { 0, 0 };
	double x[64];

	for (uint32_t q = 0; q < j->shape.m / 8 * (n / 8); q++) {
		if (j->c == OBD_MMA_F16) {
			obd_block_f64(OBD_MMA_F16, obd_reg32(j->regs, j->lc[q]), x);
		} else {
			const uint32_t *even = obd_reg32(j->regs, j->lc[2 * q]),
				       *odd = obd_reg32(j->regs, j->lc[2 * q + 1]);

			for (uint32_t i = 0; i < OBD_LANES; i++) {
				x[2 * i] = (double)obd_bits_f32(even[i]);
				x[2 * i + 1] = (double)obd_bits_f32(odd[i]);
			}
		}
		for (uint32_t r = 0; r < 8; r++)
			memcpy(c + (at.row + r) * n + at.column, x + r * 8, 8 * sizeof(*c));
		at = obd_fragment_next(OBD_FRAGMENT_C, &j->shape, 8, at);
	}
}

static void write_sums(const struct job *j, const double *c)
{
	uint32_t n = j->shape.n;
	struct obd_place at = { 0, 0 };
	double x[64];

	for (uint32_t q = 0; q < j->shape.m / 8 * (n / 8); q++) {
		for (uint32_t r = 0; r < 8; r++)
			memcpy(x + r * 8, c + (at.row + r) * n + at.column, 8 * sizeof(*c));
		if (j->d == OBD_MMA_F16) {
			uint16_t *to = (uint16_t *)(void *)obd_reg32(j->regs, j->ld[q]);

			for (uint32_t i = 0; i < 64; i++)
				to[i] = obd_element_to_f16(x[i]);
		} else {
			uint32_t *even = obd_reg32(j->regs, j->ld[2 * q]),
				 *odd = obd_reg32(j->regs, j->ld[2 * q + 1]), u[64];

			for (uint32_t i = 0; i < 64; i++)
				u[i] = obd_element_to_f32(x[i]);
			for (uint32_t i = 0; i < OBD_LANES; i++) {
				even[i] = u[2 * i];
				odd[i] = u[2 * i + 1];
			}
		}
		at = obd_fragment_next(OBD_FRAGMENT_C, &j->shape, 8, at);
	}
}

/* ---- products by type ---- */

static void multiply_float(const struct job *j)
{
	_Alignas(64) double a[MAX_FLOAT], b[MAX_FLOAT], c[MAX_C];
	uint8_t rows[MAX_FLOAT];

	fill_double(j, a, b);
	read_sums(j, c);
	if (j->meta)
		obd_sparse_rows(
			j->meta, obd_element_bits(j->a), j->shape.k, (j->flags >> 12) & 3, rows);
	obd_product_f64(a, b, c, j->meta ? rows : NULL, j->shape.m, j->shape.n, j->stored_k);
	write_sums(j, c);
}

/*
 * dot: m x n sums of products. Adds C and stores D. A register of D may be one of C, so that D is
 * written last.
 */
static void write_integers(const struct job *j, const int32_t *dot)
{
	uint32_t n = j->shape.n, blocks = j->shape.m / 8 * (n / 8);
	struct obd_place at = { 0, 0 };
	uint32_t sums[2 * MAX_C / 64][OBD_LANES];
	int32_t x[64];

	for (uint32_t q = 0; q < blocks; q++) {
		for (uint32_t r = 0; r < 8; r++)
			memcpy(x + r * 8, dot + (at.row + r) * n + at.column, 8 * sizeof(*x));
		for (uint32_t e = 0; e < 2; e++) {
			const uint32_t *c = obd_reg32(j->regs, j->lc[2 * q + e]);
			uint32_t *to = sums[2 * q + e];

			for (uint32_t i = 0; i < OBD_LANES; i++)
				to[i] = c[i] + (uint32_t)x[2 * i + e];
			for (uint32_t i = 0; i < OBD_LANES && j->flags & OBD_MMA_SAT; i++) {
				int32_t d = x[2 * i + e], sum;

				if (__builtin_add_overflow((int32_t)c[i], d, &sum))
					to[i] = (uint32_t)(d > 0 ? INT32_MAX : INT32_MIN);
			}
		}
		at = obd_fragment_next(OBD_FRAGMENT_C, &j->shape, 8, at);
	}
	for (uint32_t r = 0; r < 2 * blocks; r++)
		memcpy(obd_reg32(j->regs, j->ld[r]), sums[r], sizeof(sums[r]));
}

/* The sums of products are below 2^24, so that they are exact in float. */
static void multiply_integers(const struct job *j)
{
	_Alignas(64) float a[MAX_INTEGER], b[MAX_INTEGER], c[MAX_C] = { 0 };
	uint8_t rows[MAX_INTEGER];
	int32_t dot[MAX_C];

	fill_float(j, a, b);
	if (j->meta)
		obd_sparse_rows(
			j->meta, obd_element_bits(j->a), j->shape.k, (j->flags >> 12) & 3, rows);
	obd_product_f32(a, b, c, j->meta ? rows : NULL, j->shape.m, j->shape.n, j->stored_k);
	for (uint32_t i = 0; i < j->shape.m * j->shape.n; i++)
		dot[i] = (int32_t)c[i];
	write_integers(j, dot);
}

static void multiply_bits(const struct job *j)
{
	uint32_t halves = j->shape.m == 8 ? 1 : 2, runs = j->shape.k / 128;
	int32_t dot[MAX_C] = { 0 };

	for (uint32_t q = 0; q < halves * runs; q++) {
		const uint32_t *a = obd_reg32(j->regs, j->la[q]),
			       *b = obd_reg32(j->regs, j->lb[q / halves]);

		for (uint32_t r = 0; r < 8; r++)
			for (uint32_t c = 0; c < 8; c++) {
				int32_t *sum = &dot[(q % halves * 8 + r) * 8 + c];

				for (uint32_t x = 0; x < 4; x++) {
					uint32_t u = a[r * 4 + x], v = b[c * 4 + x];

					*sum += __builtin_popcount(
						j->flags & OBD_MMA_AND ? u & v : u ^ v);
				}
			}
	}
	write_integers(j, dot);
}

static void multiply_f64(const struct job *j)
{
	uint32_t halves = j->shape.m == 8 ? 1 : 2, runs = j->shape.k / 4;
	double sum[2][2][OBD_LANES];

	for (uint32_t h = 0; h < halves; h++)
		for (uint32_t e = 0; e < 2; e++)
			memcpy(sum[h][e], obd_reg64(j->regs, j->lc[2 * h + e]), sizeof(sum[h][e]));
	for (uint32_t q = 0; q < halves * runs; q++) {
		const double *a = (const double *)(const void *)obd_reg64(j->regs, j->la[q]),
			     *b = (const double *)(const void *)obd_reg64(
				     j->regs, j->lb[q / halves]);

		for (uint32_t e = 0; e < 2; e++)
			for (uint32_t x = 0; x < 4; x++)
				for (uint32_t i = 0; i < OBD_LANES; i++) {
					double *s = &sum[q % halves][e][i];

					*s = FMA64(
						a[i / 4 * 4 + x], b[(i % 4 * 2 + e) * 4 + x], *s);
				}
	}
	for (uint32_t h = 0; h < halves; h++)
		for (uint32_t e = 0; e < 2; e++) {
			uint64_t *d = obd_reg64(j->regs, j->ld[2 * h + e]);

			for (uint32_t i = 0; i < OBD_LANES; i++)
				d[i] = sum[h][e][i] != sum[h][e][i] ? 0x7fffffffffffffffull
								    : obd_f64_bits(sum[h][e][i]);
		}
}

/* ---- m8n8k4 with f16: four products, each of the lanes 4 p .. 4 p + 3 and those 16 above ---- */

static double half_at(const struct job *j, const uint16_t *list, uint32_t lane, uint32_t e)
{
	return (double)obd_element_f16(
		obd_reg32(j->regs, list[e / 2])[lane] >> (e % 2 * 16) & 0xffff);
}

/* The row and column of element e of C in a lane. */
static struct obd_place quad_place(uint32_t type, uint32_t lane, uint32_t e)
{
	uint32_t high = lane / 16 * 4;

	if (type == OBD_MMA_F16)
		return (struct obd_place){ lane % 4 + high, e };
	return (struct obd_place){ (lane & 1) + (e & 2) + high, (e & 4) + (lane & 2) + (e & 1) };
}

static void multiply_quad(const struct job *j, uint32_t p)
{
	double a[8][4], b[4][8], c[8][8];

	for (uint32_t x = 0; x < 8; x++) {
		uint32_t lane = p * 4 + x % 4 + x / 4 * 16;

		for (uint32_t e = 0; e < 4; e++) {
			double u = half_at(j, j->la, lane, e), v = half_at(j, j->lb, lane, e);

			*(j->flags & OBD_MMA_A_COL ? &a[e + x / 4 * 4][x % 4] : &a[x][e]) = u;
			*(j->flags & OBD_MMA_B_COL ? &b[e][x] : &b[x % 4][e + x / 4 * 4]) = v;
		}
		for (uint32_t e = 0; e < 8; e++) {
			struct obd_place at = quad_place(j->c, lane, e);

			c[at.row][at.column] = j->c == OBD_MMA_F16
				? half_at(j, j->lc, lane, e)
				: (double)obd_bits_f32(obd_reg32(j->regs, j->lc[e])[lane]);
		}
	}
	obd_product_f64(a[0], b[0], c[0], NULL, 8, 8, 4);
	for (uint32_t x = 0; x < 8; x++) {
		uint32_t lane = p * 4 + x % 4 + x / 4 * 16;

		for (uint32_t e = 0; e < 8; e++) {
			struct obd_place at = quad_place(j->d, lane, e);
			double v = c[at.row][at.column];

			if (j->d == OBD_MMA_F16)
				((uint16_t *)(void *)(obd_reg32(j->regs, j->ld[e / 2]) +
					lane))[e % 2] = obd_element_to_f16(v);
			else
				obd_reg32(j->regs, j->ld[e])[lane] = obd_element_to_f32(v);
		}
	}
}

/* Lanes of one product write only their own registers, so that the others' operands are intact. */
static void multiply_quads(struct job *j)
{
	j->lb = j->la + 2;
	j->lc = j->lb + 2;
	j->ld = j->lc + (j->c == OBD_MMA_F16 ? 4 : 8);
	for (uint32_t p = 0; p < 4; p++)
		multiply_quad(j, p);
}

void obd_mma(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	struct job j;

	obd_fragment_whole(w, in, m);
	job_init(&j, w, in, regs);
	if (j.flags & OBD_MMA_QUADS)
		multiply_quads(&j);
	else if (j.a == OBD_MMA_F64)
		multiply_f64(&j);
	else if (j.a == OBD_MMA_B1)
		multiply_bits(&j);
	else if (j.c == OBD_MMA_S32)
		multiply_integers(&j);
	else
		multiply_float(&j);
}
