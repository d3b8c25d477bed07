/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_builder: builds one function. Statements add operations over virtual registers; at the end
 * finish.h assigns slots to the registers and writes the code. The loading thread only.
 */
#ifndef OBD_CORE_BUILDER_H
#define OBD_CORE_BUILDER_H

#include "softdevice/core/code.h"
#include "softdevice/core/half.h"
#include "softdevice/core/ptx/decl.h"
#include "softdevice/core/ptx/symbol.h"
#include "softdevice/core/shape.h"

#define OBD_MAX_REGISTERS (1u << 20) /* virtual, per function */
#define OBD_MAX_CODE      (1u << 22) /* operations of one function */

struct obd_lin {
	uint16_t op, flags;
	uint16_t e_raw;
	uint8_t d_half, a_half; /* field d or a is the upper 64 bits of a 128-bit register */
	uint32_t d, a, b, c, e, f, g;
	uint32_t imm;
	uint32_t line;
};

/* obd_vreg.is_const */
enum { OBD_VARIES, OBD_CONSTANT, OBD_IN_PROLOGUE };

struct obd_vreg {
	uint8_t cls, fixed, is_const, bits;
	uint32_t slot;
};

struct obd_const_ref {
	uint64_t value;
	struct obd_symbol *sym; /* its address is added to `value` once it is known; NULL: none */
	uint32_t vreg, cls;
	uint32_t next;
};

#define OBD_CONST_BUCKETS 1024u
#define OBD_BUILD_WORK    6u

struct obd_builder {
	struct obd_loader *ld;
	struct obd_func *func;
	struct obd_function_decl *decl;
	bool is_entry, discard;
	struct obd_lin *code;
	uint32_t n_code, cap_code;
	struct obd_lin *prologue; /* see obd_func; shorten.h */
	uint32_t n_prologue, cap_prologue;
	struct obd_vreg *vregs;
	uint32_t n_vregs, cap_vregs;
	struct obd_const_ref *consts;
	uint32_t n_consts, cap_consts;
	uint32_t const_bucket[OBD_CONST_BUCKETS];
	struct obd_labels labels;
	uint32_t *tables; /* for each table: count, label numbers */
	uint32_t n_tables, cap_tables;
	uint32_t *calls; /* for each call: n_args, n_rets, vregs */
	uint32_t n_calls, cap_calls;
	uint32_t *callees;
	uint32_t n_callees, cap_callees;
	uint32_t *shared_refs;
	uint32_t n_shared_refs, cap_shared_refs;
	/* register of the first word of the parameters, and of the results */
	uint32_t arg_vreg, ret_vreg;
	uint32_t local_bytes;
	uint32_t line;
	uint32_t guard; /* predicate that guards every emitted operation, or OBD_NONE */
	bool guard_negated;
	uint32_t round; /* enum obd_round of the emitted operations; OBD_RN: no prefix */
	/* registers from this number on are temporaries of the current statement */
	uint32_t first_temp;
	uint32_t registers; /* number of declared registers, for the reported figure */
	/* arrays of the passes of shorten.h: here, as an error in a pass ends in obd_build_fini */
	void *work[OBD_BUILD_WORK];
	uint32_t n_work;
};

void obd_build_init(struct obd_builder *b, struct obd_loader *ld, struct obd_func *f);
void obd_build_fini(struct obd_builder *b);
/*
 * An array filled with zeros, at most OBD_BUILD_WORK of them; NULL: out of memory. The builder owns
 * it: obd_build_work_free frees all, and so does obd_build_fini.
 */
void *obd_build_work(struct obd_builder *b, size_t n, size_t size);
void obd_build_work_free(struct obd_builder *b);
uint32_t obd_vreg_new(struct obd_builder *b, enum obd_reg_class cls);
uint32_t obd_vreg_range(struct obd_builder *b, enum obd_reg_class cls, uint32_t count);
uint32_t obd_const_new(
	struct obd_builder *b, enum obd_reg_class cls, uint64_t value, struct obd_symbol *sym);
/*
 * Emits an operation with result d and operands a, bb, c; OBD_NONE for those it does not have. The
 * pointer is valid until the next emit.
 */
struct obd_lin *obd_emit(
	struct obd_builder *b, uint32_t op, uint32_t d, uint32_t a, uint32_t bb, uint32_t c);
struct obd_lin *obd_emit_raw(struct obd_builder *b, uint32_t op);
uint32_t obd_label_new(struct obd_builder *b);
void obd_label_here(struct obd_builder *b, uint32_t label);
/* A branch to the label if `pred` has the given value; OBD_NONE: always. */
void obd_build_branch(struct obd_builder *b, uint32_t label, uint32_t pred, bool negated);
/*
 * Replaces the statement's guard by a branch around its operations. Returns the label for
 * obd_build_skip_end, which ends them. OBD_NONE: there was no guard.
 */
uint32_t obd_build_skip_begin(struct obd_builder *b);
void obd_build_skip_end(struct obd_builder *b, uint32_t label);
/* Appends to the operand list of an operation that has one, such as a call. */
void obd_build_list(struct obd_builder *b, uint32_t v);
/* The function refers to the shared variable, or calls the function, of this index. */
void obd_build_shared_ref(struct obd_builder *b, uint32_t index);
void obd_build_callee(struct obd_builder *b, uint32_t index);

#endif
