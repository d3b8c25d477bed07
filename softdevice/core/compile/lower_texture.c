/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Instructions of textures and surfaces, in the unified mode: a texture includes its sampler. */
#include "softdevice/core/compile/lower.h"
#include "softdevice/core/compile/value.h"
#include "softdevice/core/texture_form.h"

#define N OBD_NONE

/* ---- operand lists ---- */

/*
 * The operands of an instruction are collected first, since reading one may emit operations and so
 * lists of their own.
 */
struct operands {
	uint32_t in[24], out[4], n_in, n_out;
};

static void add_in(struct operands *l, uint32_t vreg)
{
	l->in[l->n_in++] = vreg;
}

static void emit(struct obd_builder *b, const struct operands *l, uint32_t form, uint32_t argument)
{
	uint32_t list = b->n_calls;

	obd_build_list(b, l->n_in);
	obd_build_list(b, l->n_out);
	for (uint32_t i = 0; i < l->n_in; i++)
		obd_build_list(b, l->in[i]);
	for (uint32_t i = 0; i < l->n_out; i++)
		obd_build_list(b, l->out[i]);
	struct obd_lin *insn = obd_emit(b, OBD_OP_texture, N, N, N, N);

	insn->imm = list;
	insn->g = form;
	insn->e_raw = (uint16_t)argument;
	insn->flags |= OBD_CALL;
}

/* The elements of a vector operand, or the scalar itself. At least `least` of them. */
static const struct obd_operand *elements(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_operand *o, uint32_t least)
{
	if ((o->kind == OBD_OPD_LIST ? o->n_items : 1) < least)
		obd_invalid(b, s, "a vector operand has too few elements");
	return o->kind == OBD_OPD_LIST ? o->items : o;
}

static void add_vector(struct obd_builder *b, const struct obd_stmt *s, struct operands *l,
	const struct obd_operand *o, uint32_t n, enum obd_type t)
{
	const struct obd_operand *e = elements(b, s, o, n);

	for (uint32_t i = 0; i < n; i++)
		add_in(l, obd_src_of(b, &e[i], t));
}

/* The handle: a register, or the variable whose address it is. */
static void add_handle(struct obd_builder *b, const struct obd_stmt *s, struct operands *l,
	const struct obd_operand *o)
{
	struct obd_operand handle = { .kind = OBD_OPD_REG, .vreg = o->vreg, .type = o->type };

	if (o->kind != OBD_OPD_ADDRESS || o->offset)
		obd_invalid(b, s, "expected a texture or surface in [ ]");
	if (o->sym) {
		if (o->sym->kind != OBD_SYM_REF)
			obd_unsupported(
				b, s, "a texture or surface that is not a variable or object");
		handle.kind = OBD_OPD_SYMBOL;
		handle.sym = o->sym;
	} else if (o->vreg == N) {
		obd_invalid(b, s, "expected a texture or surface in [ ]");
	}
	add_in(l, obd_src_of(b, &handle, OBD_T_U64));
}

/* ---- geometries ---- */

static uint32_t geometry(struct obd_builder *b, const struct obd_stmt *s)
{
	static const struct {
		const char *name;
		uint32_t form;
	} names[] = {
		{ "1d", OBD_TEX_FORM(0, 1) },
		{ "2d", OBD_TEX_FORM(0, 2) },
		{ "3d", OBD_TEX_FORM(0, 3) },
		{ "a1d", OBD_TEX_FORM(0, 1) | OBD_TEX_ARRAY },
		{ "a2d", OBD_TEX_FORM(0, 2) | OBD_TEX_ARRAY },
		{ "cube", OBD_TEX_FORM(0, 2) | OBD_TEX_CUBE },
		{ "acube", OBD_TEX_FORM(0, 2) | OBD_TEX_CUBE | OBD_TEX_ARRAY },
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (obd_word(s, names[i].name))
			return names[i].form;
	obd_unsupported(b, s, "this geometry");
}

/* Handle, layer and coordinates, from the operand in [ ]. */
static void add_place(struct obd_builder *b, const struct obd_stmt *s, struct operands *l,
	const struct obd_operand *o, uint32_t form, enum obd_type t)
{
	bool array = form & OBD_TEX_ARRAY;
	uint32_t n = obd_tex_coordinates(form);
	const struct obd_operand *e;

	add_handle(b, s, l, o);
	if (o->n_items == 2)
		obd_unsupported(b, s, "a sampler apart from the texture");
	if (o->n_items != 1)
		obd_invalid(b, s, "expected coordinates after the texture or surface");
	e = elements(b, s, &o->items[0], n + array);
	if (array)
		add_in(l, obd_src_of(b, &e[0], OBD_T_U32));
	for (uint32_t i = 0; i < n; i++)
		add_in(l, obd_src_of(b, &e[array + i], t));
}

/* ---- textures ---- */

static uint32_t add_results(
	struct obd_builder *b, const struct obd_stmt *s, struct operands *l, enum obd_type t)
{
	uint32_t n = obd_q(s, OBD_Q_v4) ? 4 : obd_q(s, OBD_Q_v2) ? 2 : 1;
	const struct obd_operand *e = elements(b, s, &s->opd[0], n);

	if (n == 2 ? t != OBD_T_F16X2
		   : n != 4 ||
				(t != OBD_T_F32 && t != OBD_T_U32 && t != OBD_T_S32 &&
					t != OBD_T_B32 && t != OBD_T_F16))
		obd_invalid(
			b, s, "the result must be .v4 of .u32, .s32, .f32 or .f16, or .v2.f16x2");
	for (uint32_t i = 0; i < n; i++)
		l->out[l->n_out++] = obd_dst_of(b, &e[i], t);
	/* p: the texel is resident, which is always so without sparse arrays */
	if (s->opd[0].pair != N && b->vregs[s->opd[0].pair].cls != OBD_CLASS_PRED)
		obd_invalid(b, s, "the second result must be a predicate");
	if (s->opd[0].pair != N)
		obd_emit(b, OBD_OP_pset, s->opd[0].pair, N, N, N)->imm = OBD_FULL_MASK;
	return OBD_TEX_FORM_RESULT(t == OBD_T_F16 ? OBD_TEX_F16
			: t == OBD_T_F16X2        ? OBD_TEX_F16X2
						  : OBD_TEX_B32);
}

static void lower_tex(struct obd_builder *b, struct obd_stmt *s, uint32_t kind)
{
	uint32_t label = obd_build_skip_begin(b), form = geometry(b, s) | kind, at = 2,
		 dims = obd_tex_coordinates(form);
	uint32_t argument = obd_word(s, "g") ? 1 : obd_word(s, "b") ? 2 : obd_word(s, "a") ? 3 : 0;
	enum obd_type t = obd_type_at(b, s, 1);
	struct operands l = { .n_in = 0 };

	obd_operand_count(b, s, 2, 6);
	if (t != OBD_T_F32 && (t != OBD_T_S32 || kind == OBD_TEX_GATHER || form & OBD_TEX_CUBE))
		obd_invalid(b, s, "wrong type of coordinates");
	form |= add_results(b, s, &l, obd_type_at(b, s, 0));
	if (t == OBD_T_S32)
		form |= OBD_TEX_INTEGER;
	add_place(b, s, &l, &s->opd[1], form, t);
	if (obd_word(s, "level")) {
		form |= OBD_TEX_FORM_LOD(OBD_LOD_LEVEL);
		add_in(&l, obd_src(b, s, at++, t));
	} else if (obd_word(s, "grad")) {
		obd_operand_count(b, s, 4, 6);
		form |= OBD_TEX_FORM_LOD(OBD_LOD_GRADIENTS);
		add_vector(b, s, &l, &s->opd[at++], dims, OBD_T_F32);
		add_vector(b, s, &l, &s->opd[at++], dims, OBD_T_F32);
	} else if (obd_word(s, "base")) { /* the first level */
		form |= OBD_TEX_FORM_LOD(OBD_LOD_LEVEL);
		add_in(&l, obd_const32(b, 0));
	}
	if (at < s->n_opd) {
		if (s->opd[at].kind != OBD_OPD_LIST && dims > 1)
			obd_unsupported(b, s, "a depth comparison");
		form |= OBD_TEX_OFFSET;
		add_vector(b, s, &l, &s->opd[at++], dims, OBD_T_S32);
	}
	if (at < s->n_opd)
		obd_unsupported(b, s, "a depth comparison");
	emit(b, &l, form, argument);
	obd_build_skip_end(b, label);
}

static const struct {
	const char *name;
	uint8_t query;
} queries[] = {
	{ "width", OBD_QUERY_WIDTH },
	{ "height", OBD_QUERY_HEIGHT },
	{ "depth", OBD_QUERY_DEPTH },
	{ "channel_data_type", OBD_QUERY_DATA_TYPE },
	{ "channel_order", OBD_QUERY_ORDER },
	{ "normalized_coords", OBD_QUERY_NORMALIZED },
	{ "force_unnormalized_coords", OBD_QUERY_UNNORMALIZED },
	{ "filter_mode", OBD_QUERY_FILTER },
	{ "addr_mode_0", OBD_QUERY_WRAP_0 },
	{ "addr_mode_1", OBD_QUERY_WRAP_1 },
	{ "addr_mode_2", OBD_QUERY_WRAP_2 },
	{ "array_size", OBD_QUERY_LAYERS },
	{ "num_mipmap_levels", OBD_QUERY_LEVELS },
	{ "num_samples", OBD_QUERY_SAMPLES },
};

/* surface: OBD_TEX_SURFACE or 0 */
static void lower_query(struct obd_builder *b, struct obd_stmt *s, uint32_t surface)
{
	uint32_t label = obd_build_skip_begin(b), form = OBD_TEX_FORM(OBD_TEX_QUERY, 1) | surface;
	struct operands l = { .n_in = 0 };
	bool level = obd_word(s, "level");

	obd_operand_count(b, s, 2 + level, 2 + level);
	add_handle(b, s, &l, &s->opd[1]);
	if (level) {
		form |= OBD_TEX_FORM_LOD(OBD_LOD_LEVEL);
		add_in(&l, obd_src(b, s, 2, OBD_T_U32));
	}
	l.out[l.n_out++] = obd_dst(b, s, 0, OBD_T_B32);
	for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
		if (obd_word(s, queries[i].name)) {
			emit(b, &l, form, queries[i].query);
			obd_build_skip_end(b, label);
			return;
		}
	obd_unsupported(b, s, "this query");
}

static void lower_istypep(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t label = obd_build_skip_begin(b), value = obd_vreg_new(b, OBD_CLASS_32);
	struct operands l = { .out = { value }, .n_out = 1 };

	(void)arg;
	obd_operand_count(b, s, 2, 2);
	add_in(&l, obd_src(b, s, 1, OBD_T_U64));
	emit(b, &l, OBD_TEX_FORM(OBD_TEX_TYPE, 1),
		obd_word(s, "texref")            ? 0
			: obd_word(s, "surfref") ? 1
						 : 2);
	/* xored with -1: not equal */
	obd_emit(b, OBD_OP_eq_32, obd_dst(b, s, 0, OBD_T_PRED), value, obd_const32(b, 0), N)
		->e_raw = 1;
	obd_build_skip_end(b, label);
}

/* ---- surfaces ---- */

static uint32_t surface_form(struct obd_builder *b, const struct obd_stmt *s, uint32_t kind)
{
	uint32_t form = geometry(b, s) | kind | OBD_TEX_SURFACE | OBD_TEX_INTEGER;

	if (form & OBD_TEX_CUBE)
		obd_invalid(b, s, "surfaces have no geometry .cube");
	if (obd_word(s, "p"))
		form |= OBD_TEX_FORMATTED;
	return form |
		OBD_TEX_FORM_CLAMP(obd_q(s, OBD_Q_clamp) ? OBD_CLAMP_CLAMP
				: obd_word(s, "zero")    ? OBD_CLAMP_ZERO
							 : OBD_CLAMP_TRAP);
}

static void lower_surface(struct obd_builder *b, struct obd_stmt *s, uint32_t kind)
{
	uint32_t label = obd_build_skip_begin(b), form = surface_form(b, s, kind), n;
	bool store = kind == OBD_TEX_STORE;
	enum obd_type t = obd_type_at(b, s, 0);
	struct operands l = { .n_in = 0 };
	const struct obd_operand *e;

	obd_operand_count(b, s, 2, 2);
	e = obd_value_elements(b, s, store ? 1 : 0, &n);
	if (n > 4 || obd_type_bytes(t) > 8 ||
		(form & OBD_TEX_FORMATTED && (!store || obd_type_bytes(t) != 4)))
		obd_invalid(b, s, "wrong type or number of values");
	form |= OBD_TEX_FORM_BYTES(obd_type_bytes(t)) | OBD_TEX_FORM_VALUES(n);
	add_place(b, s, &l, &s->opd[store ? 0 : 1], form, OBD_T_S32);
	for (uint32_t i = 0; i < n; i++) {
		if (store)
			add_in(&l, obd_src_of(b, &e[i], t));
		else
			l.out[l.n_out++] = obd_dst_of(b, &e[i], t);
	}
	emit(b, &l, form, 0);
	obd_build_skip_end(b, label);
}

static void lower_sured(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t label = obd_build_skip_begin(b), form = surface_form(b, s, OBD_TEX_REDUCE), op;
	enum obd_type t = obd_type_at(b, s, 0);
	struct operands l = { .n_in = 0 };

	(void)arg;
	obd_operand_count(b, s, 2, 2);
	if (obd_type_bytes(t) < 4 || obd_type_bytes(t) > 8)
		obd_invalid(b, s, "the type must have 32 or 64 bits");
	op = obd_q(s, OBD_Q_add)      ? OBD_ATOM_ADD
		: obd_q(s, OBD_Q_min) ? OBD_ATOM_MIN
		: obd_q(s, OBD_Q_max) ? OBD_ATOM_MAX
		: obd_q(s, OBD_Q_and) ? OBD_ATOM_AND
		: obd_q(s, OBD_Q_or)  ? OBD_ATOM_OR
				      : OBD_ATOM_XOR;
	if (op == OBD_ATOM_XOR)
		obd_invalid(b, s, "the operation must be .add, .min, .max, .and or .or");
	form |= OBD_TEX_FORM_BYTES(obd_type_bytes(t));
	add_place(b, s, &l, &s->opd[0], form, OBD_T_S32);
	add_in(&l, obd_src(b, s, 1, t));
	emit(b, &l, form, OBD_TEX_REDUCTION(op, obd_type_signed(t)));
	obd_build_skip_end(b, label);
}

const struct obd_opcode obd_opcodes_texture[] = {
	{ "tex", lower_tex, OBD_TEX_FETCH },
	{ "tld4", lower_tex, OBD_TEX_GATHER },
	{ "txq", lower_query, 0 },
	{ "suq", lower_query, OBD_TEX_SURFACE },
	{ "istypep", lower_istypep, 0 },
	{ "suld", lower_surface, OBD_TEX_LOAD },
	{ "sust", lower_surface, OBD_TEX_STORE },
	{ "sured", lower_sured, 0 },
	{ 0 },
};
