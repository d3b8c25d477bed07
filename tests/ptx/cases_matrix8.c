/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* ldmatrix and stmatrix with elements of bytes, and of 4 and 6 bits in memory. */
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"

struct form {
	const char *op;
	unsigned registers, bits; /* bits of an element in memory */
	bool trans, store;
};

static const struct form forms[] = {
	{ "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", 2, 8, true, false },
	{ "ldmatrix.sync.aligned.m16n16.x2.trans.shared::cta.b8", 4, 8, true, false },
	{ "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b4x16_p64", 2, 4, true, false },
	{ "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b6x16_p32", 4, 6, true, false },
	{ "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64", 1, 4, false, false },
	{ "ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32", 2, 6, false, false },
	{ "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b6x16_p32", 4, 6, false, false },
	{ "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8", 1, 8, true, true },
	{ "stmatrix.sync.aligned.m16n8.x2.trans.shared.b8", 2, 8, true, true },
	{ "stmatrix.sync.aligned.m16n8.x4.trans.shared.b8", 4, 8, true, true },
};
#define N_FORMS (sizeof forms / sizeof forms[0])

/* The rows are not in order in memory. */
static unsigned row_at(unsigned row)
{
	return (row * 5 + 3) % 32 * 16;
}

static const char head[] = PT_ENTRY("move") "{\n	.shared .align 16 .b8 "
					    "x[512];\n" PT_PROLOGUE;

static char *form_text(const struct form *f)
{
	struct pt_text t = { 0 };
	pt_text_add(&t, "%s", head);
	pt_text_add(&t,
		"	mov.u32 %%r1, x;\n	mad.lo.u32 %%r2, %%t, 16, %%r1;\n"
		"	mad.wide.u32 %%l1, %%t, 16, %%p0;\n	mad.wide.u32 %%l2, %%t, 16, %%p1;\n"
		"	ld.global.v4.u32 {%%r10, %%r11, %%r12, %%r13}, [%%l1];\n"
		"	st.shared.v4.u32 [%%r2], {%%r10, %%r11, %%r12, %%r13};\n"
		"	ld.global.v4.u32 {%%r20, %%r21, %%r22, %%r23}, [%%l1+512];\n"
		"	mad.lo.u32 %%r3, %%t, 5, 3;\n	and.b32 %%r3, %%r3, 31;\n"
		"	mad.lo.u32 %%r3, %%r3, 16, %%r1;\n	bar.sync 0;\n	%s ",
		f->op);
	if (f->store)
		pt_text_add(&t, "[%%r3], ");
	for (unsigned i = 0; i < f->registers; i++)
		pt_text_add(&t, "%s%%r%u", i ? ", " : "{", 20 + i);
	pt_text_add(&t,
		"}%s;\n	bar.sync 0;\n	ld.shared.v4.u32 {%%r10, %%r11, %%r12, %%r13}, [%%r2];\n"
		"	st.global.v4.u32 [%%l2], {%%r10, %%r11, %%r12, %%r13};\n"
		"	st.global.v4.u32 [%%l2+512], {%%r20, %%r21, %%r22, %%r23};\n	ret;\n}\n",
		f->store ? "" : ", [%r3]");
	return t.p;
}

/* The element of a row in memory. */
static uint8_t element(const struct form *f, const uint8_t *row, unsigned i)
{
	unsigned v = 0;
	for (unsigned bit = 0; bit < f->bits; bit++) {
		unsigned at = i * f->bits + bit;
		v |= (row[at / 8] >> at % 8 & 1u) << bit;
	}
	return (uint8_t)v;
}

/*
 * Where element (row, column) goes. A lane has four columns of one row; of a transposed load, four
 * rows of one column; of a transposed store, two rows of two columns that are eight apart.
 */
static void place(const struct form *f, unsigned row, unsigned column, unsigned *reg,
	unsigned *lane, unsigned *byte)
{
	if (!f->trans) {
		*reg = row / 8;
		*lane = row % 8 * 4 + column / 4;
		*byte = column % 4;
		return;
	}
	if (f->store) {
		*byte = row % 2 + column / 8 * 2;
		*reg = row / 8;
		*lane = column % 8 * 4 + row % 8 / 2;
	} else {
		*byte = row % 4;
		*reg = row / 16 * 2 + column / 8;
		*lane = column % 8 * 4 + row % 16 / 4;
	}
}

static bool run_move(struct pt_run *run)
{
	const struct form *f = &forms[run->c->arg[0]];
	uint8_t in[1024], want[1024], got[1024];
	for (unsigned i = 0; i < sizeof in; i++)
		in[i] = (uint8_t)pt_rng_next(&run->rng);
	memcpy(want, in, sizeof want);
	for (unsigned row = 0; row < 8 * f->registers; row++) {
		for (unsigned column = 0; column < 16; column++) {
			unsigned reg, lane, byte;
			place(f, row, column, &reg, &lane, &byte);
			uint8_t *cell = want + 512 + lane * 16 + reg * 4 + byte;
			if (f->store)
				want[row_at(row) + column] = *cell;
			else
				*cell = element(f, in + row_at(row), column);
		}
	}
	CUdeviceptr a = pt_run_put(run, in, sizeof in), b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "move", 1, 32, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	return pt_run_same32(
		run, "word", (uint32_t *)(void *)got, (uint32_t *)(void *)want, sizeof got / 4);
}

void pt_matrix8_cases(struct pt_suite *s)
{
	for (size_t i = 0; i < N_FORMS; i++) {
		char *text = form_text(&forms[i]);
		struct pt_case *c = pt_case_add(s, run_move, forms[i].op, text);
		c->target = "sm_120a";
		c->arg[0] = (int)i;
		free(text);
	}
}
