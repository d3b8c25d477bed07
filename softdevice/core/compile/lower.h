/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Lowering: turns a statement into operations of the builder. Here are the operands as registers,
 * and the tables of opcodes; lower_*.c have the functions that lower a group of opcodes each.
 */
#ifndef OBD_CORE_LOWER_H
#define OBD_CORE_LOWER_H

#include "softdevice/core/compile/builder.h"
#include "softdevice/core/ptx/stmt.h"

/* Lowers one statement. */
void obd_lower(struct obd_builder *b, struct obd_stmt *s);
/*
 * The value of an operand as a register. The type t selects the register class and how an immediate
 * is read.
 */
uint32_t obd_src(struct obd_builder *b, const struct obd_stmt *s, uint32_t i, enum obd_type t);
uint32_t obd_src_of(struct obd_builder *b, const struct obd_operand *o, enum obd_type t);
uint32_t obd_dst(struct obd_builder *b, const struct obd_stmt *s, uint32_t i, enum obd_type t);
uint32_t obd_dst_of(struct obd_builder *b, const struct obd_operand *o, enum obd_type t);
uint32_t obd_pred(struct obd_builder *b, const struct obd_stmt *s, uint32_t i, bool *ret_negated);
uint32_t obd_pred_value(struct obd_builder *b, const struct obd_stmt *s, uint32_t i);
uint32_t obd_temp(struct obd_builder *b, enum obd_type t);
void obd_operand_count(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t least, uint32_t most);
enum obd_type obd_type_at(struct obd_builder *b, const struct obd_stmt *s, uint32_t i);
/* The operation of an atomic or a reduction: OBD_ATOM_*. */
uint32_t obd_atom_op(struct obd_builder *b, const struct obd_stmt *s);
/*
 * Completes the transactions of an asynchronous store or reduction, which is already done, at the
 * mbarrier of operand i, the last one.
 */
void obd_mbarrier_complete_tx(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t i, uint32_t bytes);
/* Ends the load with an error: the instruction is not valid PTX. */
_Noreturn void obd_invalid(struct obd_builder *b, const struct obd_stmt *s, const char *what);
/*
 * Refuses the function (obd_ptx_refuse): the form of the instruction is valid PTX that this device
 * does not implement.
 */
_Noreturn void obd_unsupported(struct obd_builder *b, const struct obd_stmt *s, const char *what);

typedef void (*obd_lower_fn)(struct obd_builder *b, struct obd_stmt *s, uint32_t arg);
struct obd_opcode {
	const char *name;
	obd_lower_fn fn;
	uint32_t arg;
};
extern const struct obd_opcode obd_opcodes_int[], obd_opcodes_bits[], obd_opcodes_compare[],
	obd_opcodes_float[], obd_opcodes_move[], obd_opcodes_mem[], obd_opcodes_copy[],
	obd_opcodes_atomic[], obd_opcodes_ctl[], obd_opcodes_cvt[], obd_opcodes_warp[],
	obd_opcodes_matrix[], obd_opcodes_mbarrier[], obd_opcodes_texture[], obd_opcodes_wgmma[],
	obd_opcodes_tensor[];

#endif
