/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The levels of compute/kzg/g1_ntt.c as programs for a GPU. A program lists the steps
 * (compute/kzg/gpu_shape.h) for a pair of points. A multiplication by a root of unity uses both
 * halves of the root in digits -15, -13 .. 15, most of them 0, over one chain of doublings. Pure
 * functions; any thread.
 */
#ifndef OBK_KZG_PROGRAM_H
#define OBK_KZG_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Programs for transforms of 2^log_n points: for each block i of any level one program that gathers
 * and one that scatters; then the program `fold`, which does the last level that gathers and the
 * first that scatters in one.
 */
struct obk_fk20_programs {
	uint32_t *starts, *steps; /* starts[count] is the end of the last program */
	size_t count;
	/*
	 * scatter: index of the first program that scatters; programs below it gather, with inverse
	 * roots. fold: index of the last program
	 */
	uint32_t scatter, fold;
};

/* OB_ERR_NO_MEMORY. 1 <= log_n <= 12. */
enum ob_err obk_fk20_programs_make(unsigned log_n, struct obk_fk20_programs *ret);
void obk_fk20_programs_free(struct obk_fk20_programs *programs);
/*
 * The length of the critical path of program i, in multiplications of field elements: it determines
 * how long a launch takes.
 */
unsigned obk_fk20_program_depth(const struct obk_fk20_programs *programs, size_t i);

#endif
