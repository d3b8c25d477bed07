/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Relocations: constants of functions and cells of initial values that hold the address of a
 * symbol, which is known only at the end of the module.
 */
#ifndef OBD_CORE_RELOC_H
#define OBD_CORE_RELOC_H

#include "softdevice/core/ptx/symbol.h"

struct obd_func;

struct obd_reloc {
	struct obd_reloc *next;
	struct obd_symbol *sym;
	/* not NULL: relocates a constant of this function; NULL: relocates `cell` */
	struct obd_func *func;
	uint32_t const_index;
	uint32_t size; /* bytes of the cell */
	char *cell;
	int64_t offset;
	uint64_t mask;
	uint32_t line;
};

void obd_reloc_add(struct obd_loader *ld, struct obd_reloc r);
/* Writes all addresses. A symbol that nothing defines ends the load. */
void obd_reloc_apply(struct obd_loader *ld);

#endif
