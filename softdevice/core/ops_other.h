/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Operations that are not lane-wise arithmetic: one handler each, which looks at the mask itself.
 * Included with OPX(name) defined.
 */
/* clang-format off */
/* prefixes of the next instruction: a guard predicate (a, e: negated); a rounding mode (e) */
OPX(guard) OPX(round)
/* control: targets are relative instruction counts in imm */
OPX(nop) OPX(bra) OPX(bra_p) OPX(brx) OPX(call) OPX(call_ind) OPX(ret) OPX(exit) OPX(trap) OPX(nanosleep)
/* predicates */
OPX(pset) OPX(pmov) OPX(pnot) OPX(pand) OPX(por) OPX(pxor) OPX(testp)
/* comparisons into a predicate; e: all bits to negate */
OPX(eq_32) OPX(lt_u32) OPX(le_u32) OPX(lt_s32) OPX(le_s32) OPX(eq_64) OPX(lt_u64) OPX(le_u64) OPX(lt_s64) OPX(le_s64)
OPX(eq_f32) OPX(lt_f32) OPX(le_f32) OPX(un_f32) OPX(equ_f32) OPX(eq_f64) OPX(lt_f64) OPX(le_f64) OPX(un_f64) OPX(equ_f64)
/* conversions of every kind: imm is a packed description */
OPX(cvt)
/*
 * memory: a address, imm offset, e alignment - 1; g: 64-bit flat, s: 32-bit shared, l: 64-bit local
 * offset
 */
OPX(ld8_g) OPX(ld16_g) OPX(ld32_g) OPX(ld64_g) OPX(ld8_s) OPX(ld16_s) OPX(ld32_s) OPX(ld64_s)
OPX(ld8_l) OPX(ld16_l) OPX(ld32_l) OPX(ld64_l)
OPX(st8_g) OPX(st16_g) OPX(st32_g) OPX(st64_g) OPX(st8_s) OPX(st16_s) OPX(st32_s) OPX(st64_s)
OPX(st8_l) OPX(st16_l) OPX(st32_l) OPX(st64_l)
/* volatile, relaxed and stronger: e alignment - 1, c log2 size */
OPX(ld_strong) OPX(st_strong)
OPX(atom)
OPX(fence)
/* values the same for many lanes */
OPX(param32) OPX(param64) OPX(param_addr) OPX(sreg32) OPX(sreg64) OPX(shared_addr) OPX(local_addr)
OPX(cvta_shared) OPX(cvta_local) OPX(to_shared) OPX(to_local) OPX(isspacep)
OPX(stack_save) OPX(stack_restore) OPX(alloca)
/* across lanes */
OPX(sync) OPX(activemask) OPX(bar)
OPX(copy_async)
/* matrices: imm is an operand list as of a call; barriers in shared memory */
OPX(mma) OPX(ldmatrix) OPX(mbarrier)
	/* clang-format on */
