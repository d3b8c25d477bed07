/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/address.h"

#include "softdevice/core/compile/value.h"
#include "softdevice/core/ptx/token.h"

#define N OBD_NONE

static uint32_t as_wide(struct obd_builder *b, uint32_t v, enum obd_type t)
{
	uint32_t w;

	if (obd_type_class(t) == OBD_CLASS_64)
		return v;
	if (obd_type_class(t) != OBD_CLASS_32)
		obd_ptx_fail(b->ld, "an address register must have 32 or 64 bits");
	w = obd_vreg_new(b, OBD_CLASS_64);
	obd_emit(b, OBD_OP_zext32_64, w, v, N, N);
	return w;
}

static uint32_t as_narrow(struct obd_builder *b, uint32_t v, enum obd_type t)
{
	uint32_t w;

	if (obd_type_class(t) == OBD_CLASS_32)
		return v;
	if (obd_type_class(t) != OBD_CLASS_64)
		obd_ptx_fail(b->ld, "an address register must have 32 or 64 bits");
	w = obd_vreg_new(b, OBD_CLASS_32);
	obd_emit(b, OBD_OP_lo_64, w, v, N, N);
	return w;
}

uint32_t obd_address_cluster(
	struct obd_builder *b, enum obd_cluster_op op, uint32_t address, uint32_t rank)
{
	uint32_t v = obd_vreg_new(b, OBD_CLASS_64);

	obd_emit(b, OBD_OP_cluster_addr, v, address, rank, N)->e_raw = (uint16_t)op;
	return v;
}

/* The generic address of an access to shared::cluster. Its offset is part of what is checked. */
static uint32_t cluster_access(
	struct obd_builder *b, uint32_t address, uint32_t offset, uint32_t bytes)
{
	uint32_t v = obd_vreg_new(b, OBD_CLASS_64);
	struct obd_lin *l = obd_emit(b, OBD_OP_cluster_addr, v, address, N, N);

	l->e_raw = OBD_CLUSTER_ACCESS(bytes);
	l->imm = offset;
	return v;
}

uint32_t obd_address_space(const struct obd_stmt *s)
{
	return obd_q(s, OBD_Q_remote)    ? OBD_KIND_CLUSTER
		: obd_q(s, OBD_Q_shared) ? OBD_KIND_SHARED
		: obd_q(s, OBD_Q_local)  ? OBD_KIND_LOCAL
					 : OBD_KIND_GLOBAL;
}

uint32_t obd_address(struct obd_builder *b, const struct obd_operand *o, uint32_t bytes,
	uint32_t *kind, uint32_t *ret_offset)
{
	int64_t offset = o->offset;
	uint32_t base;

	if (o->kind != OBD_OPD_ADDRESS)
		obd_ptx_fail(b->ld, "expected an address operand in [ ]");
	if (o->sym) {
		struct obd_operand sym = {
			.kind = OBD_OPD_SYMBOL, .sym = o->sym, .vreg = N, .pair = N
		};

		*kind = o->sym->kind == OBD_SYM_SHARED  ? OBD_KIND_SHARED
			: o->sym->kind == OBD_SYM_LOCAL ? OBD_KIND_LOCAL
							: OBD_KIND_GLOBAL;
		if (*kind == OBD_KIND_GLOBAL && o->sym->kind != OBD_SYM_GLOBAL &&
			o->sym->kind != OBD_SYM_KERNEL_PARAM)
			obd_ptx_fail(b->ld, "%.*s has no address: it is not a variable",
				OBD_TEXT_ARG(o->sym->name, o->sym->size));
		if (*kind == OBD_KIND_GLOBAL && o->sym->kind == OBD_SYM_GLOBAL) {
			sym.offset = offset;
			offset = 0;
		}
		base = obd_src_of(b, &sym, *kind == OBD_KIND_SHARED ? OBD_T_U32 : OBD_T_U64);
	} else if (o->vreg == N) {
		if (*kind == OBD_KIND_CLUSTER) /* a number is an address of the block itself */
			*kind = OBD_KIND_SHARED;
		base = *kind == OBD_KIND_SHARED
			? obd_const32(b, (uint64_t)offset)
			: obd_const_new(b, OBD_CLASS_64, (uint64_t)offset, NULL);
		offset = 0;
	} else if (*kind == OBD_KIND_CLUSTER) {
		base = cluster_access(b, as_wide(b, o->vreg, o->type), (uint32_t)offset, bytes);
		*kind = OBD_KIND_GLOBAL;
		offset = 0;
	} else {
		base = *kind == OBD_KIND_SHARED ? as_narrow(b, o->vreg, o->type)
						: as_wide(b, o->vreg, o->type);
	}
	if (*kind != OBD_KIND_SHARED && (offset > INT32_MAX / 2 || offset < INT32_MIN / 2)) {
		uint32_t w = obd_vreg_new(b, OBD_CLASS_64);

		obd_emit(b, OBD_OP_add_u64, w, base,
			obd_const_new(b, OBD_CLASS_64, (uint64_t)offset, NULL), N);
		base = w;
		offset = 0;
	}
	*ret_offset = (uint32_t)offset;
	return base;
}
