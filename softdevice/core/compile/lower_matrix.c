/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Matrix products and loads of a warp: mma, wmma, ldmatrix, stmatrix, movmatrix. A table has the
 * shapes and their types; layout.h has the layouts and thereby the numbers of registers.
 */
#include <string.h>

#include "softdevice/core/compile/address.h"
#include "softdevice/core/compile/lower.h"
#include "softdevice/core/compile/value.h"
#include "softdevice/core/layout.h"

#define N OBD_NONE

/* All lanes of the warp must take part: paths that arrive separately wait for the others. */
static void gather_warp(struct obd_builder *b)
{
	struct obd_lin *l = obd_emit(b, OBD_OP_gather, N, N, N, N);

	l->e_raw = OBD_SYNC_WARP;
	l->f = obd_const_new(b, OBD_CLASS_32, OBD_FULL_MASK, NULL);
	l->flags |= OBD_USE_F;
}

static void push_fragment(struct obd_builder *b, const struct obd_stmt *s, uint32_t i,
	enum obd_type reg, uint32_t want, bool is_result)
{
	const struct obd_operand *o = &s->opd[i];

	if (o->kind == OBD_OPD_LIST ? o->n_items != want : want != 1)
		obd_invalid(b, s, "a fragment has the wrong number of registers for this shape");
	for (uint32_t k = 0; k < want; k++) {
		const struct obd_operand *r = o->kind == OBD_OPD_LIST ? &o->items[k] : o;

		obd_build_list(b, is_result ? obd_dst_of(b, r, reg) : obd_src_of(b, r, reg));
	}
}

/* ---- shapes ---- */

#define SET(type) (1u << OBD_MMA_##type)
#define HALVES    (SET(F16) | SET(BF16))
#define BYTES     (SET(S8) | SET(U8))
#define NIBBLES   (SET(S4) | SET(U4))
#define FP8       (SET(E4M3) | SET(E5M2))
#define SMALL     (SET(E2M1) | SET(E2M3) | SET(E3M2)) /* with kind::f8f6f4 */

struct shape {
	const char *name;
	struct obd_mma_shape size;
	/* the types of A that mma, mma.sp and wmma take with it */
	uint32_t dense, sparse, wmma;
};

static const struct shape shapes[] = {
	{ "m8n8k4", { 8, 8, 4 }, SET(F64) | SET(F16), 0, SET(F64) },
	{ "m8n8k16", { 8, 8, 16 }, BYTES, 0, 0 },
	{ "m8n8k32", { 8, 8, 32 }, NIBBLES, 0, NIBBLES },
	{ "m8n8k128", { 8, 8, 128 }, SET(B1), 0, SET(B1) },
	{ "m16n8k4", { 16, 8, 4 }, SET(TF32) | SET(F64), 0, 0 },
	{ "m16n8k8", { 16, 8, 8 }, HALVES | SET(TF32) | SET(F64), SET(TF32), 0 },
	{ "m16n8k16", { 16, 8, 16 }, HALVES | SET(F64) | BYTES | FP8, HALVES | SET(TF32), 0 },
	{ "m16n8k32", { 16, 8, 32 }, BYTES | NIBBLES | FP8 | SMALL, HALVES | BYTES, 0 },
	{ "m16n8k64", { 16, 8, 64 }, NIBBLES, BYTES | NIBBLES | FP8 | SMALL, 0 },
	{ "m16n8k128", { 16, 8, 128 }, SET(B1), NIBBLES, 0 },
	{ "m16n8k256", { 16, 8, 256 }, SET(B1), 0, 0 },
	{ "m16n16k8", { 16, 16, 8 }, 0, 0, SET(TF32) },
	{ "m16n16k16", { 16, 16, 16 }, 0, 0, HALVES | BYTES },
	{ "m32n8k16", { 32, 8, 16 }, 0, 0, HALVES | BYTES },
	{ "m8n32k16", { 8, 32, 16 }, 0, 0, HALVES | BYTES },
};

static const struct shape *find_shape(struct obd_builder *b, const struct obd_stmt *s)
{
	for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (obd_word(s, shapes[i].name))
			return &shapes[i];
	obd_unsupported(b, s, "this shape");
}

/* ---- types ---- */

static uint32_t element_type(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t)
{
	static const struct {
		enum obd_type type;
		uint32_t element;
	} names[] = { { OBD_T_F16, OBD_MMA_F16 }, { OBD_T_BF16, OBD_MMA_BF16 },
		{ OBD_T_TF32, OBD_MMA_TF32 }, { OBD_T_E4M3, OBD_MMA_E4M3 },
		{ OBD_T_E5M2, OBD_MMA_E5M2 }, { OBD_T_S8, OBD_MMA_S8 }, { OBD_T_U8, OBD_MMA_U8 },
		{ OBD_T_E2M1, OBD_MMA_E2M1 }, { OBD_T_E2M3, OBD_MMA_E2M3 },
		{ OBD_T_E3M2, OBD_MMA_E3M2 }, { OBD_T_F64, OBD_MMA_F64 },
		{ OBD_T_F32, OBD_MMA_F32 }, { OBD_T_S32, OBD_MMA_S32 } };

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].type == t)
			return names[i].element;
	obd_unsupported(b, s, "this element type");
}

/* Types of less than a byte are words of the statement. OBD_MMA_TYPES: there is no `which`th. */
static uint32_t narrow_type(const struct obd_stmt *s, uint32_t which)
{
	static const struct {
		const char *name;
		uint32_t element;
	} names[] = { { "s4", OBD_MMA_S4 }, { "u4", OBD_MMA_U4 }, { "b1", OBD_MMA_B1 } };

	for (uint32_t w = 0; w < s->n_words; w++)
		for (uint32_t i = 0; i < 3; i++)
			if (s->words[w].size == 2 &&
				memcmp(s->words[w].text, names[i].name, 2) == 0 && which-- == 0)
				return names[i].element;
	return OBD_MMA_TYPES;
}

struct types {
	uint32_t d, a, b, c;
};

/* wmma with f16 states only the types of D and C. */
static struct types product_types(struct obd_builder *b, const struct obd_stmt *s)
{
	struct types t;
	uint32_t last = s->n_types ? s->n_types - 1 : 0;

	t.d = element_type(b, s, obd_type_at(b, s, 0));
	t.c = element_type(b, s, obd_type_at(b, s, last));
	t.a = narrow_type(s, 0);
	t.b = narrow_type(s, 1);
	if (t.a != OBD_MMA_TYPES)
		return t;
	t.a = s->n_types == 2 ? OBD_MMA_F16 : element_type(b, s, obd_type_at(b, s, 1));
	t.b = s->n_types == 2 ? OBD_MMA_F16 : element_type(b, s, obd_type_at(b, s, 2));
	return t;
}

/* May C and D have these types with this A? */
static bool sums_fit(const struct types *t)
{
	if (t->a == OBD_MMA_F64)
		return t->c == OBD_MMA_F64 && t->d == OBD_MMA_F64;
	if ((BYTES | NIBBLES | SET(B1)) >> t->a & 1)
		return t->c == OBD_MMA_S32 && t->d == OBD_MMA_S32;
	if ((SET(F16) | FP8 | SMALL) >> t->a & 1)
		return (t->c == OBD_MMA_F32 || t->c == OBD_MMA_F16) &&
			(t->d == OBD_MMA_F32 || t->d == OBD_MMA_F16);
	return t->c == OBD_MMA_F32 && t->d == OBD_MMA_F32;
}

/* May A and B differ in this way? */
static bool factors_fit(const struct types *t)
{
	uint32_t both = 1u << t->a | 1u << t->b;

	return t->a == t->b || !(both & ~BYTES) || !(both & ~NIBBLES) || !(both & ~(FP8 | SMALL));
}

/* ---- products ---- */

static uint32_t sum_registers(const struct obd_mma_shape *size, uint32_t type)
{
	return obd_fragment_blocks(OBD_FRAGMENT_C, size, 8) * (type == OBD_MMA_F16 ? 1 : 2);
}

/* The flags that the qualifiers give. */
static uint32_t product_flags(struct obd_builder *b, const struct obd_stmt *s,
	const struct shape *shape, const struct types *t, bool wmma)
{
	bool integer = t->c == OBD_MMA_S32;
	uint32_t flags = shape->size.m / 8 | shape->size.n / 8 << 3;

	if (obd_q(s, OBD_Q_satfinite)) {
		if (!integer || t->a == OBD_MMA_B1)
			obd_unsupported(b, s, ".satfinite with this type");
		flags |= OBD_MMA_SAT;
	}
	if (t->a == OBD_MMA_B1) {
		if (!obd_q(s, OBD_Q_popc) || obd_q(s, OBD_Q_and) == obd_q(s, OBD_Q_xor))
			obd_invalid(b, s, "b1 needs .and.popc or .xor.popc");
		flags |= obd_q(s, OBD_Q_and) ? OBD_MMA_AND : 0;
	}
	if (wmma && t->a == OBD_MMA_F16)
		flags |= OBD_MMA_REPEAT;
	return flags;
}

/* The order of the two words `row` and `col`: the layouts of A and B. */
static uint32_t quad_flags(struct obd_builder *b, const struct obd_stmt *s)
{
	uint32_t n = 0, flags = OBD_MMA_QUADS;

	for (uint32_t i = 0; i < s->n_words; i++) {
		bool col = s->words[i].size == 3 && memcmp(s->words[i].text, "col", 3) == 0;

		if (!col && !(s->words[i].size == 3 && memcmp(s->words[i].text, "row", 3) == 0))
			continue;
		flags |= !col ? 0 : n ? OBD_MMA_B_COL : OBD_MMA_A_COL;
		n++;
	}
	if (n != 2)
		obd_invalid(b, s, "it needs the layouts of A and B");
	return flags;
}

static void emit_product(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_mma_shape *size, const struct types *t, uint32_t flags)
{
	bool f64 = t->a == OBD_MMA_F64, sparse = flags & OBD_MMA_SPARSE;
	enum obd_type in = f64 ? OBD_T_F64 : OBD_T_B32;
	struct obd_mma_shape stored = { size->m, size->n, sparse ? size->k / 2 : size->k };
	uint32_t width = obd_block_width(obd_element_bits(t->a)),
		 na = obd_fragment_blocks(OBD_FRAGMENT_A, &stored, width),
		 nb = obd_fragment_blocks(OBD_FRAGMENT_B, size, width),
		 nc = sum_registers(size, t->c), nd = sum_registers(size, t->d), list;

	if (flags & OBD_MMA_REPEAT)
		na = nb = 8;
	if (flags & OBD_MMA_QUADS) {
		na = nb = 2;
		nc = t->c == OBD_MMA_F16 ? 4 : 8;
		nd = t->d == OBD_MMA_F16 ? 4 : 8;
	}
	gather_warp(b);
	list = b->n_calls;
	obd_build_list(b, na + nb + nc + (sparse ? 1 : 0));
	obd_build_list(b, nd);
	/*
	 * Reading a source may emit moves before the list is complete. This is harmless, because
	 * the list holds only register numbers.
	 */
	push_fragment(b, s, 1, in, na, false);
	push_fragment(b, s, 2, in, nb, false);
	push_fragment(b, s, 3, in, nc, false);
	if (sparse)
		push_fragment(b, s, 4, OBD_T_B32, 1, false);
	push_fragment(b, s, 0, in, nd, true);
	struct obd_lin *l = obd_emit(b, OBD_OP_mma, N, N, N, N);

	l->imm = list;
	l->e_raw = OBD_MMA_TYPES_CODE(t->a, t->b, t->c, t->d);
	l->g = flags | size->k << 16;
	l->flags |= OBD_CALL;
}

/* The last operand of mma.sp. Lanes that have metadata: one of 4, a pair, or all. */
static uint32_t selector(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_mma_shape *size, uint32_t type)
{
	uint32_t bits = obd_element_bits(type),
		 group = bits == 32 ? 2
		: bits == 4         ? 8
				    : 4,
		 metadata = 16 * (size->k / group) * 4, choices = 8 * 4 * 32 / metadata;

	if (s->opd[5].kind != OBD_OPD_IMM || s->opd[5].value >= choices)
		obd_invalid(b, s, "the sparsity selector is not a constant of this shape's range");
	return (uint32_t)s->opd[5].value << OBD_MMA_SELECTOR;
}

static void lower_mma(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	bool sparse = obd_word(s, "sp") || obd_word(s, "sp::ordered_metadata");
	uint32_t label = obd_build_skip_begin(b), flags;
	const struct shape *shape = find_shape(b, s);
	struct types t = product_types(b, s);

	(void)arg;
	if (obd_word(s, "block_scale"))
		obd_unsupported(b, s, "a product with block scales");
	obd_operand_count(b, s, sparse ? 6 : 4, sparse ? 6 : 4);
	if (!((sparse ? shape->sparse : shape->dense) >> t.a & 1))
		obd_unsupported(b, s, "this combination of shape and type");
	if (!sums_fit(&t) || !factors_fit(&t) ||
		(SMALL & (1u << t.a | 1u << t.b) && !obd_word(s, "kind::f8f6f4")))
		obd_invalid(b, s, "invalid combination of types");
	flags = product_flags(b, s, shape, &t, false);
	if (shape->size.m == 8 && t.a == OBD_MMA_F16)
		flags |= quad_flags(b, s);
	else if (!obd_word(s, "row") || !obd_word(s, "col"))
		obd_invalid(b, s, "A must be .row and B .col with this shape");
	if (sparse)
		flags |= OBD_MMA_SPARSE | selector(b, s, &shape->size, t.a);
	emit_product(b, s, &shape->size, &t, flags);
	obd_build_skip_end(b, label);
}

/* ---- wmma ---- */

static void wmma_product(struct obd_builder *b, const struct obd_stmt *s)
{
	const struct shape *shape = find_shape(b, s);
	struct types t = product_types(b, s);

	obd_operand_count(b, s, 4, 4);
	if (!(shape->wmma >> t.a & 1))
		obd_unsupported(b, s, "this combination of shape and type");
	if (!sums_fit(&t) || t.a != t.b)
		obd_invalid(b, s, "invalid combination of types");
	emit_product(b, s, &shape->size, &t, product_flags(b, s, shape, &t, true));
}

/* Adds the constant to the address, if it is not 0. */
static uint32_t add_offset(struct obd_builder *b, uint32_t base, uint32_t kind, uint32_t offset)
{
	bool shared = kind == OBD_KIND_SHARED;
	uint32_t v;

	if (!offset)
		return base;
	v = obd_vreg_new(b, shared ? OBD_CLASS_32 : OBD_CLASS_64);
	obd_emit(b, shared ? OBD_OP_add_u32 : OBD_OP_add_u64, v, base,
		obd_const_new(b, shared ? OBD_CLASS_32 : OBD_CLASS_64,
			(uint64_t)(int64_t)(int32_t)offset, NULL),
		N);
	return v;
}

/* The element type of a load or store, and its fragment. */
static uint32_t move_type(struct obd_builder *b, const struct obd_stmt *s,
	const struct shape *shape, enum obd_fragment f)
{
	uint32_t t = narrow_type(s, 0);
	bool fits;

	if (t == OBD_MMA_TYPES)
		t = element_type(b, s, obd_type_at(b, s, 0));
	fits = f != OBD_FRAGMENT_C ? shape->wmma >> t & 1
		: t == OBD_MMA_F16 || t == OBD_MMA_F32
		? shape->wmma & (SET(F16) | SET(BF16) | SET(TF32))
		: t == OBD_MMA_S32 ? shape->wmma & (BYTES | NIBBLES | SET(B1))
				   : t == OBD_MMA_F64 && shape->wmma & SET(F64);
	if (!fits)
		obd_unsupported(b, s, "this combination of shape and type");
	return t;
}

static void wmma_move(
	struct obd_builder *b, const struct obd_stmt *s, enum obd_fragment f, bool store)
{
	const struct shape *shape = find_shape(b, s);
	const struct obd_mma_shape *size = &shape->size;
	uint32_t type = move_type(b, s, shape, f), bits = obd_element_bits(type),
		 kind = obd_address_space(s), offset, base, stride, n, list;
	bool column = obd_word(s, "col");

	obd_operand_count(b, s, 2, 3);
	if (column == obd_word(s, "row"))
		obd_invalid(b, s, "it needs one layout, .row or .col");
	if (bits < 8 && column != (f == OBD_FRAGMENT_B))
		obd_invalid(b, s, "with this type, A must be .row and B .col");
	if (obd_q(s, OBD_Q_remote))
		obd_invalid(b, s, "a matrix cannot be in the shared memory of another block");
	gather_warp(b);
	base = obd_address(b, &s->opd[store ? 0 : 1], 0, &kind, &offset);
	if (kind == OBD_KIND_LOCAL)
		obd_invalid(b, s, "a matrix cannot be in local memory");
	base = add_offset(b, base, kind, offset);
	/* the default: the matrix has no gaps */
	stride = s->n_opd == 3
		? obd_src(b, s, 2, OBD_T_U32)
		: obd_const32(b,
			  f == OBD_FRAGMENT_A           ? (column ? size->m : size->k)
				  : f == OBD_FRAGMENT_B ? (column ? size->k : size->n)
				  : column              ? size->m
							: size->n);
	n = f == OBD_FRAGMENT_C ? sum_registers(size, type)
				: obd_fragment_blocks(f, size, obd_block_width(bits));
	if (f != OBD_FRAGMENT_C && type == OBD_MMA_F16)
		n = 8;
	list = b->n_calls;
	obd_build_list(b, store ? n : 0);
	obd_build_list(b, store ? 0 : n);
	push_fragment(b, s, store ? 1 : 0, type == OBD_MMA_F64 ? OBD_T_F64 : OBD_T_B32, n, !store);
	struct obd_lin *l = obd_emit(b, OBD_OP_wmma_move, N, base, stride, N);

	l->imm = list;
	l->g = size->m / 8 | size->n / 8 << 3 | size->k << 16;
	l->e_raw = OBD_WMMA_CODE(f, type, column, kind == OBD_KIND_SHARED, store);
	l->flags |= OBD_CALL;
}

static void lower_wmma(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t label = obd_build_skip_begin(b);

	(void)arg;
	if (obd_word(s, "mma"))
		wmma_product(b, s);
	else if (obd_word(s, "store") && obd_word(s, "d"))
		wmma_move(b, s, OBD_FRAGMENT_C, true);
	else if (obd_word(s, "load") && obd_word(s, "a"))
		wmma_move(b, s, OBD_FRAGMENT_A, false);
	else if (obd_word(s, "load") && obd_word(s, "b"))
		wmma_move(b, s, OBD_FRAGMENT_B, false);
	else if (obd_word(s, "load") && obd_word(s, "c"))
		wmma_move(b, s, OBD_FRAGMENT_C, false);
	else
		obd_unsupported(b, s, "this form");
	obd_build_skip_end(b, label);
}

/* ---- ldmatrix, stmatrix, movmatrix ---- */

/*
 * OBD_LDM_* of a shape and its types. Only m8n8 has elements of 16 bits; of bytes there are m16n16
 * (loads) and m16n8 (stores), transposed, and m8n16, which has narrower elements in memory.
 */
static uint32_t move_flags(struct obd_builder *b, const struct obd_stmt *s, bool store)
{
	uint32_t n = obd_word(s, "x4") ? 4
		: obd_word(s, "x2")    ? 2
		: obd_word(s, "x1")    ? 1
				       : 0,
		 trans = obd_word(s, "trans") ? OBD_LDM_TRANS : 0,
		 packed = obd_word(s, "b4x16_p64") ? OBD_LDM_4BITS
		: obd_word(s, "b6x16_p32")         ? OBD_LDM_6BITS
						   : 0;
	enum obd_type t = packed ? OBD_T_NONE : obd_type_at(b, s, 0);

	if (packed && !obd_word(s, "b8x16"))
		obd_invalid(b, s, "the elements in registers must be .b8x16");
	if (n && obd_word(s, "m8n8") && t == OBD_T_B16)
		return n | trans | (store ? OBD_LDM_STORE : 0);
	if (n && obd_word(s, "m16n8") && t == OBD_T_B8 && trans && store)
		return n | OBD_LDM_TRANS | OBD_LDM_STORE | OBD_LDM_BYTES;
	if ((n == 1 || n == 2) && obd_word(s, "m16n16") && trans && !store &&
		(packed || t == OBD_T_B8))
		return n * 2 | OBD_LDM_TRANS | OBD_LDM_BYTES | packed;
	if (n && obd_word(s, "m8n16") && packed && !trans && !store)
		return n | OBD_LDM_BYTES | packed;
	obd_unsupported(b, s, "this combination of shape and type");
}

/* which: 0 ldmatrix, 1 stmatrix */
static void lower_ldmatrix(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	uint32_t flags = move_flags(b, s, which), n = flags & OBD_LDM_COUNT,
		 kind = obd_q(s, OBD_Q_shared), offset, base, list;
	uint32_t label = obd_build_skip_begin(b);

	obd_operand_count(b, s, 2, 2);
	gather_warp(b);
	base = obd_address(b, &s->opd[which ? 0 : 1], 0, &kind, &offset);
	if (kind > 1)
		obd_invalid(b, s, "the rows must be in shared memory");
	if ((int32_t)offset > INT16_MAX || (int32_t)offset < INT16_MIN) {
		base = add_offset(b, base, kind, offset);
		offset = 0;
	}
	list = b->n_calls;
	obd_build_list(b, which ? n : 0);
	obd_build_list(b, which ? 0 : n);
	push_fragment(b, s, which ? 1 : 0, OBD_T_B32, n, !which);
	struct obd_lin *l = obd_emit(b, OBD_OP_ldmatrix, N, base, N, N);

	l->imm = list;
	l->g = (offset & 0xffff) | kind << 16;
	l->e_raw = (uint16_t)flags;
	l->flags |= OBD_CALL;
	obd_build_skip_end(b, label);
}

static void lower_movmatrix(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t label = obd_build_skip_begin(b);

	(void)arg;
	obd_operand_count(b, s, 2, 2);
	if (!obd_word(s, "m8n8") || !obd_word(s, "trans") || obd_type_at(b, s, 0) != OBD_T_B16)
		obd_unsupported(b, s, "a form other than .m8n8.trans.b16");
	gather_warp(b);
	obd_emit(b, OBD_OP_movmatrix, obd_dst(b, s, 0, OBD_T_B32), obd_src(b, s, 1, OBD_T_B32), N,
		N);
	obd_build_skip_end(b, label);
}

const struct obd_opcode obd_opcodes_matrix[] = {
	{ "mma", lower_mma, 0 },
	{ "wmma", lower_wmma, 0 },
	{ "ldmatrix", lower_ldmatrix, 0 },
	{ "stmatrix", lower_ldmatrix, 1 },
	{ "movmatrix", lower_movmatrix, 0 },
	{ 0 },
};
