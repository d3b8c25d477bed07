/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * wmma: loads of A, B and C, a product, and a store of D, in every shape, type and layout. The places
 * of the elements in the registers are not defined, so only the matrices in memory are compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/matrix.h"

#define PART_BYTES 4096u /* of A, B, C and D, in this order, in one buffer */
#define BYTES      (4 * PART_BYTES)

struct form {
	unsigned m, n, k;
	enum pt_element a, c, d;
	unsigned a_registers, b_registers;
};

/* The numbers of registers are those of the manual's table. */
/* clang-format off */
static const struct form forms[] = {
	{ 16, 16, 16, PT_M_F16, PT_M_F32, PT_M_F32, 8, 8 }, { 16, 16, 16, PT_M_F16, PT_M_F16, PT_M_F16, 8, 8 },
	{ 16, 16, 16, PT_M_F16, PT_M_F16, PT_M_F32, 8, 8 }, { 16, 16, 16, PT_M_F16, PT_M_F32, PT_M_F16, 8, 8 },
	{ 32, 8, 16, PT_M_F16, PT_M_F32, PT_M_F32, 8, 8 }, { 32, 8, 16, PT_M_F16, PT_M_F16, PT_M_F16, 8, 8 },
	{ 8, 32, 16, PT_M_F16, PT_M_F32, PT_M_F32, 8, 8 }, { 8, 32, 16, PT_M_F16, PT_M_F16, PT_M_F16, 8, 8 },
	{ 16, 16, 16, PT_M_BF16, PT_M_F32, PT_M_F32, 4, 4 }, { 32, 8, 16, PT_M_BF16, PT_M_F32, PT_M_F32, 8, 2 },
	{ 8, 32, 16, PT_M_BF16, PT_M_F32, PT_M_F32, 2, 8 }, { 16, 16, 8, PT_M_TF32, PT_M_F32, PT_M_F32, 4, 4 },
	{ 16, 16, 16, PT_M_S8, PT_M_S32, PT_M_S32, 2, 2 }, { 16, 16, 16, PT_M_U8, PT_M_S32, PT_M_S32, 2, 2 },
	{ 32, 8, 16, PT_M_S8, PT_M_S32, PT_M_S32, 4, 1 }, { 32, 8, 16, PT_M_U8, PT_M_S32, PT_M_S32, 4, 1 },
	{ 8, 32, 16, PT_M_S8, PT_M_S32, PT_M_S32, 1, 4 }, { 8, 32, 16, PT_M_U8, PT_M_S32, PT_M_S32, 1, 4 },
	{ 8, 8, 4, PT_M_F64, PT_M_F64, PT_M_F64, 1, 1 }, { 8, 8, 32, PT_M_S4, PT_M_S32, PT_M_S32, 1, 1 },
	{ 8, 8, 32, PT_M_U4, PT_M_S32, PT_M_S32, 1, 1 }, { 8, 8, 128, PT_M_B1, PT_M_S32, PT_M_S32, 1, 1 },
};
/* clang-format on */
#define N_FORMS (sizeof forms / sizeof forms[0])

static const char *const layouts[] = { "row", "col" };
enum { GENERIC, GLOBAL, SHARED };
static const char *const spaces[] = { "", ".global", ".shared" };

/* A variant: layouts of A and B, of C and D, space, and .satfinite or .and. */
struct variant {
	bool a_col, b_col, c_col, d_col, extra;
	int space;
};

static struct variant variant_of(const struct pt_case *c)
{
	int v = c->arg[1];
	return (struct variant){ .a_col = v & 1,
		.b_col = v & 2,
		.c_col = v & 4,
		.d_col = v & 8,
		.extra = v & 16,
		.space = c->arg[2] };
}

/* Elements from one row (or column) to the next: 16 bytes more than the matrix needs. */
static unsigned stride(unsigned count, enum pt_element t)
{
	return count + 128 / pt_element_bits(t);
}

static unsigned sum_registers(const struct form *f, enum pt_element t)
{
	return f->m * f->n / 32 / (t == PT_M_F16 ? 2 : 1);
}

static const char *register_type(enum pt_element t)
{
	return t == PT_M_F64 ? "f64" : t == PT_M_F32 ? "f32" : "b32";
}

static void add_list(struct pt_text *t, const char *name, unsigned n)
{
	pt_text_add(t, "{");
	for (unsigned i = 0; i < n; i++)
		pt_text_add(t, "%s%%%s%u", i ? ", " : "", name, i);
	pt_text_add(t, "}");
}

/* Copies the buffer between the memory at %p0 or %p1 and shared memory, 4 bytes per lane. */
static void add_copy(struct pt_text *t, bool in)
{
	pt_text_add(t,
		"	mov.u32 %%r1, %%t;\n%s:\n	mad.lo.u32 %%r2, %%r1, 4, %%r20;\n	"
		"mad.wide.u32 %%l1, %%r1, 4, %s;\n"
		"	ld.%s.b32 %%r3, [%s];\n	st.%s.b32 [%s], %%r3;\n	add.u32 %%r1, %%r1, 32;\n"
		"	setp.lt.u32 %%q1, %%r1, %u;\n	@%%q1 bra %s;\n	bar.sync 0;\n",
		in ? "IN" : "OUT", in ? "%p0" : "%p1", in ? "global" : "shared", in ? "%l1" : "%r2",
		in ? "shared" : "global", in ? "%r2" : "%l1", BYTES / 4, in ? "IN" : "OUT");
}

static void add_load(
	struct pt_text *t, const struct form *f, const struct variant *v, unsigned which)
{
	static const char *const names[] = { "a", "b", "c" };
	const unsigned counts[] = { f->a_registers, f->b_registers, sum_registers(f, f->c) },
		       lines[] = { v->a_col ? f->m : f->k, v->b_col ? f->k : f->n,
			       v->c_col ? f->m : f->n };
	const bool columns[] = { v->a_col, v->b_col, v->c_col };
	enum pt_element type = which == 2 ? f->c : f->a;
	pt_text_add(t, "	wmma.load.%s.sync.aligned.%s.m%un%uk%u%s.%s ", names[which],
		layouts[columns[which]], f->m, f->n, f->k, spaces[v->space], pt_element_name(type));
	add_list(t, names[which], counts[which]);
	pt_text_add(t, ", [%s+%u], %u;\n", v->space == SHARED ? "%r20" : "%p0", which * PART_BYTES,
		stride(lines[which], type));
}

static void add_product(struct pt_text *t, const struct form *f, const struct variant *v)
{
	static const char *const names[] = { "a", "b", "c" };
	const unsigned counts[] = { f->a_registers, f->b_registers, sum_registers(f, f->c) };
	bool b1 = f->a == PT_M_B1;
	pt_text_add(t, "	wmma.mma%s.sync.aligned.%s.%s.m%un%uk%u",
		!b1                ? ""
			: v->extra ? ".and.popc"
				   : ".xor.popc",
		layouts[v->a_col], layouts[v->b_col], f->m, f->n, f->k);
	if (f->a == PT_M_F16)
		pt_text_add(t, ".%s.%s ", pt_element_name(f->d), pt_element_name(f->c));
	else
		pt_text_add(t, ".%s.%s.%s.%s%s ", pt_element_name(f->d), pt_element_name(f->a),
			pt_element_name(f->a), pt_element_name(f->c),
			v->extra && !b1 ? ".satfinite" : "");
	add_list(t, "d", sum_registers(f, f->d));
	for (unsigned o = 0; o < 3; o++) {
		pt_text_add(t, ", ");
		add_list(t, names[o], counts[o]);
	}
	pt_text_add(t, ";\n");
}

static char *form_text(const struct form *f, const struct variant *v)
{
	struct pt_text t = { 0 };
	const char *input = register_type(f->a == PT_M_F64 ? PT_M_F64 : PT_M_S32);
	pt_text_add(&t, "%s", PT_ENTRY("wmma") "{\n" PT_PROLOGUE);
	pt_text_add(&t,
		"	.shared .align 32 .b8 tile[%u];\n"
		"	.reg .%s %%a<8>, %%b<8>;\n	.reg .%s %%c<8>;\n	"
		".reg .%s %%d<8>;\n",
		BYTES, input, register_type(f->c), register_type(f->d));
	pt_text_add(&t, "	mov.u32 %%r20, tile;\n");
	if (v->space == SHARED)
		add_copy(&t, true);
	for (unsigned o = 0; o < 3; o++)
		add_load(&t, f, v, o);
	add_product(&t, f, v);
	pt_text_add(&t, "	wmma.store.d.sync.aligned.%s.m%un%uk%u%s.%s [%s+%u], ",
		layouts[v->d_col], f->m, f->n, f->k, spaces[v->space], pt_element_name(f->d),
		v->space == SHARED ? "%r20" : "%p1", 3 * PART_BYTES);
	add_list(&t, "d", sum_registers(f, f->d));
	pt_text_add(&t, ", %u;\n", stride(v->d_col ? f->m : f->n, f->d));
	if (v->space == SHARED)
		add_copy(&t, false);
	pt_text_add(&t, "	ret;\n}\n");
	return t.p;
}

/* Sets an element of a matrix in memory. */
static void put(uint8_t *part, enum pt_element t, bool column_major, unsigned ld, unsigned row,
	unsigned column, int64_t v)
{
	unsigned bits = pt_element_bits(t),
		 at = (column_major ? column * ld + row : row * ld + column) * bits;
	uint64_t x = pt_element_encode(t, v), old = 0;
	unsigned bytes = bits < 8 ? 1 : bits / 8;
	memcpy(&old, part + at / 8, bytes);
	old &= ~(pt_mask(bits) << at % 8);
	old |= x << at % 8;
	memcpy(part + at / 8, &old, bytes);
}

static void put_operands(
	const struct form *f, const struct variant *v, const struct pt_matrix *x, uint8_t *in)
{
	for (unsigned k = 0; k < f->k; k++) {
		for (unsigned i = 0; i < f->m; i++)
			put(in, f->a, v->a_col, stride(v->a_col ? f->m : f->k, f->a), i, k,
				x->a[i][k]);
		for (unsigned j = 0; j < f->n; j++)
			put(in + PART_BYTES, f->a, v->b_col, stride(v->b_col ? f->k : f->n, f->a),
				k, j, x->b[k][j]);
	}
	for (unsigned i = 0; i < f->m; i++) {
		for (unsigned j = 0; j < f->n; j++)
			put(in + 2 * PART_BYTES, f->c, v->c_col,
				stride(v->c_col ? f->m : f->n, f->c), i, j, x->c[i][j]);
	}
}

static bool run_wmma(struct pt_run *run)
{
	const struct form *f = &forms[run->c->arg[0]];
	struct variant v = variant_of(run->c);
	static struct pt_matrix x;
	static uint8_t in[BYTES], want[BYTES], got[BYTES];
	memset(in, 0x11, sizeof in);
	x.m = f->m;
	x.n = f->n;
	x.k = f->k;
	pt_matrix_fill(&run->rng, &x, f->a, f->a);
	pt_matrix_multiply(&x, f->a, v.extra, v.extra && f->a != PT_M_B1);
	put_operands(f, &v, &x, in);
	memset(want, 0xa5, sizeof want);
	if (v.space == SHARED)
		memcpy(want, in, sizeof want);
	for (unsigned i = 0; i < f->m; i++) {
		for (unsigned j = 0; j < f->n; j++)
			put(want + 3 * PART_BYTES, f->d, v.d_col,
				stride(v.d_col ? f->m : f->n, f->d), i, j, x.d[i][j]);
	}
	CUdeviceptr a = pt_run_put(run, in, sizeof in), b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "wmma", 1, 32, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	return pt_run_same32(run, "word", (const uint32_t *)(void *)got,
		(const uint32_t *)(void *)want, BYTES / 4);
}

void pt_wmma_cases(struct pt_suite *s)
{
	for (size_t i = 0; i < N_FORMS; i++) {
		const struct form *f = &forms[i];
		bool narrow = pt_element_bits(f->a) < 8;
		for (int layout = narrow ? 2 : 0; layout < (narrow ? 3 : 4); layout++) {
			for (int extra = 0; extra < (pt_element_integer(f->a) ? 2 : 1); extra++) {
				for (int space = GENERIC; space <= SHARED; space++) {
					/* the layouts of C and D change with the space */
					int v = layout | ((layout + space) & 3) << 2 | extra << 4;
					char *name = pt_format(
						"wmma m%un%uk%u %s.%s.%s %s.%s%s%s, c %s, d %s",
						f->m, f->n, f->k, pt_element_name(f->d),
						pt_element_name(f->a), pt_element_name(f->c),
						layouts[layout & 1], layouts[layout >> 1],
						spaces[space], extra ? ", saturated or and" : "",
						layouts[(v >> 2) & 1], layouts[(v >> 3) & 1]);
					struct pt_case probe = { .arg = { (int)i, v, space } };
					struct variant x = variant_of(&probe);
					char *text = form_text(f, &x);
					struct pt_case *c = pt_case_add(s, run_wmma, name, text);
					memcpy(c->arg, probe.arg, sizeof c->arg);
					free(name);
					free(text);
				}
			}
		}
	}
}
