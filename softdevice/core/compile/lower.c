/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Operands as registers, and the table of opcodes with the functions that lower them. */
#include "softdevice/core/compile/lower.h"

#include <string.h>

#include "softdevice/core/ptx/token.h"
#include "softdevice/core/ptx/unimplemented.h"

void obd_invalid(struct obd_builder *b, const struct obd_stmt *s, const char *what)
{
	obd_ptx_fail(b->ld, "%.*s: %s", OBD_TEXT_ARG(s->op, s->op_size), what);
}

void obd_unsupported(struct obd_builder *b, const struct obd_stmt *s, const char *what)
{
	obd_ptx_refuse(b->ld, "%.*s: %s is not supported by the software device",
		OBD_TEXT_ARG(s->op, s->op_size), what);
}

void obd_operand_count(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t least, uint32_t most)
{
	if (s->n_opd < least || s->n_opd > most)
		obd_invalid(b, s, "wrong number of operands");
}

enum obd_type obd_type_at(struct obd_builder *b, const struct obd_stmt *s, uint32_t i)
{
	if (i >= s->n_types)
		obd_invalid(b, s, "missing type, such as .u32");
	return s->types[i];
}

uint32_t obd_temp(struct obd_builder *b, enum obd_type t)
{
	return obd_vreg_new(b, obd_type_class(t));
}

/* ---- constants ---- */

static uint64_t float_bits(enum obd_type t, double d)
{
	float f = (float)d;
	uint64_t v = 0;

	switch (t) {
	case OBD_T_F64:
	case OBD_T_B64:
		memcpy(&v, &d, 8);
		return v;
	case OBD_T_F16:
		return obd_f32_f16(f);
	case OBD_T_BF16:
		return obd_f32_bf16(f);
	default:
		memcpy(&v, &f, 4);
		return v;
	}
}

static uint64_t immediate(const struct obd_operand *o, enum obd_type t)
{
	double d;
	float f;
	uint32_t bits = (uint32_t)o->value;

	switch (o->kind) {
	case OBD_OPD_F32:
		if (t != OBD_T_F64)
			return o->value;
		memcpy(&f, &bits, 4);
		return float_bits(t, (double)f);
	case OBD_OPD_F64:
		if (t == OBD_T_F64 || t == OBD_T_B64)
			return o->value;
		memcpy(&d, &o->value, 8);
		return float_bits(t, d);
	default:
		/* an integer literal for a float type is a number, not a bit pattern */
		if (t == OBD_T_F32 || t == OBD_T_F64)
			return float_bits(t, (double)(int64_t)o->value);
		if (obd_type_bytes(t) == 2)
			return o->value & 0xffff;
		return obd_type_class(t) == OBD_CLASS_64 ? o->value : (uint32_t)o->value;
	}
}

static uint32_t symbol_value(struct obd_builder *b, const struct obd_operand *o, enum obd_type t)
{
	struct obd_symbol *sym = o->sym;
	bool wide = obd_type_class(t) == OBD_CLASS_64;
	uint32_t v = obd_vreg_new(b, wide ? OBD_CLASS_64 : OBD_CLASS_32);
	uint32_t w = v;

	switch (sym->kind) {
	case OBD_SYM_FUNC:
		b->ld->prog->funcs[sym->index]->address_taken = true;
		/* fall through */
	case OBD_SYM_GLOBAL:
		w = obd_const_new(b, OBD_CLASS_64, (uint64_t)o->offset, sym);
		if (!wide)
			obd_emit(b, OBD_OP_lo_64, v, w, OBD_NONE, OBD_NONE);
		return wide ? w : v;
	case OBD_SYM_REF: /* the address of a texture or surface variable is its handle */
		if (!wide)
			obd_ptx_fail(b->ld, "the address of a texture or surface has 64 bits");
		return obd_const_new(b, OBD_CLASS_64, sym->offset, NULL);
	case OBD_SYM_SHARED: {
		struct obd_lin *l =
			obd_emit(b, OBD_OP_shared_addr, v, OBD_NONE, OBD_NONE, OBD_NONE);

		l->imm = sym->index;
		l->e_raw = wide;
		obd_build_shared_ref(b, sym->index);
		if (!o->offset)
			return v;
		w = obd_temp(b, t);
		obd_emit(b, wide ? OBD_OP_add_u64 : OBD_OP_add_u32, w, v,
			obd_const_new(
				b, wide ? OBD_CLASS_64 : OBD_CLASS_32, (uint64_t)o->offset, NULL),
			OBD_NONE);
		return w;
	}
	case OBD_SYM_LOCAL:
	case OBD_SYM_KERNEL_PARAM:
		w = wide ? v : obd_vreg_new(b, OBD_CLASS_64);
		obd_emit(b, sym->kind == OBD_SYM_LOCAL ? OBD_OP_local_addr : OBD_OP_param_addr, w,
			OBD_NONE, OBD_NONE, OBD_NONE)
			->imm = (uint32_t)(sym->offset + (uint64_t)o->offset);
		if (!wide)
			obd_emit(b, OBD_OP_lo_64, v, w, OBD_NONE, OBD_NONE);
		return v;
	case OBD_SYM_PARAM: {
		/* The address of a by-value parameter: reserve local memory for its words. */
		if (!sym->spilled) {
			uint64_t at = ((uint64_t)b->local_bytes + 15) & ~15ull;

			if (at + sym->count * 4ull > OBD_MAX_LOCAL_BYTES)
				obd_ptx_fail(b->ld,
					"a function uses more than %u bytes of local memory",
					OBD_MAX_LOCAL_BYTES);
			sym->spilled = true;
			sym->offset = at;
			b->local_bytes = (uint32_t)(at + sym->count * 4);
		}
		w = obd_vreg_new(b, OBD_CLASS_64);
		obd_emit(b, OBD_OP_local_addr, w, OBD_NONE, OBD_NONE, OBD_NONE)->imm =
			(uint32_t)sym->offset;
		for (uint32_t i = 0; i < sym->count; i++)
			obd_emit(b, OBD_OP_st32_l, OBD_NONE, w, sym->vreg + i, OBD_NONE)->imm =
				i * 4;
		return w;
	}
	default:
		obd_ptx_fail(b->ld,
			"operand %.*s is not a declared variable, parameter or function",
			OBD_TEXT_ARG(sym->name, sym->size));
	}
}

/* ---- sources and destinations ---- */

uint32_t obd_src_of(struct obd_builder *b, const struct obd_operand *o, enum obd_type t)
{
	enum obd_reg_class want = obd_type_class(t);
	uint32_t v;

	switch (o->kind) {
	case OBD_OPD_REG: {
		enum obd_reg_class have = obd_type_class(o->type);

		if (have == want)
			return o->vreg;
		if (have == OBD_CLASS_32 && want == OBD_CLASS_64) {
			v = obd_temp(b, t);
			obd_emit(b, OBD_OP_zext32_64, v, o->vreg, OBD_NONE, OBD_NONE);
			return v;
		}
		if (have == OBD_CLASS_64 && want == OBD_CLASS_32) {
			v = obd_temp(b, t);
			obd_emit(b, OBD_OP_lo_64, v, o->vreg, OBD_NONE, OBD_NONE);
			return v;
		}
		obd_ptx_fail(b->ld,
			"the register class of an operand does not match the type of the "
			"instruction");
	}
	case OBD_OPD_IMM:
	case OBD_OPD_F32:
	case OBD_OPD_F64:
		if (want == OBD_CLASS_PRED) {
			v = obd_temp(b, t);
			obd_emit(b, OBD_OP_pset, v, OBD_NONE, OBD_NONE, OBD_NONE)->imm =
				o->value ? OBD_FULL_MASK : 0;
			return v;
		}
		if (want == OBD_CLASS_128)
			obd_ptx_fail(b->ld, "a 128-bit operand must be a register");
		return obd_const_new(b, want, immediate(o, t), NULL);
	case OBD_OPD_SREG: {
		bool wide = obd_type_class(o->type) == OBD_CLASS_64 || want == OBD_CLASS_64;

		if (want == OBD_CLASS_PRED && o->value == OBD_SREG_EXPLICIT_CLUSTER) {
			uint32_t n = obd_temp(b, OBD_T_U32);

			v = obd_temp(b, t);
			obd_emit(b, OBD_OP_sreg32, n, OBD_NONE, OBD_NONE, OBD_NONE)->e_raw =
				(uint16_t)o->value;
			obd_emit(b, OBD_OP_eq_32, v, n, obd_const_new(b, OBD_CLASS_32, 1, NULL),
				OBD_NONE);
			return v;
		}
		if (want != OBD_CLASS_32 && want != OBD_CLASS_64)
			obd_ptx_fail(b->ld, "a special register cannot be an operand of this type");
		b->ld->prog->reserved_shared |=
			o->value >= OBD_SREG_RESERVED_BEGIN && o->value <= OBD_SREG_RESERVED_1;
		v = obd_vreg_new(b, wide ? OBD_CLASS_64 : OBD_CLASS_32);
		obd_emit(b, wide ? OBD_OP_sreg64 : OBD_OP_sreg32, v, OBD_NONE, OBD_NONE, OBD_NONE)
			->e_raw = (uint16_t)o->value;
		if (wide && want == OBD_CLASS_32) {
			uint32_t n = obd_temp(b, t);

			obd_emit(b, OBD_OP_lo_64, n, v, OBD_NONE, OBD_NONE);
			return n;
		}
		return v;
	}
	case OBD_OPD_SYMBOL:
		return symbol_value(b, o, t);
	default:
		obd_ptx_fail(b->ld,
			"an operand is not a register, constant, special register or symbol");
	}
}

static const struct obd_operand *operand(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t i)
{
	if (i >= s->n_opd)
		obd_invalid(b, s, "missing operand");
	return &s->opd[i];
}

uint32_t obd_src(struct obd_builder *b, const struct obd_stmt *s, uint32_t i, enum obd_type t)
{
	return obd_src_of(b, operand(b, s, i), t);
}

uint32_t obd_dst_of(struct obd_builder *b, const struct obd_operand *o, enum obd_type t)
{
	if (o->kind == OBD_OPD_SINK)
		return obd_temp(b, t);
	if (o->kind != OBD_OPD_REG)
		obd_ptx_fail(b->ld, "the destination must be a register");
	if (obd_type_class(o->type) != obd_type_class(t))
		obd_ptx_fail(
			b->ld, "the destination register does not have the size of the result");
	return o->vreg;
}

uint32_t obd_dst(struct obd_builder *b, const struct obd_stmt *s, uint32_t i, enum obd_type t)
{
	return obd_dst_of(b, operand(b, s, i), t);
}

uint32_t obd_pred(struct obd_builder *b, const struct obd_stmt *s, uint32_t i, bool *ret_negated)
{
	const struct obd_operand *o = operand(b, s, i);

	*ret_negated = o->negated;
	return obd_src_of(b, o, OBD_T_PRED);
}

/* The value of a predicate operand after its negation. */
uint32_t obd_pred_value(struct obd_builder *b, const struct obd_stmt *s, uint32_t i)
{
	bool negated;
	uint32_t p = obd_pred(b, s, i, &negated), v;

	if (!negated)
		return p;
	v = obd_temp(b, OBD_T_PRED);
	obd_emit(b, OBD_OP_pnot, v, p, OBD_NONE, OBD_NONE);
	return v;
}

/* ---- opcodes ---- */

static const struct obd_opcode *const tables[] = {
	obd_opcodes_int,
	obd_opcodes_bits,
	obd_opcodes_compare,
	obd_opcodes_float,
	obd_opcodes_move,
	obd_opcodes_mem,
	obd_opcodes_copy,
	obd_opcodes_atomic,
	obd_opcodes_ctl,
	obd_opcodes_cvt,
	obd_opcodes_warp,
	obd_opcodes_matrix,
	obd_opcodes_mbarrier,
	obd_opcodes_texture,
	obd_opcodes_wgmma,
	obd_opcodes_tensor,
};

#define N_TABLES (sizeof(tables) / sizeof(tables[0]))
#define BUCKETS  256u

static uint32_t bucket(const char *name, uint32_t size)
{
	uint32_t h = size;

	for (uint32_t i = 0; i < size; i++)
		h = h * 31 + (uint8_t)name[i];
	return h % BUCKETS;
}

/* Hash table of opcodes, filled once. Entries are table * 4096 + place + 1; 0 ends a chain. */
static uint16_t heads[BUCKETS], links[N_TABLES][128];

__attribute__((constructor)) static void fill_opcodes(void)
{
	for (uint32_t t = 0; t < N_TABLES; t++)
		for (uint32_t i = 0; tables[t][i].name && i < 128; i++) {
			uint32_t h = bucket(tables[t][i].name, (uint32_t)strlen(tables[t][i].name));

			links[t][i] = heads[h];
			heads[h] = (uint16_t)(t * 4096 + i + 1);
		}
}

static const struct obd_opcode *find_opcode(const char *name, uint32_t size)
{
	for (uint32_t k = heads[bucket(name, size)]; k;) {
		uint32_t t = (k - 1) / 4096, i = (k - 1) % 4096;
		const struct obd_opcode *o = &tables[t][i];

		if (strlen(o->name) == size && memcmp(o->name, name, size) == 0)
			return o;
		k = links[t][i];
	}
	return NULL;
}

void obd_lower(struct obd_builder *b, struct obd_stmt *s)
{
	const struct obd_opcode *o = find_opcode(s->op, s->op_size);

	if (!o && obd_ptx_newer(b->ld->version))
		obd_ptx_refuse(b->ld, "instruction %.*s is not supported by the software device",
			(int)s->op_size, s->op);
	if (!o)
		obd_ptx_fail(b->ld, "unknown instruction %.*s", OBD_TEXT_ARG(s->op, s->op_size));
	b->line = s->line;
	b->first_temp = b->n_vregs;
	b->guard = s->guard;
	b->guard_negated = s->guard_negated;
	o->fn(b, s, o->arg);
	b->guard = OBD_NONE;
	b->round = OBD_RN;
}
