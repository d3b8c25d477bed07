/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Machine code for functions, beside the interpreter. It runs a warp while all of its 32 lanes are
 * active and on one path; everything else, each fault included, is left to the interpreter, which
 * can take over before any instruction. The results are the same, bit for bit, except which of two
 * NaNs of type f64 an operation passes on.
 *
 * A value that is linear in the lane (base + lane * stride in each half of the warp, with strides
 * that are known when the code is made) is computed once, as its base; with stride 0 it is the same
 * in all lanes. Loads and stores at linear addresses do not examine the addresses of single lanes.
 * Which values are linear is found for the case that all lanes take the same way through the
 * function. Code is entered at any basic block; there it checks that the values in the registers
 * are as it assumes. If they often are not, the code is made again without the assumption.
 */
#ifndef OBD_CORE_NATIVE_H
#define OBD_CORE_NATIVE_H

#include "softdevice/core/code.h"

struct obd_launch;
struct obd_warp;

/*
 * Code for blocks whose rows are whole warps, or half warps, so that tid.x and tid.y are linear;
 * and for others.
 */
enum obd_native_kind {
	OBD_NATIVE_ROWS,
	OBD_NATIVE_HALVES,
	OBD_NATIVE_OTHER,
	OBD_NATIVE_KINDS,
	OBD_NATIVE_NONE = OBD_NATIVE_KINDS
};

/*
 * Runs from the block's first instruction. Returns the instruction at which the interpreter has to
 * go on, or OBD_LEAVE; NULL: the values are not as the code assumes, and nothing was done.
 */
typedef const struct obd_insn *(*obd_native_fn)(char *regs, struct obd_warp *w);

/* A slot whose value the code assumes to be linear. */
struct obd_native_check {
	uint32_t slot;
	int32_t lane, half; /* strides, as in struct obn_form */
	bool wide;          /* 64-bit elements */
};

/* The code of one function. It is freed with its program. */
struct obd_native {
	/*
	 * by instruction: NULL, or the code for the block that begins there. NULL: there is no code
	 */
	obd_native_fn *entry;
	void *code;
	size_t size;
	struct obd_native *before; /* replaced by this; threads may still run it */
	_Atomic uint32_t refused;  /* how often an entry was refused */
	uint32_t made;             /* how often code was made for the function */
	uint32_t *block_at;        /* by instruction: number of the block that begins there */
	uint32_t *first_check;     /* by block: its first element of checks */
	struct obd_native_check *checks;
};

/* Makes code for the functions that the kernel can reach, where there is none yet. Any thread. */
void obd_native_prepare(struct obd_launch *l);
/* An entry was refused; makes the code again after some of these. */
void obd_native_refused(
	struct obd_func *f, enum obd_native_kind kind, const struct obd_insn *in, const char *regs);
void obd_native_free(struct obd_func *f);

#endif
