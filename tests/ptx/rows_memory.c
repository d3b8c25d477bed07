/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Loads and stores as rows: every width and extension in every space, vector forms, qualifiers. %pi
 * is the address of the operand tuple in global memory, so kernels can read and write it there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"

enum space { GLOBAL, SHARED, LOCAL, GENERIC_GLOBAL, GENERIC_SHARED, GENERIC_LOCAL, N_SPACES };

/*
 * Statements that put the address of the thread's 16 bytes into %at (%as for shared), and the
 * qualifier and base with which instructions address them.
 */
static const struct {
	const char *name, *qualifier, *base, *decl, *set_up;
	bool copy; /* the kernel must store the operands there first */
} spaces[N_SPACES] = {
	[GLOBAL] = { "global", ".global", "%pi", ".reg .b64 %at, %v<4>;", "", false },
	[SHARED] = { "shared", ".shared", "%as",
		".reg .b64 %v<4>;\n\t.reg .b32 %as;\n\t.shared .align 16 .b8 own[2048];",
		"mov.u32 %as, %tid.x;\nshl.b32 %as, %as, 4;\nmov.u32 %s, own;\nadd.u32 %as, %as, "
		"%s;\n",
		true },
	[LOCAL] = { "local", ".local", "own", ".reg .b64 %v<4>;\n\t.local .align 16 .b8 own[16];",
		"", true },
	[GENERIC_GLOBAL] = { "generic global", "", "%at", ".reg .b64 %at, %v<4>;",
		"cvta.global.u64 %at, %pi;\n", false },
	[GENERIC_SHARED] = { "generic shared", "", "%at",
		".reg .b64 %at, %v<4>;\n\t.reg .b32 %as;\n\t.shared .align 16 .b8 own[2048];",
		"mov.u32 %as, %tid.x;\nshl.b32 %as, %as, 4;\ncvt.u64.u32 %v0, %as;\nmov.u64 %at, "
		"own;\n"
		"add.u64 %at, %at, %v0;\ncvta.shared.u64 %at, %at;\n",
		true },
	[GENERIC_LOCAL] = { "generic local", "", "%at",
		".reg .b64 %at, %v<4>;\n\t.local .align 16 .b8 own[16];",
		"mov.u64 %at, own;\ncvta.local.u64 %at, %at;\n", true },
};

/* Reads bits at a byte offset in the operands, two words of 64 bits. */
static uint64_t bytes_at(const uint64_t *in, unsigned offset, unsigned bits)
{
	uint8_t b[16];
	uint64_t v = 0;
	memcpy(b, in, 16);
	memcpy(&v, b + offset, bits / 8);
	return v;
}

/* arg: memory type, offset, lanes of a vector */
static void ref_load(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	enum pt_type t = (enum pt_type)row->arg[0];
	unsigned bits = pt_type_bits(t), out_bits = pt_type_bits(row->out[0]);
	for (unsigned k = 0; k < row->n_out; k++) {
		uint64_t v = bytes_at(in, (unsigned)row->arg[1] + k * bits / 8, bits);
		if (pt_type_signed(t) && !pt_type_format(t))
			v = (uint64_t)pt_sext(v, bits);
		want->out[k] = v & pt_mask(out_bits);
	}
}

/*
 * Operands c and e (or the low parts of c) overwrite the bytes of a and b; the 16 bytes are the
 * result.
 */
static void ref_store(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned bytes = pt_type_bits((enum pt_type)row->arg[0]) / 8;
	uint8_t b[16];
	memcpy(b, in, 16);
	for (unsigned k = 0; k < (unsigned)row->arg[2]; k++)
		memcpy(b + row->arg[1] + k * bytes, k % 2 ? &in[3] : &in[2], bytes);
	memcpy(want->out, b, 16);
}

static char *set_up(enum space sp)
{
	struct pt_text t = { 0 };
	pt_text_add(&t, "%s", spaces[sp].set_up);
	if (spaces[sp].copy)
		pt_text_add(&t, "st%s.v2.b64 [%s], {%%a, %%b};\n", spaces[sp].qualifier,
			spaces[sp].base);
	return t.p ? t.p : pt_format("%s", "");
}

static void add_load(struct pt_suite *s, enum space sp, enum pt_type t, const char *reg,
	unsigned offset, unsigned lanes, const char *modifier)
{
	struct pt_text types = { 0 }, body = { 0 };
	char *before = set_up(sp);
	for (unsigned k = 0; k < lanes; k++)
		pt_text_add(&types, "%s%s", k ? "," : "", reg);
	pt_text_add(&types, ":b64,b64");
	char vec[16] = "";
	if (lanes > 1)
		snprintf(vec, sizeof vec, ".v%u", lanes);
	pt_text_add(&body, "%sld%s%s%s.%s %s", before, *modifier == '!' ? modifier + 1 : modifier,
		spaces[sp].qualifier, vec, pt_type_name(t), lanes > 1 ? "{" : "");
	for (unsigned k = 0; k < lanes; k++)
		pt_text_add(&body, "%s%%d%u", k ? ", " : "", k);
	pt_text_add(&body, "%s, [%s+%u];", lanes > 1 ? "}" : "", spaces[sp].base, offset);
	struct pt_row *r = pt_row_add(s, ref_load, types.p, "ld%s %s%s.%s to %s at %u", modifier,
		spaces[sp].name, vec, pt_type_name(t), reg, offset);
	free(r->body);
	r->body = body.p;
	r->decl = spaces[sp].decl;
	r->strict_nan = true;
	r->arg[0] = (int)t;
	r->arg[1] = (int)offset;
	pt_text_free(&types);
	free(before);
}

static void add_store(struct pt_suite *s, enum space sp, enum pt_type t, unsigned offset,
	unsigned lanes, const char *modifier)
{
	struct pt_text body = { 0 };
	unsigned bits = pt_type_bits(t) < 16 ? 16 : pt_type_bits(t);
	char *before = set_up(sp), types[64], vec[16] = "";
	if (lanes > 1)
		snprintf(vec, sizeof vec, ".v%u", lanes);
	snprintf(types, sizeof types, "b64,b64:b64,b64,b%u,b%u", bits, bits);
	/* global memory contains what the previous variant has stored */
	if (!spaces[sp].copy)
		pt_text_add(&body, "st.global.v2.b64 [%%pi], {%%a, %%b};\n");
	pt_text_add(&body, "%sst%s%s%s.%s [%s+%u], ", before, modifier, spaces[sp].qualifier, vec,
		pt_type_name(t), spaces[sp].base, offset);
	pt_text_add(&body,
		lanes == 1           ? "%%c;\n"
			: lanes == 2 ? "{%%c, %%e};\n"
				     : "{%%c, %%e, %%c, %%e};\n");
	pt_text_add(&body, "ld%s.b64 %%d0, [%s];\nld%s.b64 %%d1, [%s+8];", spaces[sp].qualifier,
		spaces[sp].base, spaces[sp].qualifier, spaces[sp].base);
	struct pt_row *r = pt_row_add(s, ref_store, types, "st%s %s%s.%s at %u", modifier,
		spaces[sp].name, vec, pt_type_name(t), offset);
	free(r->body);
	r->body = body.p;
	r->decl = spaces[sp].decl;
	r->arg[0] = (int)t;
	r->arg[1] = (int)offset;
	r->arg[2] = (int)lanes;
	free(before);
}

static void add_space(struct pt_suite *s, enum space sp)
{
	static const enum pt_type types[] = { PT_U8, PT_S8, PT_B8, PT_U16, PT_S16, PT_B16, PT_U32,
		PT_S32, PT_B32, PT_U64, PT_S64, PT_B64, PT_F32, PT_F64 };
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		enum pt_type t = types[i];
		unsigned bits = pt_type_bits(t), bytes = bits / 8;
		bool exact = pt_type_format(t) != NULL;
		for (unsigned reg = bits < 16 ? 16 : bits; reg <= (exact ? bits : 64); reg *= 2) {
			char name[16];
			snprintf(name, sizeof name, "b%u", reg);
			add_load(s, sp, t, name, bytes == 8 ? 8 : 3 * bytes, 1, "");
		}
		add_store(s, sp, t, bytes == 8 ? 8 : 3 * bytes, 1, "");
		for (unsigned lanes = 2; lanes <= 4 && lanes * bytes <= 16; lanes *= 2) {
			char name[16];
			snprintf(name, sizeof name, "b%u", bits < 16 ? 16 : bits);
			add_load(s, sp, t, name, lanes * bytes < 16 ? lanes * bytes : 0, lanes, "");
			add_store(s, sp, t, lanes * bytes < 16 ? lanes * bytes : 0, lanes, "");
		}
	}
	/* extension of vector elements */
	add_load(s, sp, PT_S8, "b32", 4, 4, "");
	add_load(s, sp, PT_U8, "b32", 12, 4, "");
	add_load(s, sp, PT_S16, "b64", 8, 4, "");
	add_load(s, sp, PT_S32, "b64", 0, 4, "");
}

static void add_modifiers(struct pt_suite *s)
{
	static const char *const loads[] = { ".volatile", ".relaxed.cta", ".relaxed.gpu",
		".relaxed.sys", ".acquire.cta", ".acquire.gpu", ".acquire.sys", ".weak" };
	static const char *const stores[] = { ".volatile", ".relaxed.cta", ".relaxed.gpu",
		".relaxed.sys", ".release.cta", ".release.gpu", ".release.sys", ".weak" };
	for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
		for (int sp = GLOBAL; sp < N_SPACES; sp++) {
			if (sp == LOCAL || sp == GENERIC_LOCAL)
				continue;
			add_load(s, (enum space)sp, PT_S32, "b64", 4, 1, loads[i]);
			add_load(s, (enum space)sp, PT_B64, "b64", 0, 1, loads[i]);
			add_store(s, (enum space)sp, PT_B32, 12, 1, stores[i]);
			add_store(s, (enum space)sp, PT_U8, 5, 1, stores[i]);
		}
	}
	add_load(s, GLOBAL, PT_U32, "b32", 8, 2, ".volatile");
	add_store(s, GLOBAL, PT_U32, 8, 2, ".volatile");
}

static void ref_first(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	(void)row;
	want->out[0] = in[0];
}

/* Cache operators and hints only change the speed. */
static void add_hints(struct pt_suite *s)
{
	static const char *const loads[] = {
		"ld.global.ca.b64",
		"ld.global.cg.b64",
		"ld.global.cs.b64",
		"ld.global.lu.b64",
		"ld.global.cv.b64",
		"ld.global.nc.b64",
		"ld.global.ca.nc.b64",
		"ldu.global.b64",
		"ld.global.L1::evict_last.b64",
		"ld.global.L1::no_allocate.b64",
		"ld.global.L1::evict_first.L2::128B.b64",
		"ld.global.nc.L1::no_allocate.L2::256B.b64",
		"ld.global.L2::64B.b64",
	};
	static const char *const stores[] = { "st.global.wb.b64", "st.global.cg.b64",
		"st.global.cs.b64", "st.global.wt.b64", "st.global.L1::no_allocate.b64",
		"st.global.L1::evict_last.b64" };
	for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
		struct pt_row *r = pt_row_add(s, ref_first, "b64:b64", "%s", loads[i]);
		free(r->body);
		r->body = pt_format(
			"prefetch.global.L1 [%%pi];\nprefetch.global.L2 [%%pi];\n%s %%d0, [%%pi];",
			loads[i]);
	}
	for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
		struct pt_row *r = pt_row_add(s, ref_first, "b64:b64", "%s", stores[i]);
		free(r->body);
		r->body = pt_format(
			"st.global.b64 [%%pi], 0;\n%s [%%pi], %%a;\nld.global.b64 %%d0, [%%pi];",
			stores[i]);
	}
}

/* arg: the expected result */
static void ref_answer(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	(void)in;
	want->out[0] = (uint64_t)row->arg[0];
}

static void add_addresses(struct pt_suite *s)
{
	static const char *const names[] = { "global", "shared", "local" };
	static const enum space generic[] = { GENERIC_GLOBAL, GENERIC_SHARED, GENERIC_LOCAL };
	for (int of = 0; of < 3; of++) {
		for (int asked = 0; asked < 3; asked++) {
			struct pt_row *r = pt_row_add(s, ref_answer, "pred:b64",
				"isspacep.%s of a %s address", names[asked], names[of]);
			free(r->body);
			r->body = pt_format("%sisspacep.%s %%d0, %%at;", spaces[generic[of]].set_up,
				names[asked]);
			r->decl = spaces[generic[of]].decl;
			r->arg[0] = of == asked;
		}
		/* converting an address to and from generic does not change it */
		struct pt_row *r = pt_row_add(s, ref_answer, "pred:b64", "cvta.to.%s", names[of]);
		free(r->body);
		r->body = pt_format("%scvta.to.%s.u64 %%v1, %%at;\ncvta.%s.u64 %%v1, "
				    "%%v1;\nsetp.eq.u64 %%d0, %%v1, %%at;",
			spaces[generic[of]].set_up, names[of], names[of]);
		r->decl = spaces[generic[of]].decl;
		r->arg[0] = 1;
	}
}

void pt_memory_rows(struct pt_suite *s)
{
	for (int sp = GLOBAL; sp < N_SPACES; sp++)
		add_space(s, (enum space)sp);
	add_modifiers(s);
	add_hints(s);
	add_addresses(s);
}
