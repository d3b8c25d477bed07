/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The sums are those of matrix.c: exact products, added in double precision in the order of k,
 * starting with D, and rounded once. Descriptors of matrices in shared memory: PTX ISA, "Matrix
 * Descriptor Format"; the places of the elements: "Strides", and the canonical layouts in CUTLASS.
 */
#include "softdevice/core/engine/wgmma.h"

#include <string.h>

#include "softdevice/core/engine/element.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/fragment.h"
#include "softdevice/core/engine/product.h"
#include "softdevice/core/engine/sparse.h"

#define ROWS      16u /* of D, for each warp */
#define PANEL     32u /* columns that are computed at once */
#define DEPTH     32u /* most elements along k; b1 has 256 but is not unpacked */
#define ROW_BYTES 32u /* of A along k, in all types; B has as many, or twice if A is sparse */

/* A matrix in shared memory. All are offsets in bytes. */
struct view {
	uint32_t start, leading, stride;
	uint32_t base;  /* number of the row in the pattern of the swizzle at which that starts */
	uint32_t width; /* 16-byte parts after which the swizzle repeats: 1 (none), 2, 4, 8 */
	bool trans;
};

struct job {
	struct obd_warp *w;
	const struct obd_insn *in;
	char *regs;
	uint32_t a, b, d; /* enum obd_mma_type */
	uint32_t n, k, flags;
	uint32_t stored_k;       /* of A: half of k if it is sparse */
	const uint32_t *meta;    /* of a sparse A, else NULL */
	const uint16_t *la, *ld; /* slots */
	bool adds;               /* D is added */
	struct view va, vb;
};

static struct view view_of(uint64_t descriptor, bool trans)
{
	static const uint8_t widths[] = { 1, 8, 4, 2 };

	return (struct view){ .start = (uint32_t)(descriptor & 0x3fff) << 4,
		.leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
		.stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
		.base = (uint32_t)(descriptor >> 49) & 7,
		.width = widths[descriptor >> 62],
		.trans = trans };
}

/*
 * 16 bytes of the matrix. Without trans, `row` is one of m or n, and `part` counts 16 bytes along
 * k. With it, `row` is one of k, and `part` counts 16 bytes along m or n.
 */
static void read_part(
	const struct job *j, const struct view *v, uint32_t row, uint32_t part, void *to)
{
	struct obd_warp *w = j->w;
	uint32_t at = v->start + row % 8 * v->width * 16;

	if (!v->trans)
		at += row / 8 * v->stride + part * (v->width == 1 ? v->leading : 16);
	else if (v->width == 1)
		at += row / 8 * v->leading + part * v->stride;
	else
		at += row / 8 * v->stride + part / v->width * v->leading + part % v->width * 16;
	at ^= (((at >> 7) - v->base) & (v->width - 1)) << 4;
	if (at > w->shared_bytes || w->shared_bytes - at < 16) {
		w->mem_in = j->in;
		w->mem_mask = 1;
		w->addr[0] = w->shared_base + at;
		obd_fault_access(w, j->in, 1, 16, false, 15);
	}
	memcpy(to, (const char *)w->shared_base + at, 16);
}

/* The rows of A of this warp: 16 rows along k. */
static void read_a(const struct job *j, uint8_t rows[ROWS][ROW_BYTES])
{
	uint32_t first = j->w->id % 4 * ROWS;
	uint16_t line[8];

	if (j->flags & OBD_WGMMA_REGISTERS) {
		for (uint32_t q = 0; q < 4; q++)
			for (uint32_t r = 0; r < 8; r++)
				memcpy(rows[q % 2 * 8 + r] + q / 2 * 16,
					obd_reg32(j->regs, j->la[q]) + r * 4, 16);
	} else if (!j->va.trans) {
		for (uint32_t r = 0; r < ROWS; r++)
			for (uint32_t part = 0; part < 2; part++)
				read_part(j, &j->va, first + r, part, rows[r] + part * 16);
	} else { /* 16-bit types only */
		for (uint32_t x = 0; x < 16; x++)
			for (uint32_t part = 0; part < 2; part++) {
				read_part(j, &j->va, x, first / 8 + part, line);
				for (uint32_t r = 0; r < 8; r++)
					memcpy(rows[part * 8 + r] + x * 2, line + r, 2);
			}
	}
}

/*
 * `count` columns of B from `first`. Without trans each has 32 bytes (64 if A is sparse), else they
 * are along n.
 */
static void read_b(const struct job *j, uint32_t first, uint32_t count, uint8_t *to)
{
	uint32_t rows = j->vb.trans ? j->k : count,
		 parts = j->vb.trans ? count / 8
		: j->meta            ? 4
				     : 2;

	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t part = 0; part < parts; part++, to += 16)
			if (j->vb.trans)
				read_part(j, &j->vb, r, first / 8 + part, to);
			else
				read_part(j, &j->vb, first + r, part, to);
}

/* Unpacks and transposes, so that x is k x count. */
#define UNPACK(type, block)                                                                     \
	static void unpack_##type(uint32_t t, const uint8_t *bytes, uint32_t size, type *x)     \
	{                                                                                       \
		uint32_t words[32], each = 1024 / obd_element_bits(t);                          \
                                                                                                \
		for (uint32_t at = 0; at < size; at += sizeof(words), x += each) {              \
			memcpy(words, bytes + at, sizeof(words));                               \
			block(t, words, x);                                                     \
		}                                                                               \
	}                                                                                       \
	static void panel_##type(const struct job *j, uint32_t first, uint32_t count, type *x)  \
	{                                                                                       \
		_Alignas(64) uint8_t bytes[2 * PANEL * ROW_BYTES];                              \
		_Alignas(64) type t[2 * PANEL * DEPTH];                                         \
                                                                                                \
		read_b(j, first, count, bytes);                                                 \
		unpack_##type(                                                                  \
			j->b, bytes, count *ROW_BYTES *(j->meta ? 2 : 1), j->vb.trans ? x : t); \
		for (uint32_t k = 0; k < j->k && !j->vb.trans; k++)                             \
			for (uint32_t c = 0; c < count; c++)                                    \
				x[k * count + c] = t[c * j->k + k];                             \
	}

UNPACK(double, obd_block_f64)
UNPACK(float, obd_block_f32)

/* The sums of 8 columns of D are two blocks of 8 x 8, which have one register in f16, else two. */
static void read_sums(const struct job *j, uint32_t first, uint32_t count, double *c)
{
	double x[64];

	for (uint32_t q = 0; q < count / 4; q++) {
		uint32_t block = first / 4 + q;

		if (j->d == OBD_MMA_F16) {
			obd_block_f64(OBD_MMA_F16, obd_reg32(j->regs, j->ld[block]), x);
		} else {
			const uint32_t *even = obd_reg32(j->regs, j->ld[2 * block]),
				       *odd = obd_reg32(j->regs, j->ld[2 * block + 1]);

			for (uint32_t i = 0; i < OBD_LANES; i++) {
				x[2 * i] = (double)obd_bits_f32(even[i]);
				x[2 * i + 1] = (double)obd_bits_f32(odd[i]);
			}
		}
		for (uint32_t r = 0; r < 8; r++)
			memcpy(c + (q % 2 * 8 + r) * count + q / 2 * 8, x + r * 8, 8 * sizeof(*x));
	}
}

static void write_sums(const struct job *j, uint32_t first, uint32_t count, const double *c)
{
	double x[64];

	for (uint32_t q = 0; q < count / 4; q++) {
		uint32_t block = first / 4 + q;

		for (uint32_t r = 0; r < 8; r++)
			memcpy(x + r * 8, c + (q % 2 * 8 + r) * count + q / 2 * 8, 8 * sizeof(*x));
		if (j->d == OBD_MMA_F16) {
			uint16_t *to = (uint16_t *)(void *)obd_reg32(j->regs, j->ld[block]);

			for (uint32_t i = 0; i < 64; i++)
				to[i] = obd_element_to_f16(x[i]);
		} else {
			uint32_t *even = obd_reg32(j->regs, j->ld[2 * block]),
				 *odd = obd_reg32(j->regs, j->ld[2 * block + 1]);

			for (uint32_t i = 0; i < OBD_LANES; i++) {
				even[i] = obd_element_to_f32(x[2 * i]);
				odd[i] = obd_element_to_f32(x[2 * i + 1]);
			}
		}
	}
}

/* The columns of the elements of a sparse A. */
static void find_columns(const struct job *j, uint8_t *columns)
{
	if (j->meta)
		obd_sparse_rows(j->meta, obd_element_bits(j->a), j->k,
			j->flags >> OBD_WGMMA_SELECTOR & 1, columns);
}

static void multiply_float(const struct job *j, uint8_t rows[ROWS][ROW_BYTES])
{
	_Alignas(64) double a[ROWS * DEPTH], b[2 * PANEL * DEPTH], c[ROWS * PANEL];
	uint8_t columns[ROWS * DEPTH];

	unpack_double(j->a, rows[0], ROWS * ROW_BYTES, a);
	find_columns(j, columns);
	for (uint32_t i = 0; i < ROWS * j->stored_k && j->flags & OBD_WGMMA_NEGATE; i++)
		a[i] = -a[i];
	for (uint32_t first = 0; first < j->n; first += PANEL) {
		uint32_t count = j->n - first < PANEL ? j->n - first : PANEL;

		panel_double(j, first, count, b);
		if (j->adds)
			read_sums(j, first, count, c);
		else
			memset(c, 0, sizeof(c));
		obd_product_f64(a, b, c, j->meta ? columns : NULL, ROWS, count, j->stored_k);
		write_sums(j, first, count, c);
	}
}

/* dot: the sums of products of the columns. */
static void write_integers(const struct job *j, uint32_t first, uint32_t count, const float *dot)
{
	for (uint32_t q = 0; q < count / 4; q++)
		for (uint32_t e = 0; e < 2; e++) {
			uint32_t *d = obd_reg32(j->regs, j->ld[2 * (first / 4 + q) + e]);

			for (uint32_t i = 0; i < OBD_LANES; i++) {
				int32_t v = (int32_t)dot[(q % 2 * 8 + i / 4) * count + q / 2 * 8 +
						i % 4 * 2 + e],
					sum, c = j->adds ? (int32_t)d[i] : 0;

				if (__builtin_add_overflow(c, v, &sum) && j->flags & OBD_WGMMA_SAT)
					sum = v > 0 ? INT32_MAX : INT32_MIN;
				d[i] = (uint32_t)sum;
			}
		}
}

/* The sums of products are below 2^24, so that they are exact in float. */
static void multiply_integers(const struct job *j, uint8_t rows[ROWS][ROW_BYTES])
{
	_Alignas(64) float a[ROWS * DEPTH], b[2 * PANEL * DEPTH], c[ROWS * PANEL];
	uint8_t columns[ROWS * DEPTH];

	unpack_float(j->a, rows[0], ROWS * ROW_BYTES, a);
	find_columns(j, columns);
	for (uint32_t first = 0; first < j->n; first += PANEL) {
		uint32_t count = j->n - first < PANEL ? j->n - first : PANEL;

		panel_float(j, first, count, b);
		memset(c, 0, sizeof(c));
		obd_product_f32(a, b, c, j->meta ? columns : NULL, ROWS, count, j->stored_k);
		write_integers(j, first, count, c);
	}
}

static void multiply_bits(const struct job *j, uint8_t rows[ROWS][ROW_BYTES])
{
	uint8_t b[8 * ROW_BYTES];
	float dot[ROWS * 8];

	for (uint32_t first = 0; first < j->n; first += 8) {
		read_b(j, first, 8, b);
		for (uint32_t i = 0; i < ROWS * 8; i++) {
			uint64_t u[4], v[4];
			int32_t sum = 0;

			memcpy(u, rows[i / 8], sizeof(u));
			memcpy(v, b + i % 8 * ROW_BYTES, sizeof(v));
			for (uint32_t x = 0; x < 4; x++)
				sum += __builtin_popcountll(u[x] & v[x]);
			dot[i] = (float)sum;
		}
		write_integers(j, first, 8, dot);
	}
}

void obd_wgmma(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const uint16_t *list = obd_operand_list(w, in);
	struct job j = { .w = w,
		.in = in,
		.regs = regs,
		.a = in->e & 15,
		.b = (in->e >> 4) & 15,
		.d = (in->e >> 8) & 15,
		.n = OBD_WGMMA_N(in->d),
		.flags = in->d,
		.la = list + 2,
		.ld = list + 2 + list[0],
		.adds = ((const uint32_t *)(const void *)regs)[in->c] & 1 };
	uint8_t rows[ROWS][ROW_BYTES];

	obd_fragment_whole(w, in, m);
	j.k = j.stored_k = ROW_BYTES * 8 / obd_element_bits(j.a);
	if (j.flags & OBD_WGMMA_SPARSE) {
		j.k *= 2;
		j.meta = obd_reg32(regs, list[1 + list[0]]);
	}
	if (!(j.flags & OBD_WGMMA_REGISTERS))
		j.va = view_of(*obd_reg64(regs, in->a), j.flags & OBD_WGMMA_A_TRANS);
	j.vb = view_of(*obd_reg64(regs, in->b), j.flags & OBD_WGMMA_B_TRANS);
	if (j.meta && j.vb.width == 2 && !j.vb.trans)
		obd_fault_raise(w, in, m, CUDA_ERROR_ILLEGAL_INSTRUCTION,
			"unsupported swizzle of 32 bytes along k of B in a sparse product: use a "
			"swizzle of 64 or 128 bytes");
	read_a(&j, rows);
	if (j.a == OBD_MMA_B1)
		multiply_bits(&j, rows);
	else if (j.d == OBD_MMA_S32)
		multiply_integers(&j, rows);
	else
		multiply_float(&j, rows);
}
