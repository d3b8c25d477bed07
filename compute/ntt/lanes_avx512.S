/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Eight Montgomery products modulo r at once, R = 2^280, in 10 limbs of 28 bits; lanes_avx512.c has the ranges. Compilers keep too much in registers here
 * and spill what matters, so registers are given by hand: the sum in zmm0..9, r's limbs 1..9 in zmm10..18 (limb 0 is 1), the second factor in zmm19..28.
 * System V calling convention: rdi = result, rsi = first factor, limbs below 2^32, rdx = second factor, limbs below 2^28. Results have carried limbs. The result is
 * written after all operands were read. The caller is AVX-512 code: no vzeroupper.
 * Limb j of the running sum of row i lies in zmm((i + j) mod 10): the register that row i clears is the highest limb of row i + 1.
 */
#if defined(__x86_64__)
	.intel_syntax noprefix
	.altmacro

	.section .rodata
	.balign 64
.Lr28:
	.quad 0x1, 0xffffff0, 0xe5bfeff, 0xa402fff, 0x80553bd, 0x809a1d, 0x83339d8, 0x299d7d4, 0x3eda753, 0x7
.Lmask28:
	.quad 0xfffffff

	.text

	.macro MUL_ADD t, w
	vpmuludq zmm30, zmm29, zmm\w
	vpaddq zmm\t, zmm\t, zmm30
	.endm

	.macro MUL_SET t, w
	vpmuludq zmm\t, zmm29, zmm\w
	.endm

	/* m = -sum mod 2^28; what carries out of the lowest limb is kept in its register */
	.macro REDUCE_LOW low
	vpxorq zmm30, zmm30, zmm30
	vpsubq zmm29, zmm30, zmm\low
	vpandq zmm29, zmm29, zmm31
	vpaddq zmm\low, zmm\low, zmm29
	vpsrlq zmm\low, zmm\low, 28
	.endm

	.macro ADD_LOW t, low
	vpaddq zmm\t, zmm\t, zmm\low
	.endm

	.macro LOAD_MODULUS_LIMB r, at
	vpbroadcastq zmm\r, [rip + .Lr28 + \at]
	.endm

	.macro LOAD_LIMB r, at
	vmovdqa64 zmm\r, [rdx + \at]
	.endm

	.macro LOAD_FLAT_LIMB r, at
	vpbroadcastq zmm\r, [rdx + \at]
	.endm

	.macro CARRY low, high
	vpsrlq zmm30, zmm\low, 28
	vpandq zmm\low, zmm\low, zmm31
	vpaddq zmm\high, zmm\high, zmm30
	.endm

	.macro STORE r
	vmovdqa64 [rdi + 64 * \r], zmm\r
	.endm

	.macro BODY
	vpbroadcastq zmm31, [rip + .Lmask28]
	.set j, 1
	.rept 9
	LOAD_MODULUS_LIMB %(9 + j), %(8 * j)
	.set j, j + 1
	.endr
	.set i, 0
	.rept 10
	vmovdqa64 zmm29, [rsi + 64 * i]
	.set j, 0
	.rept 10
	.if i == 0 || j == 9
	MUL_SET %((i + j) % 10), %(19 + j)
	.else
	MUL_ADD %((i + j) % 10), %(19 + j)
	.endif
	.set j, j + 1
	.endr
	REDUCE_LOW %(i % 10)
	.set j, 1
	.rept 9
	MUL_ADD %((i + j) % 10), %(9 + j)
	.set j, j + 1
	.endr
	ADD_LOW %((i + 1) % 10), %(i % 10)
	.set i, i + 1
	.endr
	.set j, 0
	.rept 8
	CARRY %(j), %(j + 1)
	.set j, j + 1
	.endr
	vpsrlq zmm9, zmm8, 28
	vpandq zmm8, zmm8, zmm31
	.set j, 0
	.rept 10
	STORE %(j)
	.set j, j + 1
	.endr
	ret
	.endm

/* r = a w */
	.globl obk_ntt_mul_avx512
	.hidden obk_ntt_mul_avx512
	.type obk_ntt_mul_avx512, @function
	.balign 64
obk_ntt_mul_avx512:
	.cfi_startproc
	.set j, 0
	.rept 10
	LOAD_LIMB %(19 + j), %(64 * j)
	.set j, j + 1
	.endr
	BODY
	.cfi_endproc
	.size obk_ntt_mul_avx512, .-obk_ntt_mul_avx512

/* The same with one second factor for all lanes, ten words of 64 bits. */
	.globl obk_ntt_mul_flat_avx512
	.hidden obk_ntt_mul_flat_avx512
	.type obk_ntt_mul_flat_avx512, @function
	.balign 64
obk_ntt_mul_flat_avx512:
	.cfi_startproc
	.set j, 0
	.rept 10
	LOAD_FLAT_LIMB %(19 + j), %(8 * j)
	.set j, j + 1
	.endr
	BODY
	.cfi_endproc
	.size obk_ntt_mul_flat_avx512, .-obk_ntt_mul_flat_avx512
#endif

	.section .note.GNU-stack, "", @progbits
