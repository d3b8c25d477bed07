/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the passes of shorten.h share. The loading thread only. */
#ifndef OBD_CORE_SHORTEN_INSIDE_H
#define OBD_CORE_SHORTEN_INSIDE_H

#include "softdevice/core/compile/builder.h"

/* the operation of an instruction that a pass has removed */
#define OBD_REMOVED OBD_OP_COUNT

struct obd_shorten {
	struct obd_builder *b;
	/* by vreg: number of operations that write it, and that read it */
	uint32_t *defs, *uses;
	/* by vreg, if is_const: its place in the builder's constants, or in the prologue */
	uint32_t *source;
	uint32_t capacity; /* vregs for which the arrays have room */
};

typedef void (*obd_visit_fn)(void *arg, uint32_t vreg, bool is_def);

/* Calls fn for the registers that the instruction reads, then for those that it writes. */
void obd_shorten_visit(
	const struct obd_builder *b, const struct obd_lin *l, obd_visit_fn fn, void *arg);
/* Does the operation only compute the register d from its operands, for each lane separately? */
bool obd_shorten_is_pure(uint32_t op);
/* Is the instruction under a guard or a rounding mode? */
bool obd_shorten_has_prefix(const struct obd_builder *b, uint32_t i);
/* Does the instruction write all lanes of all of d, and nothing else, whenever it is reached? */
bool obd_shorten_is_plain(const struct obd_builder *b, uint32_t i);
/* Replaces the instruction by OBD_REMOVED, and takes its operands from the counts. */
void obd_shorten_remove(struct obd_shorten *s, uint32_t i);

/* Appends an instruction to the prologue. False: it is full. */
bool obd_shorten_prologue(struct obd_shorten *s, const struct obd_lin *l);
/* Moves what is the same in all threads of a launch to the builder's prologue. */
void obd_shorten_invariant(struct obd_shorten *s);
/* Joins operations that follow one another. */
void obd_shorten_fuse(struct obd_shorten *s);

#endif
