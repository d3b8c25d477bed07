/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/fragment.h"

#include <string.h>

#include "softdevice/core/engine/fault.h"

void obd_fragment_whole(struct obd_warp *w, const struct obd_insn *in, uint32_t m)
{
	if (m != OBD_FULL_MASK)
		obd_fault_raise(w, in, m, CUDA_ERROR_ILLEGAL_INSTRUCTION,
			"a matrix instruction was executed by fewer than 32 lanes of the warp");
}

/* ---- ldmatrix, stmatrix, movmatrix ---- */

/* 16 elements of 4 or 6 bits at the start of a row, each in the lower bits of a byte. */
static void unpack_row(const uint8_t *row, uint32_t flags, uint8_t *to)
{
	uint32_t bits = flags & OBD_LDM_4BITS ? 4 : flags & OBD_LDM_6BITS ? 6 : 8, word;

	for (uint32_t i = 0; i < 16; i++) {
		uint32_t at = i * bits / 8;

		word = row[at] | (at < 15 ? (uint32_t)row[at + 1] << 8 : 0);
		to[i] = (uint8_t)(word >> (i * bits % 8) & ((1u << bits) - 1));
	}
}

/*
 * Rows of 16 bytes. Transposed, lane l has in a load, in register r of two, the bytes of column
 * l / 4 + 8 r and rows 4 (l % 4) to 4 (l % 4) + 3, as the operand of a product needs them; in a
 * store bytes of the columns l / 4 and l / 4 + 8 of row 2 (l % 4) and the next.
 */
static void move_bytes(struct obd_warp *w, char *regs, const uint16_t *list, uint32_t flags)
{
	uint32_t n = flags & OBD_LDM_COUNT;
	uint8_t rows[OBD_LANES][16];

	for (uint32_t r = 0; r < 8 * n && !(flags & OBD_LDM_STORE); r++)
		unpack_row((const uint8_t *)(uintptr_t)w->addr[r], flags, rows[r]);
	for (uint32_t k = 0; k < n; k++) {
		uint8_t *block = (uint8_t *)obd_reg32(regs, list[k]);

		for (uint32_t i = 0; i < 128; i++) {
			uint32_t lane = i / 4, e = i % 4, row = 8 * k + lane / 4,
				 column = lane % 4 * 4 + e;

			if (flags & OBD_LDM_TRANS) {
				bool store = flags & OBD_LDM_STORE;

				row = store ? 8 * k + lane % 4 * 2 + e % 2
					    : k / 2 * 16 + lane % 4 * 4 + e;
				column = lane / 4 + (store ? e / 2 : k % 2) * 8;
			}
			if (flags & OBD_LDM_STORE)
				((uint8_t *)(uintptr_t)w->addr[row])[column] = block[i];
			else
				block[i] = rows[row][column];
		}
	}
}

void obd_ldmatrix(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const uint16_t *list = obd_operand_list(w, in) + 2;
	uint32_t n = in->e & OBD_LDM_COUNT;
	bool trans = in->e & OBD_LDM_TRANS, store = in->e & OBD_LDM_STORE;

	obd_fragment_whole(w, in, m);
	if (in->e & OBD_LDM_BYTES) {
		move_bytes(w, regs, list, in->e);
		return;
	}
	for (uint32_t k = 0; k < n; k++) {
		uint16_t *block = (uint16_t *)(void *)obd_reg32(regs, list[k]);

		for (uint32_t r = 0; r < 8; r++) {
			uint16_t *row = (uint16_t *)(uintptr_t)w->addr[8 * k + r];

			for (uint32_t c = 0; c < 8; c++) {
				uint16_t *cell = &block[trans ? c * 8 + r : r * 8 + c];

				if (store)
					row[c] = *cell;
				else
					*cell = row[c];
			}
		}
	}
}

void obd_movmatrix(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	uint16_t from[64], *to = (uint16_t *)(void *)obd_reg32(regs, in->d);

	obd_fragment_whole(w, in, m);
	memcpy(from, obd_reg32(regs, in->a), sizeof(from));
	for (uint32_t r = 0; r < 8; r++)
		for (uint32_t c = 0; c < 8; c++)
			to[r * 8 + c] = from[c * 8 + r];
}

/* ---- wmma.load, wmma.store ---- */

struct move {
	enum obd_fragment fragment;
	struct obd_mma_shape shape;
	uint32_t bits;
	bool column_major, shared, store;
};

static struct move decode(const struct obd_insn *in)
{
	return (struct move){ .fragment = in->e & 3,
		.shape = { OBD_MMA_M(in->d), OBD_MMA_N(in->d), in->c },
		.bits = obd_element_bits((in->e >> 2) & 15),
		.column_major = in->e & 64,
		.shared = in->e & 128,
		.store = in->e & 256 };
}

uint32_t obd_wmma_rows(
	struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m, uint32_t *ret_bytes)
{
	struct move v = decode(in);
	const struct obd_mma_shape *s = &v.shape;
	uint32_t rows = v.fragment == OBD_FRAGMENT_B ? s->k : s->m,
		 columns = v.fragment == OBD_FRAGMENT_A ? s->k : s->n,
		 n = v.column_major ? columns : rows;
	uint64_t first = v.shared ? w->shared_base + obd_reg32(regs, in->a)[0]
				  : obd_reg64(regs, in->a)[0],
		 step = (uint64_t)obd_reg32(regs, in->b)[0] * v.bits / 8;

	obd_fragment_whole(w, in, m);
	for (uint32_t i = 0; i < n; i++)
		w->addr[i] = first + i * step;
	*ret_bytes = (v.column_major ? rows : columns) * v.bits / 8;
	return n;
}

/* Copies whole rows of a block: the memory has the same order as the register. */
static void move_rows(
	struct obd_warp *w, const struct move *v, char *block, struct obd_place at, uint32_t width)
{
	bool b = v->fragment == OBD_FRAGMENT_B;
	uint32_t row = b ? at.column : at.row, column = b ? at.row : at.column,
		 bytes = width * v->bits / 8;

	for (uint32_t r = 0; r < 8; r++) {
		char *memory = (char *)(uintptr_t)w->addr[row + r] + column * v->bits / 8;

		if (v->store)
			memcpy(memory, block + r * bytes, bytes);
		else
			memcpy(block + r * bytes, memory, bytes);
	}
}

static inline __attribute__((always_inline)) void move_cell(
	char *reg, char *memory, uint32_t bytes, bool store)
{
	memcpy(store ? memory : reg, store ? reg : memory, bytes);
}

/*
 * Copies a block element by element. pair: the register after `block` holds the odd columns, else
 * NULL.
 */
static inline __attribute__((always_inline)) void move_elements(struct obd_warp *w,
	const struct move *v, char *block, char *pair, struct obd_place at, uint32_t width,
	uint32_t bytes)
{
	bool b = v->fragment == OBD_FRAGMENT_B;

	for (uint32_t r = 0; r < 8; r++)
		for (uint32_t c = 0; c < width; c++) {
			uint32_t row = at.row + (b ? c : r), column = at.column + (b ? r : c),
				 line = v->column_major ? column : row,
				 place = v->column_major ? row : column;
			char *reg = pair ? (c % 2 ? pair : block) + (r * 4 + c / 2) * bytes
					 : block + (r * width + c) * bytes;

			move_cell(reg, (char *)(uintptr_t)w->addr[line] + place * bytes, bytes,
				v->store);
		}
}

static void move_block(struct obd_warp *w, const struct move *v, char *block, char *pair,
	struct obd_place at, uint32_t width)
{
	bool as_register = !pair && (v->fragment == OBD_FRAGMENT_B) == v->column_major;

	if (as_register || v->bits < 8)
		move_rows(w, v, block, at, width);
	else if (v->bits == 8)
		move_elements(w, v, block, pair, at, width, 1);
	else if (v->bits == 16)
		move_elements(w, v, block, pair, at, width, 2);
	else if (v->bits == 32)
		move_elements(w, v, block, pair, at, width, 4);
	else
		move_elements(w, v, block, pair, at, width, 8);
}

void obd_wmma_move(struct obd_warp *w, const struct obd_insn *in, char *regs)
{
	const uint16_t *list = obd_operand_list(w, in);
	struct move v = decode(in);
	uint32_t n = (uint32_t)list[0] + list[1];
	bool c = v.fragment == OBD_FRAGMENT_C, paired = c && v.bits != 16;
	uint32_t width = c ? 8 : obd_block_width(v.bits),
		 blocks = obd_fragment_blocks(v.fragment, &v.shape, width),
		 bytes = v.bits == 64 ? 2 * OBD_SLOT_BYTES : OBD_SLOT_BYTES;

	struct obd_place at = { 0, 0 };

	list += 2;
	for (uint32_t q = 0; q < blocks; q++) {
		char *block = regs + (size_t)list[paired ? 2 * q : q] * OBD_SLOT_BYTES,
		     *pair = paired ? regs + (size_t)list[2 * q + 1] * OBD_SLOT_BYTES : NULL;

		move_block(w, &v, block, pair, at, width);
		at = obd_fragment_next(v.fragment, &v.shape, width, at);
	}
	/* f16: the other registers repeat the first ones */
	for (uint32_t q = blocks; q < n && !paired && !v.store; q++)
		memcpy(regs + (size_t)list[q] * OBD_SLOT_BYTES,
			regs + (size_t)list[q % blocks] * OBD_SLOT_BYTES, bytes);
}
