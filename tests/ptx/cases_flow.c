/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Control flow. In most cases a kernel maps an input word of each thread to an output word on a
 * path that depends on the word; the reference is the same function in C.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"

#define N_THREADS 1000u
#define BLOCK     96u

/* %r1: input; %r2: output, initially 0. Threads beyond N_THREADS exit. */
/* clang-format off */
#define LOAD \
	PT_PROLOGUE "	setp.ge.u32 %q15, %i, 1000;\n	@%q15 ret;\n	mad.wide.u32 %p0, %i, 4, %p0;\n" \
		    "	mad.wide.u32 %p1, %i, 4, %p1;\n	ld.global.u32 %r1, [%p0];\n	mov.u32 %r2, 0;\n"
#define STORE "	st.global.u32 [%p1], %r2;\n	ret;\n}\n"
#define MAP(body) PT_ENTRY("map") "{\n" LOAD body STORE
/* clang-format on */

typedef uint32_t map_fn(uint32_t x, uint32_t i);

/*
 * Three levels of branches on three bits. Each leaf computes something different; the threads
 * converge level by level.
 */
/* clang-format off */
#define NESTED \
	"	and.b32 %r3, %r1, 1;\n	setp.eq.u32 %q1, %r3, 0;\n	and.b32 %r3, %r1, 2;\n	setp.eq.u32 %q2, %r3, 0;\n" \
	"	and.b32 %r3, %r1, 4;\n	setp.eq.u32 %q3, %r3, 0;\n" \
	"	@%q1 bra A0;\n" \
	"	@%q2 bra A10;\n	@%q3 bra A110;\n	add.u32 %r2, %r2, 7;\n	bra A11;\nA110:\n" \
	"	add.u32 %r2, %r2, 3;\nA11:\n" \
	"	mul.lo.u32 %r2, %r2, 5;\n	bra A1;\nA10:\n	@!%q3 bra A101;\n" \
	"	add.u32 %r2, %r2, 100;\n	bra A1;\nA101:\n" \
	"	add.u32 %r2, %r2, 200;\nA1:\n	add.u32 %r2, %r2, %r1;\n	bra DONE;\n" \
	"A0:\n	@%q2 bra A00;\n	xor.b32 %r2, %r1, 0x55555555;\n	bra A0X;\nA00:\n	not.b32 %r2, %r1;\n" \
	"	@%q3 bra A0X;\n" \
	"	shr.u32 %r2, %r2, 3;\nA0X:\n	add.u32 %r2, %r2, 1;\nDONE:\n	add.u32 %r2, %r2, %i;\n"
/* clang-format on */

static uint32_t nested(uint32_t x, uint32_t i)
{
	uint32_t r = 0;
	if (x & 1) {
		if (x & 2)
			r = (x & 4 ? 7 : 3) * 5;
		else
			r = x & 4 ? 200 : 100;
		r += x;
	} else {
		if (x & 2) {
			r = x ^ 0x55555555;
		} else {
			r = ~x;
			if (x & 4)
				r >>= 3;
		}
		r++;
	}
	return r + i;
}

/* Number of steps of the 3n+1 sequence: loop counts from 0 to over 100 in one warp. */
/* clang-format off */
#define WALK \
	"	and.b32 %r1, %r1, 1023;\n	add.u32 %r1, %r1, 1;\nLOOP:\n	setp.eq.u32 %q1, %r1, 1;\n" \
	"	@%q1 bra DONE;\n" \
	"	add.u32 %r2, %r2, 1;\n	and.b32 %r3, %r1, 1;\n	setp.eq.u32 %q2, %r3, 0;\n	@%q2 bra EVEN;\n" \
	"	mad.lo.u32 %r1, %r1, 3, 1;\n	bra LOOP;\nEVEN:\n	shr.u32 %r1, %r1, 1;\n	bra LOOP;\nDONE:\n"
/* clang-format on */

static uint32_t walk(uint32_t x, uint32_t i)
{
	(void)i;
	uint32_t n = 0;
	for (x = (x & 1023) + 1; x != 1; n++)
		x = x & 1 ? 3 * x + 1 : x / 2;
	return n;
}

/* Two nested loops with counts that depend on data, a break and a continue. */
/* clang-format off */
#define NESTED_LOOPS \
	"	and.b32 %r3, %r1, 15;\n	shr.u32 %r4, %r1, 4;\n	and.b32 %r4, %r4, 15;\n	mov.u32 %r5, 0;\n" \
	"OUTER:\n	setp.ge.u32 %q1, %r5, %r3;\n	@%q1 bra DONE;\n	mov.u32 %r6, 0;\n" \
	"INNER:\n	setp.ge.u32 %q2, %r6, %r4;\n	@%q2 bra NEXT;\n" \
	"	mad.lo.u32 %r7, %r5, %r6, %r1;\n	and.b32 %r8, %r7, 7;\n" \
	"	add.u32 %r6, %r6, 1;\n	setp.eq.u32 %q3, %r8, 3;\n	@%q3 bra INNER;\n" \
	"	setp.eq.u32 %q4, %r8, 6;\n	@%q4 bra NEXT;\n" \
	"	xor.b32 %r2, %r2, %r7;\n	add.u32 %r2, %r2, 1;\n	bra INNER;\n" \
	"NEXT:\n	add.u32 %r5, %r5, 1;\n	bra.uni OUTER;\nDONE:\n"
/* clang-format on */

static uint32_t nested_loops(uint32_t x, uint32_t i)
{
	(void)i;
	uint32_t r = 0;
	for (uint32_t a = 0; a < (x & 15); a++) {
		for (uint32_t b = 0; b < ((x >> 4) & 15); b++) {
			uint32_t v = a * b + x;
			if ((v & 7) == 3)
				continue;
			if ((v & 7) == 6)
				break;
			r = (r ^ v) + 1;
		}
	}
	return r;
}

/*
 * Jumps from outside into the middle of a loop, and out of it to two places: an irreducible control
 * flow graph.
 */
/* clang-format off */
#define TANGLED \
	"	and.b32 %r3, %r1, 31;\n	and.b32 %r4, %r1, 32;\n	setp.ne.u32 %q1, %r4, 0;\n	@%q1 bra MIDDLE;\n" \
	"HEAD:\n	add.u32 %r2, %r2, 3;\n	setp.gt.u32 %q2, %r2, 150;\n	@%q2 bra OUT1;\n" \
	"MIDDLE:\n	add.u32 %r2, %r2, 5;\n	setp.eq.u32 %q3, %r3, 0;\n	@%q3 bra OUT2;\n" \
	"	sub.u32 %r3, %r3, 1;\n" \
	"	bra HEAD;\n" \
	"OUT1:\n	xor.b32 %r2, %r2, %r1;\n	and.b32 %r5, %r1, 64;\n	setp.ne.u32 %q4, %r5, 0;\n" \
	"	@%q4 bra END;\n" \
	"OUT2:\n	mul.lo.u32 %r2, %r2, 11;\nEND:\n"
/* clang-format on */

static uint32_t tangled(uint32_t x, uint32_t i)
{
	(void)i;
	uint32_t r = 0, n = x & 31;
	if (x & 32)
		goto middle;
head:
	r += 3;
	if (r > 150)
		goto out1;
middle:
	r += 5;
	if (n == 0)
		goto out2;
	n--;
	goto head;
out1:
	r ^= x;
	if (x & 64)
		return r;
out2:
	return r * 11;
}

/* SIMD lanes end at four places, by ret and by exit; the others continue. */
/* clang-format off */
#define EARLY \
	"	st.global.u32 [%p1], %r1;\n	and.b32 %r3, %r1, 3;\n	setp.eq.u32 %q1, %r3, 0;\n	@%q1 ret;\n" \
	"	add.u32 %r2, %r1, 1;\n	st.global.u32 [%p1], %r2;\n	setp.eq.u32 %q2, %r3, 1;\n	@%q2 exit;\n" \
	"	add.u32 %r2, %r2, 1;\n	st.global.u32 [%p1], %r2;\n	setp.eq.u32 %q3, %r3, 2;\n	@%q3 bra OUT;\n" \
	"	mul.lo.u32 %r2, %r2, 3;\n	bra GO;\nOUT:\n	exit;\nGO:\n"
/* clang-format on */

static uint32_t early(uint32_t x, uint32_t i)
{
	(void)i;
	switch (x & 3) {
	case 0:
		return x;
	case 1:
		return x + 1;
	case 2:
		return x + 2;
	default:
		return (x + 2) * 3;
	}
}

/* clang-format off */
#define TABLE \
	"	and.b32 %r3, %r1, 7;\nTARGETS: .branchtargets T0, T1, T2, T3, T4, T5, T1, T0;\n	brx.idx %r3, TARGETS;\n" \
	"T0:\n	mov.u32 %r2, 10;\n	bra JOIN;\nT1:\n	add.u32 %r2, %r1, 11;\n	bra JOIN;\n" \
	"T2:\n	sub.u32 %r2, %r1, 12;\nT3:\n	mul.lo.u32 %r2, %r2, 13;\n	bra JOIN;\n" \
	"T4:\n	not.b32 %r2, %r1;\n	bra JOIN;\nT5:\n	shl.b32 %r2, %r1, 5;\nJOIN:\n	add.u32 %r2, %r2, 1;\n"
/* clang-format on */

static uint32_t table(uint32_t x, uint32_t i)
{
	(void)i;
	switch (x & 7) {
	case 0:
	case 7:
		return 11;
	case 1:
	case 6:
		return x + 12;
	case 2:
		return (x - 12) * 13 + 1;
	case 3:
		return 1;
	case 4:
		return ~x + 1;
	default:
		return (x << 5) + 1;
	}
}

/*
 * Functions: scalar and struct parameters, a struct result, a guarded call, a call without results.
 */
/* clang-format off */
static const char calls_text[] =
        ".func (.param .b32 r) twice_and(.param .b32 a, .param .b64 b, .param .b16 c)\n{\n"
        "	.reg .b32 %r<5>;\n	.reg .b64 %l;\n"
        "	ld.param.b32 %r0, [a];\n	ld.param.b64 %l, [b];\n	ld.param.u16 %r1, [c];\n"
        "	cvt.u32.u64 %r2, %l;\n"
        "	mad.lo.u32 %r0, %r0, 2, %r1;\n	add.u32 %r0, %r0, %r2;\n	st.param.b32 [r], %r0;\n	ret;\n}\n"
        ".func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 s[16])\n{\n	.reg .b64 %l<2>;\n	.reg .b32 %r<2>;\n"
        "	ld.param.v2.b32 {%r0, %r1}, [s];\n	ld.param.b64 %l1, [s+8];\n	st.param.b64 [r], %l1;\n"
        "	st.param.v2.b32 [r+8], {%r1, %r0};\n	ret;\n}\n"
        ".func store(.param .b64 to, .param .b32 v)\n{\n	.reg .b64 %l;\n	.reg .b32 %r;\n	.reg .pred %q;\n"
        "	ld.param.b64 %l, [to];\n	ld.param.b32 %r, [v];\n	setp.gt.s32 %q, %r, 0;\n"
        "	@%q ret;\n	neg.s32 %r, %r;\n"
        "	st.global.b32 [%l], %r;\n	ret;\n}\n"
        ".func (.reg .b32 r) in_registers(.reg .b32 a, .reg .b32 b)\n{\n	sub.u32 r, a, b;\n	ret;\n}\n" MAP(
                "	cvt.u64.u32 %l1, %r1;\n	cvt.u16.u32 %h1, %r1;\n	and.b32 %r3, %r1, 4;\n	setp.ne.u32 %q1, %r3, 0;\n"
                "	{\n	.param .b32 a;\n	.param .b64 b;\n	.param .b16 c;\n"
                "	.param .b32 d;\n	st.param.b32 [a], %r1;\n"
                "	st.param.b64 [b], %l1;\n	st.param.b16 [c], %h1;\n"
                "	call.uni (d), twice_and, (a, b, c);\n"
                "	ld.param.b32 %r2, [d];\n	}\n"
                "	@!%q1 bra SKIP;\n"
                "	{\n	.param .align 8 .b8 x[16];\n	.param .align 8 .b8 y[16];\n"
                "	st.param.v2.b32 [x], {%r1, %r2};\n"
                "	st.param.b64 [x+8], %l1;\n	call (y), swap, (x);\n	ld.param.b32 %r4, [y];\n"
                "	ld.param.b32 %r5, [y+8];\n"
                "	ld.param.b32 %r6, [y+12];\n	}\n"
                "	mad.lo.u32 %r2, %r4, 3, %r5;\n	mad.lo.u32 %r2, %r6, 7, %r2;\n"
                "SKIP:\n	call (%r7), in_registers, (%r2, %r1);\n	mov.u32 %r2, %r7;\n"
                "	st.global.u32 [%p1], %r2;\n"
                "	{\n	.param .b64 x;\n	.param .b32 y;\n	st.param.b64 [x], %p1;\n"
                "	st.param.b32 [y], %r2;\n"
                "	call store, (x, y);\n	}\n	ld.global.u32 %r2, [%p1];\n");
/* clang-format on */

static uint32_t calls(uint32_t x, uint32_t i)
{
	(void)i;
	uint32_t r = 2 * x + (x & 0xffff) + x;
	if (x & 4) {
		/* swap returns {x, 0}, then {r, x} in reverse order */
		r = x * 3 + r + x * 7;
	}
	r -= x;
	return (int32_t)r > 0 ? r : 0u - r;
}

/*
 * Calls through a table of functions, with different entries in each lane; two entries have the
 * same function.
 */
/* clang-format off */
static const char indirect_text[] =
        ".func (.param .b32 r) f0(.param .b32 a)\n{\n	.reg .b32 %r;\n	ld.param.b32 %r, [a];\n	add.u32 %r, %r, 1;\n"
        "	st.param.b32 [r], %r;\n	ret;\n}\n"
        ".func (.param .b32 r) f1(.param .b32 a)\n{\n	.reg .b32 %r;\n	ld.param.b32 %r, [a];\n	mul.lo.u32 %r, %r, %r;\n"
        "	st.param.b32 [r], %r;\n	ret;\n}\n"
        ".func (.param .b32 r) f2(.param .b32 a)\n{\n	.reg .b32 %r<3>;\n	.reg .pred %q;\n"
        "	ld.param.b32 %r0, [a];\n"
        "	and.b32 %r1, %r0, 1;\n	setp.eq.u32 %q, %r1, 0;\n	@%q bra E;\n	not.b32 %r0, %r0;\nE:\n"
        "	st.param.b32 [r], %r0;\n	ret;\n}\n"
        ".global .align 8 .u64 functions[4] = {f0, f1, f2, f1};\n" MAP(
                "	shr.u32 %r3, %r1, 3;\n	and.b32 %r3, %r3, 3;\n	mul.wide.u32 %l1, %r3, 8;\n"
                "	mov.u64 %l2, functions;\n"
                "	add.u64 %l2, %l2, %l1;\n	ld.global.u64 %l3, [%l2];\n"
                "	{\n	.param .b32 a;\n	.param .b32 b;\n	st.param.b32 [a], %r1;\n"
                "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n	call (b), %l3, (a), P;\n"
                "	ld.param.b32 %r2, [b];\n	}\n"
                "	mov.u64 %l4, f0;\n"
                "	{\n	.param .b32 a;\n	.param .b32 b;\n	st.param.b32 [a], %r2;\n"
                "P2: .callprototype (.param .b32 _) _ (.param .b32 _);\n	call (b), %l4, (a), P2;\n"
                "	ld.param.b32 %r2, [b];\n	}\n");
/* clang-format on */

static uint32_t indirect(uint32_t x, uint32_t i)
{
	(void)i;
	switch ((x >> 3) & 3) {
	case 0:
		return x + 2;
	case 2:
		return (x & 1 ? ~x : x) + 1;
	default:
		return x * x + 1;
	}
}

/* Recursion of two functions that call each other, with a different depth in each lane. */
/* clang-format off */
static const char recursion_text[] =
        ".func (.param .b32 r) even(.param .b32 n);\n"
        ".func (.param .b32 r) odd(.param .b32 n)\n{\n	.reg .b32 %r<3>;\n	.reg .pred %q;\n"
        "	ld.param.b32 %r0, [n];\n"
        "	mov.u32 %r1, 1000;\n	setp.eq.u32 %q, %r0, 0;\n	@%q bra OUT;\n	sub.u32 %r1, %r0, 1;\n"
        "	{\n	.param .b32 a;\n	.param .b32 b;\n	st.param.b32 [a], %r1;\n"
        "	call (b), even, (a);\n"
        "	ld.param.b32 %r1, [b];\n	}\n	mad.lo.u32 %r1, %r0, 3, %r1;\nOUT:\n"
        "	st.param.b32 [r], %r1;\n	ret;\n}\n"
        ".func (.param .b32 r) even(.param .b32 n)\n{\n	.reg .b32 %r<3>;\n	.reg .pred %q;\n"
        "	ld.param.b32 %r0, [n];\n"
        "	mov.u32 %r1, 2000;\n	setp.eq.u32 %q, %r0, 0;\n	@%q bra OUT;\n	sub.u32 %r1, %r0, 1;\n"
        "	{\n	.param .b32 a;\n	.param .b32 b;\n	st.param.b32 [a], %r1;\n"
        "	call (b), odd, (a);\n"
        "	ld.param.b32 %r1, [b];\n	}\n	xor.b32 %r1, %r1, %r0;\nOUT:\n"
        "	st.param.b32 [r], %r1;\n	ret;\n}\n"
        ".func (.param .b32 r) fib(.param .b32 n)\n{\n	.reg .b32 %r<5>;\n	.reg .pred %q;\n"
        "	ld.param.b32 %r0, [n];\n"
        "	mov.u32 %r1, %r0;\n	setp.lt.u32 %q, %r0, 2;\n	@%q bra OUT;\n	sub.u32 %r2, %r0, 1;\n"
        "	{\n	.param .b32 a;\n	.param .b32 b;\n	st.param.b32 [a], %r2;\n"
        "	call (b), fib, (a);\n	ld.param.b32 %r3, [b];\n	}\n"
        "	sub.u32 %r2, %r0, 2;\n"
        "	{\n	.param .b32 a;\n	.param .b32 b;\n	st.param.b32 [a], %r2;\n"
        "	call (b), fib, (a);\n	ld.param.b32 %r4, [b];\n	}\n"
        "	add.u32 %r1, %r3, %r4;\nOUT:\n	st.param.b32 [r], %r1;\n	ret;\n}\n" MAP(
                "	and.b32 %r3, %r1, 15;\n"
                "	{\n	.param .b32 a;\n	.param .b32 b;\n	st.param.b32 [a], %r3;\n"
                "	call (b), odd, (a);\n	ld.param.b32 %r2, [b];\n	}\n"
                "	shr.u32 %r3, %r1, 4;\n	and.b32 %r3, %r3, 7;\n"
                "	{\n	.param .b32 a;\n	.param .b32 b;\n	st.param.b32 [a], %r3;\n"
                "	call (b), fib, (a);\n	ld.param.b32 %r4, [b];\n	}\n"
                "	mad.lo.u32 %r2, %r4, 100000, %r2;\n");
/* clang-format on */

static uint32_t even_odd(uint32_t n, bool odd)
{
	if (n == 0)
		return odd ? 1000 : 2000;
	uint32_t below = even_odd(n - 1, !odd);
	return odd ? n * 3 + below : below ^ n;
}

static uint32_t fib(uint32_t n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static uint32_t recursion(uint32_t x, uint32_t i)
{
	(void)i;
	return fib((x >> 4) & 7) * 100000 + even_odd(x & 15, true);
}

/* exit inside a called function ends the thread. */
/* clang-format off */
static const char exit_text[] =
        ".func leave(.param .b32 a)\n{\n	.reg .b32 %r;\n	.reg .pred %q;\n"
        "	ld.param.b32 %r, [a];\n	and.b32 %r, %r, 1;\n"
        "	setp.eq.u32 %q, %r, 0;\n	@%q exit;\n	ret;\n}\n" MAP(
                "	st.global.u32 [%p1], 5;\n	{\n	.param .b32 a;\n"
                "	st.param.b32 [a], %r1;\n	call leave, (a);\n	}\n"
                "	add.u32 %r2, %r1, 9;\n");
/* clang-format on */

static uint32_t exit_in_call(uint32_t x, uint32_t i)
{
	(void)i;
	return x & 1 ? x + 9 : 5;
}

/* Registers, predicates and labels of inner scopes hide those outside. */
/* clang-format off */
#define SCOPES \
	"	mov.u32 %r3, 1;\n	{\n	.reg .b32 %r3;\n	mov.u32 %r3, 50;\n	{\n" \
	"	.reg .u32 %r3;\n	mov.u32 %r3, 700;\n" \
	"	add.u32 %r2, %r2, %r3;\n	}\n	add.u32 %r2, %r2, %r3;\n" \
	"	setp.eq.u32 %q1, %r1, 0;\n	@%q1 bra L;\n" \
	"	add.u32 %r2, %r2, 3000;\nL:\n	}\n	add.u32 %r2, %r2, %r3;\n" \
	"	{ add.u32 %r2, %r2, 1; add.u32 %r2, %r2, 1; }\n"
/* A register and a family of one name; members of outer blocks, and hidden ones. */
#define FAMILIES \
	"	{\n	.reg .b32 a;\n	.reg .b16 a<2>;\n	mov.b32 a, %r1;\n	mov.b32 {a0, a1}, a;\n" \
	"	mov.b32 a, {a1, a0};\n	{\n	.reg .b16 a<1>;\n	mov.b16 a0, 7;\n	mov.b32 %r2, {a0, a1};\n	}\n" \
	"	{\n	.reg .b32 a0;\n	mov.b32 a0, 5;\n	add.u32 %r2, %r2, a0;\n	}\n" \
	"	xor.b32 %r2, %r2, a;\n	mov.b32 a, {a0, a0};\n	add.u32 %r2, %r2, a;\n	}\n"
/* clang-format on */

static uint32_t families(uint32_t x, uint32_t i)
{
	uint32_t low = x & 0xffff, high = x >> 16;

	(void)i;
	return (((7 | high << 16) + 5) ^ (high | low << 16)) + low * 0x10001;
}

static uint32_t scopes(uint32_t x, uint32_t i)
{
	(void)i;
	return 753 + (x ? 3000 : 0);
}

/*
 * Directives that compilers emit: launch bounds, debug information, weak and aliased functions.
 */
/* clang-format off */
static const char directives_text[] =
        ".file 1 \"dir/file name.cu\"\n"
        "/* a comment with } and ; */ // and another {\n"
        ".weak .func nothing()\n{\n	ret;\n}\n"
        ".visible .func (.param .b32 r) first(.param .b32 a)\n{\n	.reg .b32 %r;\n	ld.param.b32 %r, [a];\n"
        "	add.u32 %r, %r, 5;\n	st.param.b32 [r], %r;\n	ret;\n}\n"
        ".visible .func (.param .b32 r) other(.param .b32 a);\n.alias other, first;\n"
        ".func stop(.param .b32 a) .noreturn\n{\n	exit;\n}\n"
        ".visible .entry map(\n	.param .u64 .ptr .global .align 4 p0,\n	.param .u64 p1,\n	.param .u64 p2,\n	.param .u64 p3\n)\n"
        ".maxntid 96, 1, 1\n.minnctapersm 2\n.maxnreg 64\n{\n	.loc 1 3 9\n" LOAD
        "	.pragma \"nounroll\";\n	.loc 1 5 1, function_name info, inlined_at 1 3 9\n"
        "$L__tmp0:\n	{ .reg .b32 t; .param .b32 x; .param .b32 y; st.param.b32 [x+0], %r1; call.uni (y), other, (x);\n"
        "	ld.param.b32 t, [y+0]; mov.b32 %r2, t; }\n"
        "	setp.ne.u32 %q1, %r1, 3;\n	@%q1 bra $L__BB0_2;\n"
        "	{ .param .b32 x; st.param.b32 [x], 0; call.uni stop, (x); }\n$L__BB0_2:\n	.loc 1 8 1\n" STORE
        ".section .debug_str\n{\ninfo:\n	.b8 97, 0\n	.b8 0x62\n	.b8 0\n}\n"
        ".section .debug_loc\n{\n	.b64 $L__tmp0\n	.b32 4\n}\n";
/* clang-format on */

static uint32_t directives(uint32_t x, uint32_t i)
{
	(void)i;
	return x == 3 ? 0xa5a5a5a5 : x + 5;
}

static const struct {
	const char *name, *text;
	map_fn *f;
} maps[] = {
	{ "nested branches", MAP(NESTED), nested },
	{ "loops of different lengths", MAP(WALK), walk },
	{ "nested loops with break and continue", MAP(NESTED_LOOPS), nested_loops },
	{ "irreducible control flow", MAP(TANGLED), tangled },
	{ "early ret and exit", MAP(EARLY), early },
	{ "brx.idx", MAP(TABLE), table },
	{ "call with scalars and structures", calls_text, calls },
	{ "indirect call, another function in each lane", indirect_text, indirect },
	{ "recursion", recursion_text, recursion },
	{ "exit in a called function", exit_text, exit_in_call },
	{ "scopes", MAP(SCOPES), scopes },
	{ "families of registers", MAP(FAMILIES), families },
	{ "directives and debug information", directives_text, directives },
};

static bool run_map(struct pt_run *run)
{
	uint32_t in[N_THREADS], want[N_THREADS], got[N_THREADS];
	map_fn *f = maps[run->c->arg[0]].f;
	for (uint32_t i = 0; i < N_THREADS; i++) {
		in[i] = i < 64 ? i / 32 * 0x0f + i % 32 : (uint32_t)pt_rng_next(&run->rng);
		want[i] = f(in[i], i);
	}
	CUdeviceptr a = pt_run_put(run, in, sizeof in), b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "map", (N_THREADS + BLOCK - 1) / BLOCK, BLOCK, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	return pt_run_same32(run, "thread", got, want, N_THREADS);
}

/*
 * Threads of one warp take a lock in turn: there is progress only if the scheduler switches from a
 * spinning path to the path of the holder.
 */
/* clang-format off */
static const char spin_text[] =
        ".global .u32 lock;\n" PT_ENTRY("spin") "{\n" PT_PROLOGUE "	mov.u32 %r3, 0;\nTURN:\n"
        "TAKE:\n	atom.global.acquire.gpu.cas.b32 %r1, [lock], 0, 1;\n	setp.ne.u32 %q1, %r1, 0;\n"
        "	@%q1 bra TAKE;\n"
        "	ld.volatile.global.u32 %r2, [%p0];\n	add.u32 %r2, %r2, 1;\n	st.volatile.global.u32 [%p0], %r2;\n"
        "	membar.gl;\n	atom.global.release.gpu.exch.b32 %r1, [lock], 0;\n"
        "	add.u32 %r3, %r3, 1;\n	setp.lt.u32 %q2, %r3, 3;\n	@%q2 bra TURN;\n	ret;\n}\n"
        /* the critical section is inside the loop, as compilers emit it */
        PT_ENTRY("flag") "{\n" PT_PROLOGUE "	mov.u32 %r3, 0;\n"
        "AGAIN:\n	setp.ne.u32 %q3, %r3, 0;\n	@%q3 bra DONE;\n"
        "	atom.global.cas.b32 %r1, [lock], 0, 1;\n	setp.ne.u32 %q1, %r1, 0;\n	@%q1 bra AGAIN;\n"
        "	ld.volatile.global.u32 %r2, [%p0];\n	add.u32 %r2, %r2, 1;\n	st.volatile.global.u32 [%p0], %r2;\n"
        "	membar.gl;\n	st.volatile.global.u32 [lock], 0;\n	mov.u32 %r3, 1;\n	bra AGAIN;\n"
        "DONE:\n	ret;\n}\n"
        /* a SIMD lane waits for a higher one of the same warp, then for a lower one */
        PT_ENTRY("wait") "{\n" PT_PROLOGUE "	and.b32 %r1, %t, 31;\n	mad.wide.u32 %l1, %i, 4, %p0;\n"
        "	setp.eq.u32 %q1, %r1, 31;\n	@%q1 bra LAST;\n"
        "W1:\n	ld.volatile.global.u32 %r2, [%l1+4];\n	setp.eq.u32 %q2, %r2, 0;\n	@%q2 bra W1;\n"
        "	add.u32 %r2, %r2, 1;\n	bra PUT;\nLAST:\n	mov.u32 %r2, 1;\nPUT:\n	st.volatile.global.u32 [%l1], %r2;\n"
        "	mad.wide.u32 %l2, %i, 4, %p1;\n	setp.eq.u32 %q1, %r1, 0;\n	@%q1 bra FIRST;\n"
        "W2:\n	ld.volatile.global.u32 %r2, [%l2+-4];\n	setp.eq.u32 %q2, %r2, 0;\n	@%q2 bra W2;\n"
        "	add.u32 %r2, %r2, 1;\n	bra PUT2;\nFIRST:\n	mov.u32 %r2, 1;\nPUT2:\n"
        "	st.volatile.global.u32 [%l2], %r2;\n	ret;\n}\n";
/* clang-format on */

static bool run_spin(struct pt_run *run)
{
	static const char *const kernels[] = { "spin", "flag" };
	static const uint32_t each[] = { 3, 1 };
	const char *kernel = kernels[run->c->arg[0]];
	uint32_t zero = 0, got = 0;
	CUdeviceptr p = pt_run_put(run, &zero, 4);
	pt_run_line(run, kernel, 4, 64, p, 0, 0, 0);
	pt_run_get(run, p, &got, 4);
	uint32_t want = 4 * 64 * each[run->c->arg[0]];
	return pt_run_same32(run, "count", &got, &want, 1);
}

static bool run_wait(struct pt_run *run)
{
	uint32_t zero[97] = { 0 }, got[96], want[96];
	CUdeviceptr a = pt_run_put(run, zero, sizeof zero), b = pt_run_put(run, zero, sizeof zero);
	pt_run_line(run, "wait", 1, 96, a, b, 0, 0);
	for (uint32_t i = 0; i < 96; i++)
		want[i] = 32 - i % 32;
	pt_run_get(run, a, got, sizeof got);
	pt_run_same32(run, "downwards", got, want, 96);
	for (uint32_t i = 0; i < 96; i++)
		want[i] = 1 + i % 32;
	pt_run_get(run, b, got, sizeof got);
	return pt_run_same32(run, "upwards", got, want, 96);
}

/* A sum of a million numbers by a grid-stride loop with a bounds check at the end. */
/* clang-format off */
static const char stride_text[] =
        PT_ENTRY("stride") "{\n" PT_PROLOGUE "	mov.u32 %r1, %nctaid.x;\n	mul.lo.u32 %r1, %r1, %r63;\n	cvt.u32.u64 %r2, %p2;\n"
        "	mov.u32 %r3, %i;\n	mov.u32 %r4, 0;\n	setp.ge.u32 %q1, %r3, %r2;\n	@%q1 bra DONE;\n"
        "LOOP:\n	mad.wide.u32 %l1, %r3, 4, %p0;\n	ld.global.nc.u32 %r5, [%l1];\n	add.u32 %r4, %r4, %r5;\n"
        "	add.u32 %r3, %r3, %r1;\n	setp.lt.u32 %q1, %r3, %r2;\n	@%q1 bra LOOP;\n"
        "DONE:\n	red.global.add.u32 [%p1], %r4;\n	ret;\n}\n";
/* clang-format on */

static bool run_stride(struct pt_run *run)
{
	enum { N = 300007 };
	uint32_t *in = pt_alloc(N * sizeof *in), want = 0, got = 0;
	for (size_t i = 0; i < N; i++) {
		in[i] = (uint32_t)pt_rng_next(&run->rng);
		want += in[i];
	}
	CUdeviceptr a = pt_run_put(run, in, N * sizeof *in), b = pt_run_put(run, &got, 4);
	pt_run_line(run, "stride", 7, 160, a, b, N, 0);
	pt_run_get(run, b, &got, 4);
	free(in);
	return pt_run_same32(run, "sum", &got, &want, 1);
}

void pt_group_flow(struct pt_suite *s)
{
	for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
		pt_case_add(s, run_map, maps[i].name, maps[i].text)->arg[0] = (int)i;
	pt_case_add(s, run_spin, "spin lock within a warp", spin_text)->arg[0] = 0;
	pt_case_add(s, run_spin, "spin lock, release inside the loop", spin_text)->arg[0] = 1;
	pt_case_add(s, run_wait, "lanes that wait for each other", spin_text);
	pt_case_add(s, run_stride, "grid-stride loop", stride_text);
}
