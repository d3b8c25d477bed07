/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Operations that do not work on each SIMD lane separately. Each has its own handler, which
 * evaluates the lane mask itself. The including file defines OPX(name).
 */
/* clang-format off */
/* prefixes of the next instruction: a guard predicate (a; e: negated), a rounding mode (e) */
OPX(guard) OPX(round)
/* control flow; a target is a relative instruction count in imm */
OPX(nop) OPX(bra) OPX(bra_p) OPX(brx) OPX(call) OPX(call_ind) OPX(ret) OPX(exit) OPX(trap) OPX(nanosleep)
/* predicates */
OPX(pset) OPX(pmov) OPX(pnot) OPX(pand) OPX(por) OPX(pxor) OPX(testp)
/* comparisons with a predicate as result; e: mask that is xored into it */
OPX(eq_32) OPX(lt_u32) OPX(le_u32) OPX(lt_s32) OPX(le_s32) OPX(eq_64) OPX(lt_u64) OPX(le_u64) OPX(lt_s64) OPX(le_s64)
OPX(eq_f32) OPX(lt_f32) OPX(le_f32) OPX(un_f32) OPX(equ_f32) OPX(eq_f64) OPX(lt_f64) OPX(le_f64) OPX(un_f64) OPX(equ_f64)
/* the same, combined with the predicate c */
OPX(eq_32_or) OPX(lt_u32_or) OPX(le_u32_or) OPX(lt_s32_or) OPX(le_s32_or)
OPX(eq_32_and) OPX(lt_u32_and) OPX(le_u32_and) OPX(lt_s32_and) OPX(le_s32_and)
/* conversions of every kind; imm: OBD_CVT_CODE */
OPX(cvt) OPX(cvt_narrow)
/*
 * Memory accesses. a: address, imm: offset, e: alignment - 1. Suffix g: 64-bit flat address, s:
 * 32-bit shared address, l: 64-bit offset in local memory.
 */
OPX(ld8_g) OPX(ld16_g) OPX(ld32_g) OPX(ld64_g) OPX(ld8_s) OPX(ld16_s) OPX(ld32_s) OPX(ld64_s)
OPX(ld8_l) OPX(ld16_l) OPX(ld32_l) OPX(ld64_l)
OPX(st8_g) OPX(st16_g) OPX(st32_g) OPX(st64_g) OPX(st8_s) OPX(st16_s) OPX(st32_s) OPX(st64_s)
OPX(st8_l) OPX(st16_l) OPX(st32_l) OPX(st64_l)
/*
 * At base + index * size. a: index, 32 bits; c: base, the same in all lanes; e: alignment - 1, and
 * OBD_INDEX_SIGNED.
 */
OPX(ld8_i) OPX(ld16_i) OPX(ld32_i) OPX(ld64_i) OPX(st8_i) OPX(st16_i) OPX(st32_i) OPX(st64_i)
/* volatile, relaxed and stronger accesses; e: alignment - 1, c: log2 of the size */
OPX(ld_strong) OPX(st_strong)
OPX(atom)
OPX(fence)
/* parameters, special registers, addresses of variables: mostly one value for all lanes */
OPX(param32) OPX(param64) OPX(param_addr) OPX(sreg32) OPX(sreg64) OPX(shared_addr) OPX(local_addr)
/* the thread's index in the grid, on axis e */
OPX(thread_index)
OPX(cvta_shared) OPX(cvta_local) OPX(to_shared) OPX(to_local) OPX(isspacep)
OPX(cluster_addr)
OPX(stack_save) OPX(stack_restore) OPX(alloca)
/* operations among lanes */
OPX(sync) OPX(activemask) OPX(bar)
OPX(copy_async) OPX(copy_bulk) OPX(tensor)
/*
 * gather: a sync of the whole warp, before a matrix operation. Matrices, whose imm is an operand
 * list like that of a call. Barriers in shared memory.
 */
OPX(gather) OPX(mma) OPX(ldmatrix) OPX(wmma_move) OPX(movmatrix) OPX(mbarrier) OPX(wgmma)
/* textures and surfaces (texture_form.h) */
OPX(texture)
	/* clang-format on */
