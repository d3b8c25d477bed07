/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Fp and Fr on x86-64: additions by carry chains, Montgomery products with mulx and two independent carry chains (adcx, adox).
 * A product scans b limb by limb: t += a * b[i], then t += m * modulus with m chosen so that the lowest limb vanishes; that limb's register
 * becomes the highest one of the next row. The moduli leave the top bit free, so n + 1 limbs never overflow.
 * Additions and subtractions are written out for each field and size: they differ in the registers that hold the limbs.
 * System V calling convention: rdi = r, rsi = a, rdx = b. Results are written after all operands were read.
 */
#if defined(__x86_64__)
	.intel_syntax noprefix

	.section .rodata
	.balign 64
.Lfp_modulus:
	.quad 0xb9feffffffffaaab, 0x1eabfffeb153ffff, 0x6730d2a0f6b0f624, 0x64774b84f38512bf, 0x4b1ba7b6434bacd7, 0x1a0111ea397fe69a
.Lfp_ninv:
	.quad 0x89f3fffcfffcfffd
.Lfr_modulus:
	.quad 0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48
.Lfr_ninv:
	.quad 0xfffffffeffffffff

	.text

	.macro FUNCTION name
	.globl \name
	.hidden \name
	.type \name, @function
	.balign 32
\name:
	.cfi_startproc
	.endm

	.macro END_FUNCTION name
	.cfi_endproc
	.size \name, .-\name
	.endm

	.macro SAVE reg
	push \reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \reg, 0
	.endm

	.macro RESTORE reg
	pop \reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore \reg
	.endm

/* t0..t6 += a * rdx, six limbs; CF and OF clear, zero holds 0. */
	.macro ROW6 base, t0, t1, t2, t3, t4, t5, t6, zero
	mulx rbx, rax, [\base]
	adcx \t0, rax
	adox \t1, rbx
	mulx rbx, rax, [\base + 8]
	adcx \t1, rax
	adox \t2, rbx
	mulx rbx, rax, [\base + 16]
	adcx \t2, rax
	adox \t3, rbx
	mulx rbx, rax, [\base + 24]
	adcx \t3, rax
	adox \t4, rbx
	mulx rbx, rax, [\base + 32]
	adcx \t4, rax
	adox \t5, rbx
	mulx rbx, rax, [\base + 40]
	adcx \t5, rax
	adox \t6, rbx
	adcx \t6, \zero
	.endm

/* One limb of b: t0..t5 in, the result in t1..t6, t0 left 0. t6 comes in as 0. */
	.macro STEP6 i, t0, t1, t2, t3, t4, t5, t6
	mov rdx, [rcx + 8 * \i]
	xor ebp, ebp
	ROW6 rsi, \t0, \t1, \t2, \t3, \t4, \t5, \t6, rbp
	mov rdx, \t0
	imul rdx, [rip + .Lfp_ninv]
	xor ebp, ebp
	ROW6 r15, \t0, \t1, \t2, \t3, \t4, \t5, \t6, rbp
	.endm

FUNCTION obk_fp_mul_adx
	SAVE rbx
	SAVE rbp
	SAVE r12
	SAVE r13
	SAVE r14
	SAVE r15
	mov rcx, rdx
	lea r15, [rip + .Lfp_modulus]
	xor r8d, r8d
	xor r9d, r9d
	xor r10d, r10d
	xor r11d, r11d
	xor r12d, r12d
	xor r13d, r13d
	xor r14d, r14d
	STEP6 0, r8, r9, r10, r11, r12, r13, r14
	STEP6 1, r9, r10, r11, r12, r13, r14, r8
	STEP6 2, r10, r11, r12, r13, r14, r8, r9
	STEP6 3, r11, r12, r13, r14, r8, r9, r10
	STEP6 4, r12, r13, r14, r8, r9, r10, r11
	STEP6 5, r13, r14, r8, r9, r10, r11, r12
	/* t = r14 r8 r9 r10 r11 r12, below 2 p */
	mov rax, r14
	mov rbx, r8
	mov rcx, r9
	mov rdx, r10
	mov rsi, r11
	mov rbp, r12
	sub rax, [r15]
	sbb rbx, [r15 + 8]
	sbb rcx, [r15 + 16]
	sbb rdx, [r15 + 24]
	sbb rsi, [r15 + 32]
	sbb rbp, [r15 + 40]
	cmovc rax, r14
	cmovc rbx, r8
	cmovc rcx, r9
	cmovc rdx, r10
	cmovc rsi, r11
	cmovc rbp, r12
	mov [rdi], rax
	mov [rdi + 8], rbx
	mov [rdi + 16], rcx
	mov [rdi + 24], rdx
	mov [rdi + 32], rsi
	mov [rdi + 40], rbp
	RESTORE r15
	RESTORE r14
	RESTORE r13
	RESTORE r12
	RESTORE rbp
	RESTORE rbx
	ret
END_FUNCTION obk_fp_mul_adx

	.macro ROW4 base, t0, t1, t2, t3, t4, zero
	mulx rbx, rax, [\base]
	adcx \t0, rax
	adox \t1, rbx
	mulx rbx, rax, [\base + 8]
	adcx \t1, rax
	adox \t2, rbx
	mulx rbx, rax, [\base + 16]
	adcx \t2, rax
	adox \t3, rbx
	mulx rbx, rax, [\base + 24]
	adcx \t3, rax
	adox \t4, rbx
	adcx \t4, \zero
	.endm

	.macro STEP4 i, t0, t1, t2, t3, t4
	mov rdx, [rcx + 8 * \i]
	xor ebp, ebp
	ROW4 rsi, \t0, \t1, \t2, \t3, \t4, rbp
	mov rdx, \t0
	imul rdx, r13
	xor ebp, ebp
	ROW4 r14, \t0, \t1, \t2, \t3, \t4, rbp
	.endm

FUNCTION obk_fr_mul_adx
	SAVE rbx
	SAVE rbp
	SAVE r12
	SAVE r13
	SAVE r14
	mov rcx, rdx
	lea r14, [rip + .Lfr_modulus]
	mov r13, [rip + .Lfr_ninv]
	xor r8d, r8d
	xor r9d, r9d
	xor r10d, r10d
	xor r11d, r11d
	xor r12d, r12d
	STEP4 0, r8, r9, r10, r11, r12
	STEP4 1, r9, r10, r11, r12, r8
	STEP4 2, r10, r11, r12, r8, r9
	STEP4 3, r11, r12, r8, r9, r10
	/* t = r12 r8 r9 r10, below 2 r */
	mov rax, r12
	mov rbx, r8
	mov rcx, r9
	mov rdx, r10
	sub rax, [r14]
	sbb rbx, [r14 + 8]
	sbb rcx, [r14 + 16]
	sbb rdx, [r14 + 24]
	cmovc rax, r12
	cmovc rbx, r8
	cmovc rcx, r9
	cmovc rdx, r10
	mov [rdi], rax
	mov [rdi + 8], rbx
	mov [rdi + 16], rcx
	mov [rdi + 24], rdx
	RESTORE r14
	RESTORE r13
	RESTORE r12
	RESTORE rbp
	RESTORE rbx
	ret
END_FUNCTION obk_fr_mul_adx

FUNCTION obk_fp_add_x86
	SAVE rbx
	SAVE rbp
	SAVE r12
	SAVE r13
	mov rax, [rsi]
	mov rbx, [rsi + 8]
	mov rbp, [rsi + 16]
	mov r8, [rsi + 24]
	mov r9, [rsi + 32]
	mov r10, [rsi + 40]
	add rax, [rdx]
	adc rbx, [rdx + 8]
	adc rbp, [rdx + 16]
	adc r8, [rdx + 24]
	adc r9, [rdx + 32]
	adc r10, [rdx + 40]
	mov rcx, rax
	mov rdx, rbx
	mov rsi, rbp
	mov r11, r8
	mov r12, r9
	mov r13, r10
	sub rcx, [rip + .Lfp_modulus]
	sbb rdx, [rip + .Lfp_modulus + 8]
	sbb rsi, [rip + .Lfp_modulus + 16]
	sbb r11, [rip + .Lfp_modulus + 24]
	sbb r12, [rip + .Lfp_modulus + 32]
	sbb r13, [rip + .Lfp_modulus + 40]
	cmovnc rax, rcx
	cmovnc rbx, rdx
	cmovnc rbp, rsi
	cmovnc r8, r11
	cmovnc r9, r12
	cmovnc r10, r13
	mov [rdi], rax
	mov [rdi + 8], rbx
	mov [rdi + 16], rbp
	mov [rdi + 24], r8
	mov [rdi + 32], r9
	mov [rdi + 40], r10
	RESTORE r13
	RESTORE r12
	RESTORE rbp
	RESTORE rbx
	ret
END_FUNCTION obk_fp_add_x86

FUNCTION obk_fp_sub_x86
	SAVE rbx
	SAVE rbp
	SAVE r12
	SAVE r13
	mov rax, [rsi]
	mov rbx, [rsi + 8]
	mov rbp, [rsi + 16]
	mov r8, [rsi + 24]
	mov r9, [rsi + 32]
	mov r10, [rsi + 40]
	sub rax, [rdx]
	sbb rbx, [rdx + 8]
	sbb rbp, [rdx + 16]
	sbb r8, [rdx + 24]
	sbb r9, [rdx + 32]
	sbb r10, [rdx + 40]
	sbb rcx, rcx
	mov rdx, rcx
	mov rsi, rcx
	mov r11, rcx
	mov r12, rcx
	mov r13, rcx
	and rcx, [rip + .Lfp_modulus]
	and rdx, [rip + .Lfp_modulus + 8]
	and rsi, [rip + .Lfp_modulus + 16]
	and r11, [rip + .Lfp_modulus + 24]
	and r12, [rip + .Lfp_modulus + 32]
	and r13, [rip + .Lfp_modulus + 40]
	add rax, rcx
	adc rbx, rdx
	adc rbp, rsi
	adc r8, r11
	adc r9, r12
	adc r10, r13
	mov [rdi], rax
	mov [rdi + 8], rbx
	mov [rdi + 16], rbp
	mov [rdi + 24], r8
	mov [rdi + 32], r9
	mov [rdi + 40], r10
	RESTORE r13
	RESTORE r12
	RESTORE rbp
	RESTORE rbx
	ret
END_FUNCTION obk_fp_sub_x86

FUNCTION obk_fr_add_x86
	mov rax, [rsi]
	mov rcx, [rsi + 8]
	mov r8, [rsi + 16]
	mov r9, [rsi + 24]
	add rax, [rdx]
	adc rcx, [rdx + 8]
	adc r8, [rdx + 16]
	adc r9, [rdx + 24]
	mov rdx, rax
	mov rsi, rcx
	mov r10, r8
	mov r11, r9
	sub rdx, [rip + .Lfr_modulus]
	sbb rsi, [rip + .Lfr_modulus + 8]
	sbb r10, [rip + .Lfr_modulus + 16]
	sbb r11, [rip + .Lfr_modulus + 24]
	cmovnc rax, rdx
	cmovnc rcx, rsi
	cmovnc r8, r10
	cmovnc r9, r11
	mov [rdi], rax
	mov [rdi + 8], rcx
	mov [rdi + 16], r8
	mov [rdi + 24], r9
	ret
END_FUNCTION obk_fr_add_x86

FUNCTION obk_fr_sub_x86
	mov rax, [rsi]
	mov rcx, [rsi + 8]
	mov r8, [rsi + 16]
	mov r9, [rsi + 24]
	sub rax, [rdx]
	sbb rcx, [rdx + 8]
	sbb r8, [rdx + 16]
	sbb r9, [rdx + 24]
	sbb rdx, rdx
	mov rsi, rdx
	mov r10, rdx
	mov r11, rdx
	and rdx, [rip + .Lfr_modulus]
	and rsi, [rip + .Lfr_modulus + 8]
	and r10, [rip + .Lfr_modulus + 16]
	and r11, [rip + .Lfr_modulus + 24]
	add rax, rdx
	adc rcx, rsi
	adc r8, r10
	adc r9, r11
	mov [rdi], rax
	mov [rdi + 8], rcx
	mov [rdi + 16], r8
	mov [rdi + 24], r9
	ret
END_FUNCTION obk_fr_sub_x86
#endif

	.section .note.GNU-stack, "", @progbits
