/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/lower_tensor.h"

#include "softdevice/core/compile/address.h"
#include "softdevice/core/compile/lower_bulk.h"
#include "softdevice/core/compile/value.h"

#define N        OBD_NONE
#define RANK_MAX 5u

static uint32_t rank_of(struct obd_builder *b, const struct obd_stmt *s)
{
	static const char names[RANK_MAX][3] = { "1d", "2d", "3d", "4d", "5d" };

	for (uint32_t i = 0; i < RANK_MAX; i++)
		if (obd_word(s, names[i]))
			return i + 1;
	obd_invalid(b, s, "missing dimension, such as .2d");
}

/* Only whole tiles: the other modes and the pairs of blocks of sm_100 are refused. */
static void check_mode(struct obd_builder *b, const struct obd_stmt *s)
{
	static const char *const refused[] = { "tile::gather4", "tile::scatter4", "im2col",
		"im2col_no_offs", "im2col::w", "im2col::w::128", "cta_group::1", "cta_group::2" };

	for (uint32_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (obd_word(s, refused[i]))
			obd_unsupported(b, s, refused[i]);
}

/* Appends the coordinates of [map, {coordinates}]. */
static void push_coordinates(
	struct obd_builder *b, const struct obd_stmt *s, const struct obd_operand *o, uint32_t rank)
{
	const struct obd_operand *list = o->n_items == 1 ? &o->items[0] : NULL;

	if (!list || list->kind != OBD_OPD_LIST || list->n_items != rank)
		obd_invalid(b, s, "the number of coordinates is not the dimension of the tensor");
	for (uint32_t i = 0; i < rank; i++)
		obd_build_list(b, obd_src_of(b, &list->items[i], OBD_T_S32));
}

void obd_lower_tensor(struct obd_builder *b, const struct obd_stmt *s)
{
	bool load = obd_q(s, OBD_Q_unsupported), store = obd_word(s, "bulk_group"),
	     multicast = obd_word(s, "multicast::cluster");
	uint32_t rank = rank_of(b, s), op = OBD_TENSOR_LOAD, atom = 0, map, memory, barrier = N, at,
		 list;
	struct obd_lin *l;

	check_mode(b, s);
	if (obd_word(s, "prefetch"))
		return;
	if (load == store || (multicast && !load))
		obd_invalid(b, s, "it needs one completion mechanism that fits the direction");
	if (store) {
		op = obd_word(s, "reduce") ? OBD_TENSOR_REDUCE : OBD_TENSOR_STORE;
		atom = op == OBD_TENSOR_REDUCE ? obd_atom_op(b, s) : 0;
	}
	/* a cache policy may follow */
	at = store ? 2 : multicast ? 4 : 3;
	obd_operand_count(b, s, at, at + 1);
	map = obd_bulk_place(b, s, store ? 0 : 1, OBD_KIND_GLOBAL);
	memory = obd_bulk_place(b, s, store ? 1 : 0, OBD_KIND_SHARED);
	if (load)
		barrier = obd_bulk_place(b, s, 2, OBD_KIND_SHARED);
	list = b->n_calls;
	obd_build_list(b, rank + (multicast ? 1 : 0));
	obd_build_list(b, 0);
	push_coordinates(b, s, &s->opd[store ? 0 : 1], rank);
	if (multicast)
		obd_build_list(b, obd_src(b, s, 3, OBD_T_U16));
	l = obd_emit(b, OBD_OP_tensor, N, map, memory, barrier);
	l->imm = list;
	l->e_raw = (uint16_t)(OBD_TENSOR_CODE(op, rank, atom) |
		(multicast ? OBD_TENSOR_MULTICAST : 0));
	l->flags |= OBD_CALL;
}

/* The generic address of the map in operand i. */
static uint32_t map_address(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t i, bool shared)
{
	uint32_t base = obd_bulk_place(b, s, i, shared ? OBD_KIND_SHARED : OBD_KIND_GLOBAL), wide;

	if (!shared)
		return base;
	wide = obd_vreg_new(b, OBD_CLASS_64);
	obd_emit(b, OBD_OP_zext32_64, wide, base, N, N);
	base = obd_vreg_new(b, OBD_CLASS_64);
	obd_emit(b, OBD_OP_cvta_shared, base, wide, N, N);
	return base;
}

static uint32_t field_of(struct obd_builder *b, const struct obd_stmt *s)
{
	static const char *const names[] = { [OBD_FIELD_ADDRESS] = "global_address",
		[OBD_FIELD_RANK] = "rank",
		[OBD_FIELD_BOX] = "box_dim",
		[OBD_FIELD_DIM] = "global_dim",
		[OBD_FIELD_STRIDE] = "global_stride",
		[OBD_FIELD_STEP] = "element_stride",
		[OBD_FIELD_TYPE] = "elemtype",
		[OBD_FIELD_INTERLEAVE] = "interleave_layout",
		[OBD_FIELD_SWIZZLE] = "swizzle_mode",
		[OBD_FIELD_FILL] = "fill_mode" };

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (obd_word(s, names[i]))
			return i;
	obd_unsupported(b, s, "this field of a tensor map");
}

static void lower_replace(struct obd_builder *b, const struct obd_stmt *s)
{
	uint32_t field = field_of(b, s), map, list, n, index = 0;
	bool indexed = field >= OBD_FIELD_BOX && field <= OBD_FIELD_STEP,
	     wide = field == OBD_FIELD_ADDRESS || field == OBD_FIELD_STRIDE;
	struct obd_lin *l;

	if (!obd_word(s, "tile"))
		obd_unsupported(b, s, "a mode other than .tile");
	n = indexed ? 3 : 2;
	obd_operand_count(b, s, n, n);
	if (indexed) {
		if (s->opd[1].kind != OBD_OPD_IMM || s->opd[1].value >= RANK_MAX)
			obd_invalid(b, s, "the number of the dimension must be 0 to 4");
		index = (uint32_t)s->opd[1].value;
	}
	map = map_address(b, s, 0, obd_q(s, OBD_Q_shared));
	list = b->n_calls;
	obd_build_list(b, 1);
	obd_build_list(b, 0);
	obd_build_list(b, obd_src(b, s, n - 1, wide ? OBD_T_B64 : OBD_T_B32));
	l = obd_emit(b, OBD_OP_tensor, N, map, N, N);
	l->imm = list;
	l->e_raw = OBD_TENSOR_CODE(OBD_TENSOR_REPLACE, index, field);
	l->flags |= OBD_CALL;
}

static void lower_tensormap(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	struct obd_lin *l;
	uint32_t to, from;

	(void)arg;
	if (obd_word(s, "replace")) {
		lower_replace(b, s);
		return;
	}
	if (!obd_word(s, "cp_fenceproxy"))
		obd_unsupported(b, s, "this form");
	obd_operand_count(b, s, 3, 3);
	if (s->opd[2].kind != OBD_OPD_IMM || s->opd[2].value != 128)
		obd_invalid(b, s, "the size must be 128");
	to = map_address(b, s, 0, false);
	from = map_address(b, s, 1, true);
	l = obd_emit(b, OBD_OP_tensor, N, to, from, N);
	l->e_raw = OBD_TENSOR_CODE(OBD_TENSOR_COPY, 0, 0);
}

const struct obd_opcode obd_opcodes_tensor[] = {
	{ "tensormap", lower_tensormap, 0 },
	{ 0 },
};
