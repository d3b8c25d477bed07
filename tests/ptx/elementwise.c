/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Rows: makes the operands and the kernels and compares the results.
 *
 * Each kernel executes its opcode up to six times over the same operands and stores as many sets of
 * results:
 *   full       all lanes of the warp (the last warp is partly empty)
 *   branch     lanes of a random mask; the others jump over the statements
 *   guard      @%m on every statement
 *   nguard     @!%m
 *   immediate  one operand is a constant in the PTX
 *   in place   the destination is also the first operand; under a guard
 * Lanes that do not execute must keep the value of the destination: a poison value, or the operand.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/ptx/suite.h"

#define TUPLES           4341u /* not a multiple of 32 */
#define EXHAUSTIVE       65536u
#define BLOCK            96u
#define KERNEL_TIMEOUT_S 60u

static const uint64_t poison = UINT64_C(0xdeadbeefcafef00d);

enum variant { FULL, BRANCH, GUARD, NGUARD, IMMEDIATE, IN_PLACE, VARIANTS };
static const char *const variant_names[VARIANTS] = { "full mask", "branch", "guard",
	"negated guard", "immediate", "in place" };

static const char *const in_names[PT_MAX_OPERANDS] = { "a", "b", "c", "e" };

static unsigned reg_bits(enum pt_type t)
{
	unsigned bits = pt_type_bits(t);
	return bits < 16 ? 16 : bits;
}

static void emit_registers(const struct pt_row *row, struct pt_text *t)
{
	pt_text_add(t,
		"\t.reg .pred %%m, %%x;\n\t.reg .b32 %%i, %%n, %%w, %%s;\n\t.reg .b64 %%pi, %%po, "
		"%%pm;\n");
	for (unsigned k = 0; k < row->n_in; k++) {
		if (row->in[k] == PT_PRED)
			pt_text_add(t, "\t.reg .pred %%%s;\n", in_names[k]);
		else
			pt_text_add(t, "\t.reg .b%u %%%s;\n", reg_bits(row->in[k]), in_names[k]);
	}
	for (unsigned k = 0; k < row->n_out; k++) {
		if (row->out[k] == PT_PRED)
			pt_text_add(t, "\t.reg .pred %%d%u;\n", k);
		else
			pt_text_add(t, "\t.reg .b%u %%d%u;\n", reg_bits(row->out[k]), k);
	}
	if (row->decl)
		pt_text_add(t, "\t%s\n", row->decl);
}

static void emit_prologue(const struct pt_row *row, struct pt_text *t)
{
	pt_text_add(t,
		"\tld.param.u64 %%pi, [pin];\n\tld.param.u64 %%po, [pout];\n\tld.param.u64 %%pm, "
		"[pmask];\n"
		"\tld.param.u32 %%n, [pn];\n"
		"\tmov.u32 %%i, %%ctaid.x;\n\tmov.u32 %%w, %%ntid.x;\n\tmov.u32 %%s, %%tid.x;\n"
		"\tmad.lo.u32 %%i, %%i, %%w, %%s;\n"
		"\tsetp.ge.u32 %%x, %%i, %%n;\n\t@%%x ret;\n");
	pt_text_add(t, "\tmad.wide.u32 %%pi, %%i, %u, %%pi;\n\tmad.wide.u32 %%po, %%i, %u, %%po;\n",
		row->n_in * 8, row->n_out * 8 * VARIANTS);
	pt_text_add(t,
		"\tshr.u32 %%w, %%i, 5;\n\tmad.wide.u32 %%pm, %%w, 4, %%pm;\n\tld.global.u32 %%w, "
		"[%%pm];\n"
		"\tand.b32 %%s, %%i, 31;\n\tshr.u32 %%w, %%w, %%s;\n\tand.b32 %%w, %%w, 1;\n"
		"\tsetp.ne.u32 %%m, %%w, 0;\n");
	for (unsigned k = 0; k < row->n_in; k++) {
		if (row->in[k] == PT_PRED)
			pt_text_add(t,
				"\tld.global.u32 %%w, [%%pi+%u];\n\tsetp.ne.u32 %%%s, %%w, 0;\n",
				k * 8, in_names[k]);
		else
			pt_text_add(t, "\tld.global.b%u %%%s, [%%pi+%u];\n", reg_bits(row->in[k]),
				in_names[k], k * 8);
	}
}

/* Whether the row is one statement without declarations, so that operands can be replaced. */
static bool simple(const struct pt_row *row)
{
	return !row->no_guard && !row->decl && !strchr(row->body, '\n') &&
		!strstr(row->body, "%pi") && !strchr(row->body, '{');
}

static unsigned row_hash(const struct pt_row *row)
{
	unsigned h = 5381;
	for (const char *p = row->name; *p; p++)
		h = h * 33 + (unsigned char)*p;
	return h >> 4;
}

/* Finds the operand that the immediate variant replaces, and its value; false if there is none. */
static bool immediate_of(const struct pt_row *row, unsigned *ret_k, uint64_t *ret_value)
{
	if (!simple(row) || row->n_in < 2 || strncmp(row->name, "cvt", 3) == 0 ||
		strstr(row->name, "16x2"))
		return false;
	unsigned h = row_hash(row), k = h % row->n_in;
	enum pt_type t = row->in[k];
	if (t == PT_PRED || (pt_type_format(t) && t != PT_F32 && t != PT_F64))
		return false;
	size_t n;
	const uint64_t *edges = pt_edges(t, row->domain[k], false, &n);
	*ret_k = k;
	*ret_value = edges[(h >> 3) % n];
	return true;
}

static void emit_literal(struct pt_text *t, enum pt_type type, uint64_t v)
{
	unsigned bits = pt_type_bits(type);
	if (type == PT_F32)
		pt_text_add(t, "0f%08" PRIX64, v);
	else if (type == PT_F64)
		pt_text_add(t, "0d%016" PRIX64, v);
	else if (pt_type_signed(type) && bits < 64)
		pt_text_add(t, "%" PRId64, pt_sext(v, bits));
	else
		pt_text_add(t, "0x%" PRIx64, v);
}

/* Emits the body with every occurrence of one register replaced. */
static void emit_replaced(struct pt_text *t, const char *body, const char *old, const char *new)
{
	size_t n = strlen(old);
	for (const char *p = body; *p;) {
		if (!strncmp(p, old, n)) {
			pt_text_add(t, "%s", new);
			p += n;
		} else {
			pt_text_raw(t, p++, 1);
		}
	}
	pt_text_add(t, "\n");
}

static bool in_place(const struct pt_row *row)
{
	return simple(row) && row->n_out == 1 && row->n_in > 0 && row->out[0] != PT_PRED &&
		row->in[0] != PT_PRED && pt_type_bits(row->in[0]) >= 16 &&
		pt_type_bits(row->out[0]) == pt_type_bits(row->in[0]);
}

static bool has_variant(const struct pt_row *row, unsigned v)
{
	unsigned k;
	uint64_t value;
	if (v == FULL)
		return true;
	if (v == IMMEDIATE)
		return immediate_of(row, &k, &value);
	return v == IN_PLACE ? in_place(row) : !row->no_guard;
}

static bool is_active(unsigned v, bool m)
{
	return v == FULL || v == IMMEDIATE || (v == NGUARD ? !m : m);
}

/* Emits every statement of the body with a prefix. */
static void emit_body(const struct pt_row *row, struct pt_text *t, const char *prefix)
{
	for (const char *p = row->body; *p;) {
		size_t n = strcspn(p, "\n");
		bool brace = *p == '{' || *p == '}' || *p == '.';
		pt_text_add(t, "\t%s%.*s\n", brace ? "" : prefix, (int)n, p);
		p += n;
		if (*p)
			p++;
	}
}

/* A predicate has no third value to use as poison: variants alternate between false and true. */
static void emit_poison(const struct pt_row *row, struct pt_text *t, unsigned variant)
{
	for (unsigned k = 0; k < row->n_out; k++) {
		unsigned bits = reg_bits(row->out[k]);
		if (row->out[k] == PT_PRED)
			pt_text_add(t, "\tsetp.%s.u32 %%d%u, %%i, %%i;\n",
				variant & 1 ? "ne" : "eq", k);
		else
			pt_text_add(t, "\tmov.b%u %%d%u, 0x%" PRIx64 ";\n", bits, k,
				poison & pt_mask(bits));
	}
}

static uint64_t poison_of(enum pt_type t, unsigned variant)
{
	return t == PT_PRED ? !(variant & 1) : poison & pt_mask(reg_bits(t));
}

static void emit_store(const struct pt_row *row, struct pt_text *t, unsigned variant)
{
	for (unsigned k = 0; k < row->n_out; k++) {
		unsigned offset = (variant * row->n_out + k) * 8;
		if (row->out[k] == PT_PRED)
			pt_text_add(t,
				"\tselp.u32 %%w, 1, 0, %%d%u;\n\tst.global.u32 [%%po+%u], %%w;\n",
				k, offset);
		else
			pt_text_add(t, "\tst.global.b%u [%%po+%u], %%d%u;\n", reg_bits(row->out[k]),
				offset, k);
	}
}

static void emit_row(const struct pt_row *row, struct pt_text *t, size_t index)
{
	pt_text_add(t,
		"// %s\n.visible .entry k%zu(.param .u64 pin, .param .u64 pout, .param .u64 pmask, "
		".param .u32 pn)\n{\n",
		row->name, index);
	emit_registers(row, t);
	emit_prologue(row, t);
	emit_body(row, t, "");
	emit_store(row, t, 0);
	if (!row->no_guard) {
		emit_poison(row, t, 1);
		pt_text_add(t, "\t@!%%m bra L1;\n");
		emit_body(row, t, "");
		pt_text_add(t, "L1:\n");
		emit_store(row, t, 1);
		emit_poison(row, t, 2);
		emit_body(row, t, "@%m ");
		emit_store(row, t, 2);
		emit_poison(row, t, 3);
		emit_body(row, t, "@!%m ");
		emit_store(row, t, 3);
	}
	unsigned k;
	uint64_t value;
	if (immediate_of(row, &k, &value)) {
		struct pt_text literal = { 0 };
		char old[8];
		emit_literal(&literal, row->in[k], value);
		snprintf(old, sizeof old, "%%%s", in_names[k]);
		pt_text_add(t, "\t");
		emit_replaced(t, row->body, old, literal.p);
		emit_store(row, t, IMMEDIATE);
		pt_text_free(&literal);
	}
	if (in_place(row)) {
		pt_text_add(t, "\t@%%m ");
		emit_replaced(t, row->body, "%d0", "%a");
		pt_text_add(t, "\tst.global.b%u [%%po+%u], %%a;\n", reg_bits(row->out[0]),
			IN_PLACE * 8);
	}
	pt_text_add(t, "\tret;\n}\n");
}

void pt_rows_text(struct pt_suite *s, struct pt_row *const *rows, size_t n, struct pt_text *ret)
{
	(void)s;
	pt_text_add(ret, "%s", PT_HEADER);
	for (size_t i = 0; i < n; i++)
		emit_row(rows[i], ret, i);
}

struct operands {
	size_t n;
	uint64_t *in; /* n * row->n_in */
	uint32_t *masks;
};

/*
 * One packed or scalar 16-bit operand: all values. Two or three operands: all tuples of edge
 * values, then random ones.
 */
static void make_operands(struct pt_suite *s, const struct pt_row *row, struct operands *o)
{
	struct pt_rng rng = { s->options.seed };
	for (const char *p = row->name; *p; p++)
		rng.state = rng.state * 31 + (unsigned char)*p;
	bool all = row->n_in == 1 && reg_bits(row->in[0]) == 16;
	o->n = all ? EXHAUSTIVE + 5 : TUPLES;
	o->in = pt_alloc(o->n * (row->n_in ? row->n_in : 1) * sizeof *o->in);
	o->masks = pt_alloc((o->n / 32 + 1) * sizeof *o->masks);
	const uint64_t *edges[PT_MAX_OPERANDS];
	size_t n_edges[PT_MAX_OPERANDS], tuples = 1;
	for (unsigned k = 0; k < row->n_in; k++) {
		edges[k] = pt_edges(row->in[k], row->domain[k], row->n_in > 2, &n_edges[k]);
		tuples *= n_edges[k];
	}
	for (size_t i = 0; i < o->n; i++) {
		uint64_t *in = o->in + i * row->n_in;
		size_t rest = i;
		for (unsigned k = 0; k < row->n_in; k++) {
			in[k] = i < tuples ? edges[k][rest % n_edges[k]]
				: all
				? i & 0xffff
				: pt_value(&rng, row->in[k], row->domain[k], k ? in[k - 1] : 0);
			rest /= n_edges[k];
		}
		if (all && i < EXHAUSTIVE)
			in[0] = i;
		/* random upper bits: the device must ignore those beyond a narrow operand */
		for (unsigned k = 0; k < row->n_in; k++) {
			if (pt_type_bits(row->in[k]) == 8 && !all)
				in[k] |= (pt_rng_next(&rng) & 0xff) << 8;
		}
	}
	static const uint32_t shapes[] = { 0, UINT32_MAX, 1, 0x80000000u, 0xfffffffeu, 0x0000ffffu,
		0x55555555u };
	for (size_t w = 0; w <= o->n / 32; w++)
		o->masks[w] = w < sizeof shapes / sizeof shapes[0] ? shapes[w]
								   : (uint32_t)pt_rng_next(&rng);
}

static bool is_nan_of(enum pt_type t, uint64_t bits)
{
	const struct pt_float_format *f = pt_type_format(t);
	return f && pt_num_unpack(f, bits & pt_mask((unsigned)f->width)).kind == PT_NAN;
}

static bool same_bits(const struct pt_row *row, enum pt_type t, uint64_t got, uint64_t want)
{
	uint64_t care = row->care ? row->care : UINT64_MAX;
	if (((got ^ want) & care) == 0)
		return true;
	if (row->strict_nan || !pt_type_format(t))
		return false;
	unsigned bits = pt_type_bits(t), lanes = pt_type_lanes(t), each = bits / lanes;
	for (unsigned l = 0; l < lanes; l++) {
		uint64_t g = (got >> (l * each)) & pt_mask(each),
			 w = (want >> (l * each)) & pt_mask(each);
		if (((g ^ w) & care) && !(is_nan_of(t, g) && is_nan_of(t, w)))
			return false;
	}
	return true;
}

/* Of a packed result each element may be either of the two correct ones. */
static bool is_either(
	const struct pt_row *row, enum pt_type t, uint64_t got, uint64_t want, uint64_t alt)
{
	unsigned lanes = pt_type_lanes(t), each = pt_type_bits(t) / lanes;
	for (unsigned l = 0; l < lanes; l++) {
		uint64_t m = pt_mask(each) << (l * each), one = (want & ~m) | (got & m),
			 other = (alt & ~m) | (got & m);
		if (!same_bits(row, t, one, want) && !same_bits(row, t, other, alt))
			return false;
	}
	return true;
}

static bool close_enough(const struct pt_row *row, enum pt_type t, uint64_t got, double want)
{
	double g = pt_num_double(pt_num_unpack(pt_type_format(t), got));
	if (isnan(want) || isnan(g))
		return isnan(want) && isnan(g);
	if (isinf(want) || isinf(g)) {
		/* close to the largest finite number, the tolerance includes infinity */
		double top =
			pt_num_double(pt_num_unpack(pt_type_format(t), pt_type_format(t)->inf - 1));
		return g == want ||
			(fabs(want) >= top * (1 - row->rel) && fabs(g) >= top * (1 - row->rel) &&
				(g > 0) == (want > 0));
	}
	return fabs(g - want) <= row->rel * fabs(want) + row->abs;
}

static bool right(const struct pt_row *row, const struct pt_want *want, unsigned k, uint64_t got)
{
	enum pt_type t = row->out[k];
	if (want->open)
		return true;
	if (row->rel != 0 || row->abs != 0) {
		if (pt_type_lanes(t) == 1)
			return close_enough(row, t, got, want->real[k]);
		enum pt_type half = t == PT_F16X2 ? PT_F16 : PT_BF16;
		return close_enough(row, half, got & 0xffff, want->real[0]) &&
			close_enough(row, half, got >> 16, want->real[1]);
	}
	return same_bits(row, t, got, want->out[k]) ||
		(want->has_alt && is_either(row, t, got, want->out[k], want->alt[k]));
}

/* The value of result k in a lane that does not execute variant v. */
static uint64_t idle_value(const struct pt_row *row, const uint64_t *in, unsigned v, unsigned k)
{
	return v == IN_PLACE ? in[0] & pt_mask(reg_bits(row->in[0])) : poison_of(row->out[k], v);
}

static char *describe(const struct pt_row *row, const uint64_t *in, const struct pt_want *want,
	bool active, unsigned variant, unsigned k, uint64_t got, size_t index, size_t failures)
{
	struct pt_text t = { 0 };
	unsigned replaced;
	uint64_t value;
	for (unsigned i = 0; i < row->n_in; i++)
		pt_text_add(&t, "%s%s=0x%" PRIx64, i ? " " : "", in_names[i], in[i]);
	if (variant == IMMEDIATE && immediate_of(row, &replaced, &value))
		pt_text_add(&t, " but %s=0x%" PRIx64, in_names[replaced], value);
	if (row->n_out > 1)
		pt_text_add(&t, " d%u", k);
	if (!active)
		pt_text_add(&t, " inactive lane: expected 0x%" PRIx64 " untouched",
			idle_value(row, in, variant, k));
	else if (row->rel != 0 || row->abs != 0)
		pt_text_add(&t, " expected about %.9g", want->real[k]);
	else
		pt_text_add(&t, " expected 0x%" PRIx64, want->out[k]);
	if (active && want->has_alt)
		pt_text_add(&t, " or 0x%" PRIx64, want->alt[k]);
	pt_text_add(&t, " got 0x%" PRIx64 " (%s, tuple %zu", got, variant_names[variant], index);
	pt_text_add(&t, ", %zu wrong results in this row)", failures);
	return t.p;
}

/* The expected results of variant v for one tuple. */
static void reference(
	const struct pt_row *row, const uint64_t *in, unsigned v, struct pt_want *want)
{
	uint64_t x[PT_MAX_OPERANDS] = { 0 }, value;
	unsigned k;
	memcpy(x, in, row->n_in * sizeof *x);
	if (v == IMMEDIATE && immediate_of(row, &k, &value))
		x[k] = value;
	*want = (struct pt_want){ .has_alt = false };
	row->ref(row, x, want);
}

struct finding {
	size_t failures, index;
	unsigned variant, k;
};

static void judge_tuple(const struct pt_row *row, const struct operands *o, const uint64_t *out,
	size_t i, struct finding *found)
{
	const uint64_t *in = o->in + i * row->n_in;
	struct pt_want want, immediate;
	bool m = (o->masks[i / 32] >> (i % 32)) & 1;
	reference(row, in, FULL, &want);
	for (unsigned v = 0; v < VARIANTS; v++) {
		if (!has_variant(row, v))
			continue;
		if (v == IMMEDIATE)
			reference(row, in, v, &immediate);
		for (unsigned k = 0; k < row->n_out; k++) {
			uint64_t got = out[(i * VARIANTS + v) * row->n_out + k];
			unsigned bits = reg_bits(row->out[k]);
			/* the bytes above the result must still have the buffer's fill value */
			bool fill = bits == 64 || got >> bits == pt_mask(64) / 255 * 0xa5 >> bits;
			uint64_t value = got & pt_mask(bits);
			if (fill &&
				(is_active(v, m) ? right(row, v == IMMEDIATE ? &immediate : &want,
							   k, value)
						 : value == idle_value(row, in, v, k)))
				continue;
			if (found->failures++ == 0) {
				found->index = i;
				found->variant = v;
				found->k = k;
			}
		}
	}
}

/* Returns a message about the first wrong result, or NULL. */
static char *judge(const struct pt_row *row, const struct operands *o, const uint64_t *out)
{
	struct finding found = { 0 };
	for (size_t i = 0; i < o->n; i++)
		judge_tuple(row, o, out, i, &found);
	if (!found.failures)
		return NULL;
	struct pt_want want;
	const uint64_t *in = o->in + found.index * row->n_in;
	reference(row, in, found.variant, &want);
	bool m = (o->masks[found.index / 32] >> (found.index % 32)) & 1;
	uint64_t got = out[(found.index * VARIANTS + found.variant) * row->n_out + found.k];
	return describe(row, in, &want, is_active(found.variant, m), found.variant, found.k,
		got & pt_mask(reg_bits(row->out[found.k])), found.index, found.failures);
}

static CUresult execute(struct pt_driver *d, CUmodule module, size_t index,
	const struct pt_row *row, const struct operands *o, uint64_t *out, size_t out_size)
{
	CUdeviceptr pin = 0, pout = 0, pmask = 0;
	unsigned n = (unsigned)o->n;
	size_t in_size = o->n * row->n_in * sizeof *o->in,
	       mask_size = (o->n / 32 + 1) * sizeof *o->masks;
	CUfunction f;
	char name[32];
	snprintf(name, sizeof name, "k%zu", index);
	CUresult r = d->module_function(&f, module, name);
	if (!r)
		r = d->mem_alloc(&pin, in_size ? in_size : 8);
	if (!r)
		r = d->mem_alloc(&pout, out_size);
	if (!r)
		r = d->mem_alloc(&pmask, mask_size);
	if (!r && in_size)
		r = d->copy_to(pin, o->in, in_size);
	if (!r)
		r = d->copy_to(pmask, o->masks, mask_size);
	if (!r)
		r = d->mem_set8(pout, 0xa5, out_size);
	void *params[] = { &pin, &pout, &pmask, &n };
	if (!r)
		r = d->launch(f, (n + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, params, NULL);
	if (!r)
		r = d->ctx_sync();
	if (!r)
		r = d->copy_from(out, pout, out_size);
	if (pin)
		d->mem_free(pin);
	if (pout)
		d->mem_free(pout);
	if (pmask)
		d->mem_free(pmask);
	return r;
}

/* Returns false if the context has failed. */
static bool run_row(struct pt_suite *s, CUmodule module, size_t index, const struct pt_row *row)
{
	struct operands o;
	make_operands(s, row, &o);
	size_t out_size = o.n * VARIANTS * row->n_out * sizeof(uint64_t);
	uint64_t *out = pt_alloc(out_size);
	alarm(KERNEL_TIMEOUT_S);
	CUresult r = execute(&s->driver, module, index, row, &o, out, out_size);
	alarm(0);
	char *message = r ? pt_format("CUDA error %d", (int)r) : judge(row, &o, out);
	pt_result(s, row->name, message);
	free(message);
	free(out);
	free(o.in);
	free(o.masks);
	return r == CUDA_SUCCESS;
}

/* Splits a module that does not load, so that only the row with an unknown opcode fails. */
static void run_batch(struct pt_suite *s, struct pt_row *const *rows, size_t n)
{
	struct pt_text text = { 0 };
	pt_rows_text(s, rows, n, &text);
	CUmodule module;
	CUresult r = pt_driver_load(&s->driver, text.p, &module);
	pt_text_free(&text);
	if (r && n > 1) {
		run_batch(s, rows, n / 2);
		run_batch(s, rows + n / 2, n - n / 2);
		return;
	}
	if (r) {
		char *message =
			pt_format("module does not load, CUDA error %d: %s", (int)r, s->driver.log);
		pt_result(s, rows[0]->name, message);
		free(message);
		return;
	}
	size_t done = 0;
	bool alive = true;
	while (alive && done < n) {
		alive = run_row(s, module, done, rows[done]);
		done++;
	}
	if (alive) {
		s->driver.module_unload(module);
	} else {
		pt_driver_reset(&s->driver);
		if (done < n)
			run_batch(s, rows + done, n - done);
	}
}

void pt_rows_run(struct pt_suite *s)
{
	struct pt_row *batch[PT_MODULE_ROWS];
	size_t n = 0;
	for (size_t i = 0; i < s->n_rows; i++) {
		if (pt_selected(s, s->rows[i]->group, s->rows[i]->name))
			batch[n++] = s->rows[i];
		if (n == PT_MODULE_ROWS || (n && i + 1 == s->n_rows)) {
			run_batch(s, batch, n);
			n = 0;
		}
	}
}
