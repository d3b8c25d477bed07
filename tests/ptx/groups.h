/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The groups of tests: each function adds its rows or cases to the suite (suite.h has the ownership
 * and thread rules).
 */
#ifndef OB_TESTS_PTX_GROUPS_H
#define OB_TESTS_PTX_GROUPS_H

#include "tests/ptx/suite.h"

/* name, description */
/* clang-format off */
#define PT_GROUPS(X) \
	X(integer, "integer arithmetic") \
	X(bits, "logic, shifts, fields, permutes, dot products") \
	X(carry, "carry chains") \
	X(compare, "setp, set, selp, slct, testp") \
	X(float, "rounded float arithmetic, f32 and f64") \
	X(approx, "approximate float functions") \
	X(half, "f16, bf16 and their packed forms") \
	X(cvt, "conversions") \
	X(memory, "loads, stores, spaces, vectors") \
	X(flow, "branches, calls, divergence") \
	X(warp, "shuffles, votes, matches, reductions") \
	X(block, "barriers, special registers, grid shapes") \
	X(cluster, "thread block clusters") \
	X(atomic, "atomics, reductions, ordering") \
	X(runtime, "printf, malloc, assert, faults") \
	X(matrix, "mma, mma.sp, wmma in all shapes and types") \
	X(wgmma, "wgmma") \
	X(tensor, "tensor maps and copies of tiles") \
	X(library, "mma, ldmatrix, cp.async, mbarrier, where the driver has them")
/* clang-format on */

#define PT_GROUP_DECLARE(name, what) void pt_group_##name(struct pt_suite *s);
PT_GROUPS(PT_GROUP_DECLARE)
#undef PT_GROUP_DECLARE

/* The approximate functions of group half; they share rows_approx.c with group approx. */
void pt_half_functions(struct pt_suite *s);
/* The cases of conversions of 4 and 6 bits, of group cvt. */
void pt_narrow_cases(struct pt_suite *s);
/* The cases of asynchronous copies, of group library. */
void pt_async_cases(struct pt_suite *s);
/* The cases of wmma, of group matrix. */
void pt_wmma_cases(struct pt_suite *s);
/* The cases of ldmatrix and stmatrix with bytes, of group matrix. */
void pt_matrix8_cases(struct pt_suite *s);
/* The rows of groups memory and atomic. */
void pt_memory_rows(struct pt_suite *s);
void pt_atomic_rows(struct pt_suite *s);

#endif
