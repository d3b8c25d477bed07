/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The levels of compute/kzg/g1_ntt.c as programs for a GPU: what a pair of points goes through,
 * step by step (compute/kzg/gpu_shape.h), with multiplications by roots of unity as both halves of
 * the root in digits -15, -13 .. 15, most of them 0, over one chain of doublings. Pure; any thread.
 */
#ifndef OBK_KZG_PROGRAM_H
#define OBK_KZG_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * For transforms of 2^log_n points: block i of any level, then the level that gathers and scatters
 * blocks of the whole.
 */
struct obk_fk20_programs {
	uint32_t *starts, *steps; /* starts[count] is where the last one ends */
	size_t count;
	/*
	 * the first program that scatters; those that gather, with inverse roots, are the first of
	 * all
	 */
	uint32_t scatter, fold;
};

/* OB_ERR_NO_MEMORY. 1 <= log_n <= 12. */
enum ob_err obk_fk20_programs_make(unsigned log_n, struct obk_fk20_programs *ret);
void obk_fk20_programs_free(struct obk_fk20_programs *programs);
/*
 * Products of field elements on the longest way through program i, one after the other: what a
 * launch waits for.
 */
unsigned obk_fk20_program_depth(const struct obk_fk20_programs *programs, size_t i);

#endif
