/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Eight Montgomery products modulo p at once, one a lane of 64 bits, in 14 limbs of 28 bits with R = 2^392: a product of two limbs is one vpmuludq and
 * a column of 28 of them still fits its lane, so there are no carries until the end.
 * Operands: 14 vectors each, limb j of every lane in vector j; only the low 32 bits of a lane are read. Limbs of up to 30 bits in one operand and up to 29 in the
 * other are allowed. Results have limbs below 2^28 and, for operands a and b, a value below a b / 2^392 + p.
 * System V calling convention: rdi = r, rsi = a, rdx = b. The result is written after all operands were read.
 * Limb j of the running sum of row i lies in zmm((i + j) mod 14): the register that row i clears is the highest limb of row i + 1.
 */
#if defined(__x86_64__)
	.intel_syntax noprefix
	.altmacro

	.section .rodata
	.balign 64
.Lp28:
	.quad 0xfffaaab, 0xfefffff, 0x3ffffb9, 0xfffeb15, 0x6241eab, 0xa0f6b0f, 0xf6730d2, 0xf38512b, 0x4774b84, 0x4bacd76, 0xba7b643, 0xe69a4b1, 0x1ea397f, 0x1a011
.Lninv28:
	.quad 0xffcfffd
.Lmask28:
	.quad 0xfffffff

	.text

	.macro MUL_ADD t, left, right
	vpmuludq zmm30, zmm\left, \right
	vpaddq zmm\t, zmm\t, zmm30
	.endm

	.macro MUL_SET t, left, right
	vpmuludq zmm\t, zmm\left, \right
	.endm

	/* m = sum * ninv mod 2^28; the sum of m p makes the lowest limb 0, what carries out of it is kept */
	.macro REDUCE_LOW low
	vpmuludq zmm29, zmm\low, [rip + .Lninv28] {1to8}
	vpandq zmm29, zmm29, zmm31
	vpmuludq zmm30, zmm29, zmm14
	vpaddq zmm\low, zmm\low, zmm30
	vpsrlq zmm\low, zmm\low, 28
	.endm

	.macro REDUCE_COLUMN t, j
	vpmuludq zmm30, zmm29, zmm\j
	vpaddq zmm\t, zmm\t, zmm30
	.endm

	.macro ADD_LOW t, low
	vpaddq zmm\t, zmm\t, zmm\low
	.endm

	.macro REDUCE_ROW i
	REDUCE_LOW %((\i) % 14)
	.set j, 1
	.rept 13
	REDUCE_COLUMN %(((\i) + j) % 14), %(14 + j)
	.set j, j + 1
	.endr
	ADD_LOW %(((\i) + 1) % 14), %((\i) % 14)
	.endm

	.macro LOAD_MODULUS
	vpbroadcastq zmm31, [rip + .Lmask28]
	.set j, 0
	.rept 14
	LOAD_LIMB %(14 + j), %(8 * j)
	.set j, j + 1
	.endr
	.endm

	.macro LOAD_LIMB r, at
	vpbroadcastq zmm\r, [rip + .Lp28 + \at]
	.endm

	.macro CARRY low, high
	vpsrlq zmm30, zmm\low, 28
	vpandq zmm\low, zmm\low, zmm31
	vpaddq zmm\high, zmm\high, zmm30
	.endm

	.macro STORE r
	vmovdqa64 [rdi + 64 * \r], zmm\r
	.endm

	.macro FINISH
	.set j, 0
	.rept 12
	CARRY %(j), %(j + 1)
	.set j, j + 1
	.endr
	vpsrlq zmm13, zmm12, 28
	vpandq zmm12, zmm12, zmm31
	.set j, 0
	.rept 14
	STORE %(j)
	.set j, j + 1
	.endr
	vzeroupper
	ret
	.endm

	.globl obk_lanes_mul_avx512
	.hidden obk_lanes_mul_avx512
	.type obk_lanes_mul_avx512, @function
	.balign 64
obk_lanes_mul_avx512:
	.cfi_startproc
	LOAD_MODULUS
	.set i, 0
	.rept 14
	vmovdqa64 zmm28, [rdx + 64 * i]
	.set j, 0
	.rept 14
	.if i == 0 || j == 13
	MUL_SET %((i + j) % 14), 28, <zmmword ptr [rsi + 64 * j]>
	.else
	MUL_ADD %((i + j) % 14), 28, <zmmword ptr [rsi + 64 * j]>
	.endif
	.set j, j + 1
	.endr
	REDUCE_ROW i
	.set i, i + 1
	.endr
	FINISH
	.cfi_endproc
	.size obk_lanes_mul_avx512, .-obk_lanes_mul_avx512

/* r = a^2: row i adds a_i a_i and 2 a_i a_j for j above i only. Limbs of a up to 29 bits. */
	.globl obk_lanes_sqr_avx512
	.hidden obk_lanes_sqr_avx512
	.type obk_lanes_sqr_avx512, @function
	.balign 64
obk_lanes_sqr_avx512:
	.cfi_startproc
	LOAD_MODULUS
	.set i, 0
	.rept 14
	vmovdqa64 zmm28, [rsi + 64 * i]
	.set j, i
	.rept 14 - i
	.if i == 0 || j == 13
	MUL_SET %((i + j) % 14), 28, <zmmword ptr [rsi + 64 * j]>
	.else
	MUL_ADD %((i + j) % 14), 28, <zmmword ptr [rsi + 64 * j]>
	.endif
	.if j == i
	vpaddq zmm28, zmm28, zmm28
	.endif
	.set j, j + 1
	.endr
	REDUCE_ROW i
	.set i, i + 1
	.endr
	FINISH
	.cfi_endproc
	.size obk_lanes_sqr_avx512, .-obk_lanes_sqr_avx512
#endif

	.section .note.GNU-stack, "", @progbits
