/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Logic, shifts, bit fields, byte permutes, dot products. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"

enum logic { AND, OR, XOR, NOT, CNOT };

static unsigned width(const struct pt_row *row)
{
	return pt_type_bits(row->out[0]);
}

static void ref_logic(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	uint64_t m = row->out[0] == PT_PRED ? 1 : pt_mask(width(row));
	switch ((enum logic)row->arg[0]) {
	case AND:
		want->out[0] = in[0] & in[1];
		break;
	case OR:
		want->out[0] = in[0] | in[1];
		break;
	case XOR:
		want->out[0] = in[0] ^ in[1];
		break;
	case NOT:
		want->out[0] = ~in[0] & m;
		break;
	case CNOT:
		want->out[0] = in[0] == 0;
		break;
	}
}

/* The count is an unsigned 32-bit number. Counts >= the width shift out all bits. */
static void ref_shift(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned w = width(row);
	bool over = in[1] >= w;
	uint64_t m = pt_mask(w);
	if (row->arg[0] == 'l')
		want->out[0] = over ? 0 : in[0] << in[1] & m;
	else if (row->arg[0] == 'u')
		want->out[0] = over ? 0 : in[0] >> in[1];
	else
		want->out[0] = (uint64_t)(pt_sext(in[0], w) >> (over ? w - 1 : in[1])) & m;
}

/* arg: left?, clamp? */
static void ref_shf(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	uint64_t both = in[1] << 32 | in[0];
	unsigned n = row->arg[1] ? (in[2] > 32 ? 32 : (unsigned)in[2]) : (unsigned)in[2] & 31;
	/* left: the upper half of both << n; right: the lower half of both >> n */
	want->out[0] =
		row->arg[0] ? (n == 32 ? in[0] : (both << n) >> 32) : (both >> n) & 0xffffffff;
}

static uint64_t lut(unsigned table, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t r = 0;
	for (unsigned i = 0; i < 32; i++) {
		unsigned index =
			(unsigned)(((a >> i) & 1) << 2 | ((b >> i) & 1) << 1 | ((c >> i) & 1));
		r |= (uint64_t)((table >> index) & 1) << i;
	}
	return r;
}

static void ref_lop3(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	for (unsigned k = 0; k < row->n_out; k++)
		want->out[k] = lut((unsigned)row->arg[k], in[0], in[1], in[2]);
}

/* lop3.BoolOp: the predicate is (d != 0) BoolOp q */
static void ref_lop3_bool(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	want->out[0] = lut((unsigned)row->arg[0], in[0], in[1], in[2]);
	uint64_t nonzero = want->out[0] != 0;
	want->out[1] = row->arg[1] ? nonzero | in[3] : nonzero & in[3];
}

static void ref_bfe(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned msb = width(row) - 1, pos = in[1] & 0xff, len = in[2] & 0xff;
	unsigned top = pos + len - 1 < msb ? pos + len - 1 : msb;
	uint64_t sign = pt_type_signed(row->out[0]) && len ? (in[0] >> top) & 1 : 0, d = 0;
	for (unsigned i = 0; i <= msb; i++) {
		uint64_t bit = i < len && pos + i <= msb ? (in[0] >> (pos + i)) & 1 : sign;
		d |= bit << i;
	}
	want->out[0] = d;
}

static void ref_bfi(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned msb = width(row) - 1, pos = in[2] & 0xff, len = in[3] & 0xff;
	uint64_t d = in[1];
	for (unsigned i = 0; i < len && pos + i <= msb; i++)
		d = (d & ~(UINT64_C(1) << (pos + i))) | ((in[0] >> i) & 1) << (pos + i);
	want->out[0] = d;
}

static void ref_brev(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned w = width(row);
	for (unsigned i = 0; i < w; i++)
		want->out[0] |= ((in[0] >> i) & 1) << (w - 1 - i);
}

static void ref_popc(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	(void)row;
	for (unsigned i = 0; i < 64; i++)
		want->out[0] += (in[0] >> i) & 1;
}

static void ref_clz(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned w = pt_type_bits(row->in[0]), n = 0;
	while (n < w && !((in[0] >> (w - 1 - n)) & 1))
		n++;
	want->out[0] = n;
}

static void ref_bfind(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned w = pt_type_bits(row->in[0]);
	uint64_t v = in[0], d = 0xffffffff;
	if (pt_type_signed(row->in[0]) && pt_sext(v, w) < 0)
		v = ~v & pt_mask(w);
	for (unsigned i = 0; i < w; i++) {
		if ((v >> i) & 1)
			d = row->arg[0] ? w - 1 - i : i;
	}
	want->out[0] = d;
}

static void ref_fns(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	(void)row;
	uint32_t mask = (uint32_t)in[0];
	int64_t pos = (int64_t)in[1], offset = pt_sext(in[2], 32);
	want->out[0] = 0xffffffff;
	if (offset == 0) {
		if ((mask >> pos) & 1)
			want->out[0] = (uint64_t)pos;
		return;
	}
	int64_t left = offset < 0 ? -offset : offset;
	for (; pos >= 0 && pos < 32; pos += offset < 0 ? -1 : 1) {
		if (((mask >> pos) & 1) && --left == 0) {
			want->out[0] = (uint64_t)pos;
			return;
		}
	}
}

/* Byte selectors of the named modes, by c & 3, most significant byte first. */
static const struct prmt_mode {
	const char *name;
	uint16_t select[4];
} prmt_modes[] = {
	{ "", { 0 } },
	{ ".f4e", { 0x3210, 0x4321, 0x5432, 0x6543 } },
	{ ".b4e", { 0x5670, 0x6701, 0x7012, 0x0123 } },
	{ ".rc8", { 0x0000, 0x1111, 0x2222, 0x3333 } },
	{ ".ecl", { 0x3210, 0x3211, 0x3222, 0x3333 } },
	{ ".ecr", { 0x0000, 0x1110, 0x2210, 0x3210 } },
	{ ".rc16", { 0x1010, 0x3232, 0x1010, 0x3232 } },
};

static void ref_prmt(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	uint64_t bytes = in[1] << 32 | in[0];
	unsigned select =
		row->arg[0] ? prmt_modes[row->arg[0]].select[in[2] & 3] : (unsigned)in[2] & 0xffff;
	for (unsigned i = 0; i < 4; i++) {
		unsigned nibble = (select >> (4 * i)) & 0xf;
		uint64_t byte = (bytes >> (8 * (nibble & 7))) & 0xff;
		if (nibble & 8)
			byte = byte & 0x80 ? 0xff : 0;
		want->out[0] |= byte << (8 * i);
	}
}

static int64_t field(uint64_t v, unsigned index, unsigned bits, bool is_signed)
{
	uint64_t f = (v >> (index * bits)) & pt_mask(bits);
	return is_signed ? pt_sext(f, bits) : (int64_t)f;
}

/* arg: elements of a (4 bytes or 2 halves), first byte of b, a signed, b signed */
static void ref_dot(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned n = (unsigned)row->arg[0];
	uint64_t sum = in[2];
	for (unsigned i = 0; i < n; i++)
		sum += (uint64_t)(field(in[0], i, 32 / n, row->arg[2]) *
			field(in[1], i + (unsigned)row->arg[1], 8, row->arg[3]));
	want->out[0] = sum & 0xffffffff;
}

/* arg: clamp?, signed? */
static void ref_szext(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned n = row->arg[0] ? (in[1] > 32 ? 32 : (unsigned)in[1]) : (unsigned)in[1] & 31;
	if (n)
		want->out[0] = (row->arg[1] ? (uint64_t)pt_sext(in[0], n) : in[0] & pt_mask(n)) &
			0xffffffff;
}

static void ref_bmsk(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	bool clamped = row->arg[0];
	unsigned a = clamped ? (in[0] > 32 ? 32 : (unsigned)in[0]) : (unsigned)in[0] & 31;
	unsigned b = clamped ? (in[1] > 32 ? 32 : (unsigned)in[1]) : (unsigned)in[1] & 31;
	for (unsigned i = a; i < a + b && i < 32; i++)
		want->out[0] |= UINT64_C(1) << i;
}

static void ref_mov(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	(void)row;
	want->out[0] = in[0];
}

/* Elements of arg[0] bits: pack joins the inputs, unpack splits the single input. */
static void ref_pack(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	for (unsigned i = 0; i < row->n_in; i++)
		want->out[0] |= in[i] << (i * (unsigned)row->arg[0]);
}

static void ref_unpack(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	for (unsigned i = 0; i < row->n_out; i++)
		want->out[i] =
			(in[0] >> (i * (unsigned)row->arg[0])) & pt_mask((unsigned)row->arg[0]);
}

static void set_body(struct pt_row *r, const char *body)
{
	free(r->body);
	r->body = pt_format("%s", body);
}

static void add_logic(struct pt_suite *s)
{
	static const char *const names[] = { "and", "or", "xor", "not", "cnot" };
	static const char *const types[] = { "pred", "b16", "b32", "b64" };
	char spec[64];
	for (int op = AND; op <= CNOT; op++) {
		for (unsigned t = op == CNOT; t < 4; t++) {
			const char *n = types[t];
			snprintf(spec, sizeof spec, op < NOT ? "%s:%s,%s" : "%s:%s", n, n, n);
			pt_row_add(s, ref_logic, spec, "%s.%s", names[op], n)->arg[0] = op;
		}
	}
	for (unsigned t = 0; t < 4; t++) {
		snprintf(spec, sizeof spec, "%s:%s", types[t], types[t]);
		pt_row_add(s, ref_mov, spec, "mov.%s", types[t]);
	}
}

static void add_shifts(struct pt_suite *s)
{
	for (unsigned w = 16; w <= 64; w *= 2) {
		char spec[64];
		for (const char *p = "bus"; *p; p++) {
			snprintf(spec, sizeof spec, "%c%u:%c%u,u32/shift", *p, w, *p, w);
			if (*p == 'b')
				pt_row_add(s, ref_shift, spec, "shl.b%u", w)->arg[0] = 'l';
			pt_row_add(s, ref_shift, spec, "shr.%c%u", *p, w)->arg[0] =
				*p == 's' ? 's' : 'u';
		}
	}
	for (int i = 0; i < 4; i++) {
		struct pt_row *r = pt_row_add(s, ref_shf, "b32:b32,b32,u32/shift", "shf.%s.%s.b32",
			i & 1 ? "l" : "r", i & 2 ? "clamp" : "wrap");
		r->arg[0] = i & 1;
		r->arg[1] = i & 2;
	}
}

/* All 256 truth tables, four per row. */
static void add_lop3(struct pt_suite *s)
{
	for (int table = 0; table < 256; table += 4) {
		struct pt_row *r = pt_row_add(s, ref_lop3, "b32,b32,b32,b32:b32,b32,b32",
			"lop3.b32 0x%02x..0x%02x", table, table + 3);
		free(r->body);
		struct pt_text t = { 0 };
		for (int k = 0; k < 4; k++) {
			r->arg[k] = table + k;
			pt_text_add(&t, "lop3.b32 %%d%d, %%a, %%b, %%c, %d;\n", k, table + k);
		}
		r->body = t.p;
	}
	static const int tables[] = { 0x80, 0xfe, 0x96, 0x01, 0x00, 0xff, 0xca };
	for (size_t i = 0; i < 2 * sizeof tables / sizeof tables[0]; i++) {
		bool is_or = i & 1;
		struct pt_row *r = pt_row_add(s, ref_lop3_bool, "b32,pred:b32,b32,b32,pred",
			"lop3.%s.b32 0x%02x", is_or ? "or" : "and", tables[i / 2]);
		r->arg[0] = tables[i / 2];
		r->arg[1] = is_or;
		free(r->body);
		r->body = pt_format("lop3.%s.b32 %%d0|%%d1, %%a, %%b, %%c, %d, %%e;",
			is_or ? "or" : "and", tables[i / 2]);
	}
}

static void add_fields(struct pt_suite *s)
{
	static const char *const types[] = { "u32", "s32", "u64", "s64" };
	char spec[64];
	for (unsigned t = 0; t < 4; t++) {
		const char *n = types[t];
		snprintf(spec, sizeof spec, "%s:%s,u32/byte,u32/byte", n, n);
		pt_row_add(s, ref_bfe, spec, "bfe.%s", n);
		snprintf(spec, sizeof spec, "u32:%s", n);
		pt_row_add(s, ref_bfind, spec, "bfind.%s", n);
		pt_row_add(s, ref_bfind, spec, "bfind.shiftamt.%s", n)->arg[0] = 1;
	}
	for (unsigned w = 32; w <= 64; w *= 2) {
		snprintf(spec, sizeof spec, "b%u:b%u,b%u,u32/byte,u32/byte", w, w, w);
		pt_row_add(s, ref_bfi, spec, "bfi.b%u", w);
		snprintf(spec, sizeof spec, "b%u:b%u", w, w);
		pt_row_add(s, ref_brev, spec, "brev.b%u", w);
		snprintf(spec, sizeof spec, "u32:b%u", w);
		pt_row_add(s, ref_popc, spec, "popc.b%u", w);
		pt_row_add(s, ref_clz, spec, "clz.b%u", w);
	}
	pt_row_add(s, ref_fns, "b32:b32,b32/lane,s32/near", "fns.b32");
	for (int i = 0; i < 4; i++) {
		struct pt_row *r =
			pt_row_add(s, ref_szext, i & 2 ? "s32:s32,u32/shift" : "u32:u32,u32/shift",
				"szext.%s.%s", i & 1 ? "clamp" : "wrap", i & 2 ? "s32" : "u32");
		r->arg[0] = i & 1;
		r->arg[1] = i & 2;
	}
	pt_row_add(s, ref_bmsk, "b32:u32/shift,u32/shift", "bmsk.wrap.b32");
	pt_row_add(s, ref_bmsk, "b32:u32/shift,u32/shift", "bmsk.clamp.b32")->arg[0] = 1;
}

static void add_bytes(struct pt_suite *s)
{
	for (size_t i = 0; i < sizeof prmt_modes / sizeof prmt_modes[0]; i++)
		pt_row_add(s, ref_prmt, "b32:b32,b32,b32", "prmt.b32%s", prmt_modes[i].name)
			->arg[0] = (int)i;
	static const char *const ops[] = { "dp4a", "dp2a.lo", "dp2a.hi" };
	for (int op = 0; op < 3; op++) {
		for (int i = 0; i < 4; i++) {
			struct pt_row *r = pt_row_add(s, ref_dot, "b32:b32,b32,b32", "%s.%s.%s",
				ops[op], i & 1 ? "s32" : "u32", i & 2 ? "s32" : "u32");
			r->arg[0] = op ? 2 : 4;
			r->arg[1] = op == 2 ? 2 : 0;
			r->arg[2] = i & 1;
			r->arg[3] = i & 2;
		}
	}
}

static void add_packs(struct pt_suite *s)
{
	static const struct {
		const char *pack, *unpack, *spec_pack, *spec_unpack;
		int bits;
	} vectors[] = {
		{ "mov.b32 %d0, {%a, %b};", "mov.b32 {%d0, %d1}, %a;", "b32:b16,b16", "b16,b16:b32",
			16 },
		{ "mov.b64 %d0, {%a, %b};", "mov.b64 {%d0, %d1}, %a;", "b64:b32,b32", "b32,b32:b64",
			32 },
		{ "mov.b64 %d0, {%a, %b, %c, %e};", "mov.b64 {%d0, %d1, %d2, %d3}, %a;",
			"b64:b16,b16,b16,b16", "b16,b16,b16,b16:b64", 16 },
	};
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
		struct pt_row *r =
			pt_row_add(s, ref_pack, vectors[i].spec_pack, "%s", vectors[i].pack);
		r->arg[0] = vectors[i].bits;
		set_body(r, vectors[i].pack);
		r = pt_row_add(s, ref_unpack, vectors[i].spec_unpack, "%s", vectors[i].unpack);
		r->arg[0] = vectors[i].bits;
		set_body(r, vectors[i].unpack);
	}
	struct pt_row *r = pt_row_add(s, ref_unpack, "b32:b64", "mov.b64 {%%d0, _}, %%a");
	r->arg[0] = 32;
	set_body(r, "mov.b64 {%d0, _}, %a;");
}

void pt_group_bits(struct pt_suite *s)
{
	add_logic(s);
	add_shifts(s);
	add_lop3(s);
	add_fields(s);
	add_bytes(s);
	add_packs(s);
}
