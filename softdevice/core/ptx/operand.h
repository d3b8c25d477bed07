/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Operands of statements. */
#ifndef OBD_CORE_OPERAND_H
#define OBD_CORE_OPERAND_H

#include "softdevice/core/ptx/loader.h"
#include "softdevice/core/ptx/symbol.h"

enum obd_operand_kind {
	OBD_OPD_NONE,
	OBD_OPD_REG,
	OBD_OPD_IMM,
	OBD_OPD_F32,
	OBD_OPD_F64,
	OBD_OPD_SYMBOL,
	OBD_OPD_ADDRESS,
	OBD_OPD_LIST,
	OBD_OPD_SREG,
	OBD_OPD_SINK,
};

struct obd_operand {
	enum obd_operand_kind kind;
	uint32_t vreg; /* register; base register of an address, or OBD_NONE */
	enum obd_type type;
	uint64_t value; /* value of an immediate; number of a special register */
	int64_t offset; /* offset from the symbol or base register */
	struct obd_symbol *sym;
	bool negated;  /* !p */
	uint32_t pair; /* second predicate of p|q, or OBD_NONE */
	bool pair_sink;
	struct obd_operand *items; /* of a list; those after the first in an address */
	uint32_t n_items;
};

void obd_operand_parse(struct obd_loader *ld, struct obd_operand *o);
/* The arguments or results of a call: a list in ( ). */
void obd_operand_parse_arguments(struct obd_loader *ld, struct obd_operand *o);

#endif
