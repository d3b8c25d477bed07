/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Carry chains. An addc (subc) of zeros reads the carry flag: d1 is the carry, or minus the borrow.
 * To set a chain's carry-in, an operand is added to itself: the carry is its top bit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"

enum { LO, HI };

static unsigned width(const struct pt_row *row)
{
	return pt_type_bits(row->out[0]);
}

static uint64_t top(const struct pt_row *row, uint64_t v)
{
	return (v >> (width(row) - 1)) & 1;
}

/* out[0] = x + y + carry, out[1] = carry out */
static void sum(
	const struct pt_row *row, pt_u128 x, pt_u128 y, uint64_t carry, struct pt_want *want)
{
	pt_u128 s = x + y + carry;
	want->out[0] = (uint64_t)s & pt_mask(width(row));
	want->out[1] = (uint64_t)(s >> width(row)) & 1;
}

static void ref_add_cc(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	sum(row, in[0], in[1], row->n_in > 2 ? top(row, in[2]) : 0, want);
}

static void ref_sub_cc(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	/* the borrow-in is that of 0 - (top bit) */
	uint64_t borrow = row->n_in > 2 ? top(row, in[2]) : 0;
	pt_u128 d = (pt_u128)in[0] - in[1] - borrow;
	want->out[0] = (uint64_t)d & pt_mask(width(row));
	want->out[1] = (d >> width(row)) & 1 ? pt_mask(width(row)) : 0;
}

/* arg[0] LO or HI; arg[1]: with carry-in from operand e */
static void ref_mad_cc(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned w = width(row);
	bool is_signed = pt_type_signed(row->in[0]);
	pt_u128 a = is_signed ? (pt_u128)(pt_i128)pt_sext(in[0], w) : in[0];
	pt_u128 b = is_signed ? (pt_u128)(pt_i128)pt_sext(in[1], w) : in[1];
	pt_u128 p = a * b;
	uint64_t part = (uint64_t)(row->arg[0] == HI ? p >> w : p) & pt_mask(w);
	sum(row, part, in[2], row->arg[1] ? top(row, in[3]) : 0, want);
}

/* A guarded instruction sets the flag only in the lanes that execute it. */
static void ref_guarded_cc(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	want->out[0] = top(row, in[2] ? in[1] : in[0]);
}

static struct pt_row *row(
	struct pt_suite *s, pt_ref_fn *ref, const char *t, unsigned n_in, char *name, char *body)
{
	struct pt_text types = { 0 };
	pt_text_add(&types, "%s,%s:", t, t);
	for (unsigned i = 0; i < n_in; i++)
		pt_text_add(&types, "%s%s", i ? "," : "", t);
	struct pt_row *r = pt_row_add(s, ref, types.p, "%s", name);
	r->decl = strstr(t, "64") ? ".reg .b64 %t<2>;" : ".reg .b32 %t<2>;";
	free(r->body);
	r->body = body;
	free(name);
	pt_text_free(&types);
	return r;
}

static void add_type(struct pt_suite *s, const char *t)
{
	row(s, ref_add_cc, t, 2, pt_format("add.cc.%s", t),
		pt_format("add.cc.%s %%d0, %%a, %%b;\naddc.%s %%d1, 0, 0;", t, t));
	row(s, ref_add_cc, t, 3, pt_format("addc.cc.%s", t),
		pt_format("add.cc.%s %%t0, %%c, %%c;\naddc.cc.%s %%d0, %%a, %%b;\naddc.%s %%d1, 0, "
			  "0;",
			t, t, t));
	row(s, ref_sub_cc, t, 2, pt_format("sub.cc.%s", t),
		pt_format("sub.cc.%s %%d0, %%a, %%b;\nsubc.%s %%d1, 0, 0;", t, t));
	unsigned w = strstr(t, "64") ? 64 : 32;
	row(s, ref_sub_cc, t, 3, pt_format("subc.cc.%s", t),
		pt_format("shr.u%u %%t0, %%c, %u;\nsub.cc.%s %%t0, 0, %%t0;\nsubc.cc.%s %%d0, %%a, "
			  "%%b;\nsubc.%s %%d1, 0, 0;",
			w, w - 1, t, t, t));
	for (int part = LO; part <= HI; part++) {
		const char *p = part == HI ? "hi" : "lo";
		row(s, ref_mad_cc, t, 3, pt_format("mad.%s.cc.%s", p, t),
			pt_format(
				"mad.%s.cc.%s %%d0, %%a, %%b, %%c;\naddc.%s %%d1, 0, 0;", p, t, t))
			->arg[0] = part;
		struct pt_row *r = row(s, ref_mad_cc, t, 4, pt_format("madc.%s.cc.%s", p, t),
			pt_format("add.cc.%s %%t0, %%e, %%e;\nmadc.%s.cc.%s %%d0, %%a, %%b, %%c;\n"
				  "addc.%s %%d1, 0, 0;",
				t, p, t, t));
		r->arg[0] = part;
		r->arg[1] = 1;
		/* without .cc; d1 then comes from a separate chain with .cc */
		r = row(s, ref_mad_cc, t, 4, pt_format("madc.%s.%s", p, t),
			pt_format("add.cc.%s %%t0, %%e, %%e;\nmadc.%s.%s %%d0, %%a, %%b, %%c;\n"
				  "add.cc.%s %%t0, %%e, %%e;\nmadc.%s.cc.%s %%t0, %%a, %%b, "
				  "%%c;\naddc.%s %%d1, 0, 0;",
				t, p, t, t, p, t, t));
		r->arg[0] = part;
		r->arg[1] = 1;
	}
}

/* Arithmetic on numbers of n limbs: a and b in, the result out; PTX for one limb width. */
enum wide_op { WIDE_ADD, WIDE_SUB, WIDE_MUL };

struct wide {
	enum wide_op op;
	unsigned limbs, bits;
};

static void emit_limb(struct pt_text *t, const char *op, bool first, bool last, unsigned bits)
{
	pt_text_add(t, "\t%s%s%s.u%u ", op, first ? "" : "c", last ? "" : ".cc", bits);
}

static void emit_wide_sum(struct pt_text *t, const struct wide *w)
{
	for (unsigned i = 0; i < w->limbs; i++) {
		emit_limb(t, w->op == WIDE_ADD ? "add" : "sub", i == 0, false, w->bits);
		pt_text_add(t, "%%x%u, %%a%u, %%b%u;\n", i, i, i);
	}
	emit_limb(t, w->op == WIDE_ADD ? "add" : "sub", false, true, w->bits);
	pt_text_add(t, "%%x%u, 0, 0;\n", w->limbs);
}

/* For each row, one chain adds all low halves, a second one all high halves one limb higher. */
static void emit_wide_product(struct pt_text *t, const struct wide *w)
{
	unsigned n = w->limbs, bits = w->bits;
	for (unsigned i = 0; i < 2 * n; i++)
		pt_text_add(t, "\tmov.u%u %%x%u, 0;\n", bits, i);
	for (unsigned j = 0; j < n; j++) {
		for (unsigned half = 0; half < 2; half++) {
			for (unsigned i = 0; i < n; i++) {
				unsigned at = i + j + half;
				pt_text_add(t, "\tmad%s.%s.cc.u%u %%x%u, %%a%u, %%b%u, %%x%u;\n",
					i ? "c" : "", half ? "hi" : "lo", bits, at, i, j, at);
			}
			unsigned carry = n + j + half;
			if (carry < 2 * n)
				pt_text_add(t, "\taddc.u%u %%x%u, %%x%u, 0;\n", bits, carry, carry);
		}
	}
}

static unsigned wide_out(const struct wide *w)
{
	return w->op == WIDE_MUL ? 2 * w->limbs : w->limbs + 1;
}

static char *wide_text(const struct wide *w)
{
	struct pt_text t = { 0 };
	unsigned bytes = w->bits / 8, n = w->limbs, m = wide_out(w);
	pt_text_add(&t, "%s\t.reg .b%u %%a<%u>, %%b<%u>, %%x<%u>;\n",
		PT_ENTRY("wide") "{\n" PT_PROLOGUE, w->bits, n, n, m);
	pt_text_add(&t,
		"\tmad.wide.u32 %%p0, %%i, %u, %%p0;\n\tmad.wide.u32 %%p1, %%i, %u, %%p1;\n",
		2 * n * bytes, m * bytes);
	for (unsigned i = 0; i < n; i++)
		pt_text_add(&t,
			"\tld.global.u%u %%a%u, [%%p0+%u];\n\tld.global.u%u %%b%u, [%%p0+%u];\n",
			w->bits, i, i * bytes, w->bits, i, (n + i) * bytes);
	if (w->op == WIDE_MUL)
		emit_wide_product(&t, w);
	else
		emit_wide_sum(&t, w);
	for (unsigned i = 0; i < m; i++)
		pt_text_add(&t, "\tst.global.u%u [%%p1+%u], %%x%u;\n", w->bits, i * bytes, i);
	pt_text_add(&t, "\tret;\n}\n");
	return t.p;
}

#define WIDE_THREADS   2048u
#define WIDE_MAX_LIMBS 12u

/* Schoolbook method on 32-bit digits, for any limb width of the kernel: the bytes are the same. */
static void wide_reference(const struct wide *w, const uint32_t *a, const uint32_t *b, uint32_t *x)
{
	unsigned n = w->limbs * w->bits / 32;
	memset(x, 0, wide_out(w) * w->bits / 8);
	if (w->op != WIDE_MUL) {
		int64_t carry = 0;
		for (unsigned i = 0; i < n; i++) {
			carry += w->op == WIDE_ADD ? (int64_t)a[i] + b[i] : (int64_t)a[i] - b[i];
			x[i] = (uint32_t)carry;
			carry >>= 32;
		}
		for (unsigned i = 0; i < w->bits / 32; i++)
			x[n + i] = (uint32_t)(carry >> (i ? 32 : 0));
		return;
	}
	for (unsigned j = 0; j < n; j++) {
		uint64_t carry = 0;
		for (unsigned i = 0; i < n; i++) {
			carry += (uint64_t)a[i] * b[j] + x[i + j];
			x[i + j] = (uint32_t)carry;
			carry >>= 32;
		}
		x[n + j] = (uint32_t)carry;
	}
}

static bool run_wide(struct pt_run *run)
{
	struct wide w = { (enum wide_op)run->c->arg[0], (unsigned)run->c->arg[1],
		(unsigned)run->c->arg[2] };
	size_t words_in = 2 * w.limbs * w.bits / 32, words_out = wide_out(&w) * w.bits / 32;
	uint32_t *in = pt_alloc(WIDE_THREADS * words_in * 4),
		 *want = pt_alloc(WIDE_THREADS * words_out * 4);
	uint32_t *got = pt_alloc(WIDE_THREADS * words_out * 4);
	for (size_t i = 0; i < WIDE_THREADS * words_in; i++)
		in[i] = (uint32_t)pt_value(
			&run->rng, PT_U32, PT_ANY, i / words_in % 3 ? UINT32_MAX : 0);
	for (size_t i = 0; i < words_in; i++)
		in[i] = UINT32_MAX;
	for (size_t i = 0; i < WIDE_THREADS; i++)
		wide_reference(&w, in + i * words_in, in + i * words_in + words_in / 2,
			want + i * words_out);
	CUdeviceptr a = pt_run_put(run, in, WIDE_THREADS * words_in * 4);
	CUdeviceptr x = pt_run_put(run, NULL, WIDE_THREADS * words_out * 4);
	pt_run_line(run, "wide", WIDE_THREADS / 128, 128, a, x, 0, 0);
	pt_run_get(run, x, got, WIDE_THREADS * words_out * 4);
	pt_run_same32(run, "word", got, want, WIDE_THREADS * words_out);
	free(in);
	free(want);
	free(got);
	return pt_run_ok(run);
}

static void add_wide(struct pt_suite *s)
{
	static const char *const names[] = { "sum", "difference", "product" };
	for (int op = WIDE_ADD; op <= WIDE_MUL; op++) {
		for (unsigned size = 256; size <= 384; size += 128) {
			for (unsigned bits = 32; bits <= 64; bits *= 2) {
				struct wide w = { (enum wide_op)op, size / bits, bits };
				char *text = wide_text(&w),
				     *name = pt_format(
					     "%u-bit %s of %u-bit limbs", size, names[op], bits);
				struct pt_case *c = pt_case_add(s, run_wide, name, text);
				c->arg[0] = op;
				c->arg[1] = (int)w.limbs;
				c->arg[2] = (int)bits;
				free(text);
				free(name);
			}
		}
	}
}

void pt_group_carry(struct pt_suite *s)
{
	static const char *const types[] = { "u32", "s32", "u64", "s64" };
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		add_type(s, types[i]);
	struct pt_row *r =
		pt_row_add(s, ref_guarded_cc, "u32:u32,u32,pred", "add.cc.u32 under a guard");
	free(r->body);
	r->body = pt_format("add.cc.u32 %%t0, %%a, %%a;\n@%%c add.cc.u32 %%t0, %%b, %%b;\naddc.u32 "
			    "%%d0, 0, 0;");
	r->decl = ".reg .b32 %t<2>;";
	r->no_guard = true;
	add_wide(s);
}
