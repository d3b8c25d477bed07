/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A region is a run of instructions that is entered at its first one only. Inside it an instruction
 * has executed whenever a later one is reached, so the value of a register is known from the last
 * instruction that wrote it.
 */
#include <string.h>

#include "softdevice/core/compile/shorten_inside.h"
#include "softdevice/core/ops.h"

#define N OBD_NONE

/* sums of bases that are looked at for one that exists */
#define RECENT_BASES 16u

#define VECTOR_MAX 8 /* elements */

struct fuse {
	struct obd_shorten *s;
	struct obd_builder *b;
	uint32_t *last;  /* by vreg: the last instruction so far that wrote it, or OBD_NONE */
	uint8_t *entry;  /* by instruction: may be reached by a branch */
	uint32_t region; /* first instruction of the current region */
	uint32_t at;
};

/* The instruction that gave v its present value, if that is known. */
static struct obd_lin *value_of(const struct fuse *f, uint32_t v)
{
	uint32_t i = v == N ? N : f->last[v];

	if (i == N || i < f->region || f->b->code[i].op == OBD_REMOVED ||
		!obd_shorten_is_plain(f->b, i))
		return NULL;
	return &f->b->code[i];
}

/* Has v the value that it had when the instruction l was executed? */
static bool still(const struct fuse *f, const struct obd_lin *l, uint32_t v)
{
	return f->b->vregs[v].is_const || f->last[v] == N ||
		f->last[v] < (uint32_t)(l - f->b->code);
}

static void set_use(struct fuse *f, uint32_t *field, uint32_t v)
{
	if (*field != N)
		f->s->uses[*field]--;
	*field = v;
	if (v != N)
		f->s->uses[v]++;
}

/* The value of a register that is a constant of the program. */
static bool constant(const struct fuse *f, uint32_t v, uint64_t *ret)
{
	if (f->b->vregs[v].is_const != OBD_CONSTANT)
		return false;
	const struct obd_const_ref *c = &f->b->consts[f->s->source[v]];

	if (c->sym)
		return false;
	*ret = c->value;
	return true;
}

/* A move of a value that has just been computed, and that nothing else uses. */
static bool drop_move(struct fuse *f, uint32_t i)
{
	struct obd_lin *l = &f->b->code[i], *from = value_of(f, l->a);

	if ((l->op != OBD_OP_mov_32 && l->op != OBD_OP_mov_64) || l->a_half || !from ||
		from != l - 1 || !obd_shorten_is_plain(f->b, i) || f->s->uses[l->a] != 1 ||
		f->s->defs[l->a] != 1)
		return false;
	if (!obd_shorten_is_pure(from->op) && from->op != OBD_OP_sreg32 &&
		from->op != OBD_OP_sreg64)
		return false;
	uint32_t d = l->d;

	f->s->defs[from->d]--;
	f->s->defs[d]++;
	from->d = d;
	f->last[d] = i - 1;
	obd_shorten_remove(f->s, i);
	return true;
}

static bool is_sreg(const struct obd_lin *l, uint32_t first, uint32_t *ret_axis)
{
	if (!l || l->op != OBD_OP_sreg32 || l->e_raw < first || l->e_raw > first + 2)
		return false;
	*ret_axis = l->e_raw - first;
	return true;
}

/* The instruction of the prologue whose result v is, behind moves; NULL: none. */
static const struct obd_lin *origin(const struct fuse *f, uint32_t v)
{
	const struct obd_lin *l = NULL;

	while (f->b->vregs[v].is_const == OBD_IN_PROLOGUE) {
		l = &f->b->prologue[f->s->source[v]];
		if (l->op != OBD_OP_mov_32)
			break;
		v = l->a;
	}
	return l;
}

/* %ctaid * %ntid + %tid */
static void fuse_index(struct fuse *f, struct obd_lin *l)
{
	uint32_t block, size, thread, cta = l->a, ntid = l->b;

	if (f->b->vregs[cta].is_const) {
		cta = l->b;
		ntid = l->a;
	}
	if (!is_sreg(value_of(f, cta), OBD_SREG_CTAID_X, &block) ||
		!is_sreg(origin(f, ntid), OBD_SREG_NTID_X, &size) ||
		!is_sreg(value_of(f, l->c), OBD_SREG_TID_X, &thread) || block != size ||
		block != thread)
		return;
	set_use(f, &l->a, N);
	set_use(f, &l->b, N);
	set_use(f, &l->c, N);
	l->flags &= (uint16_t) ~(OBD_USE_A | OBD_USE_B | OBD_USE_C);
	l->op = OBD_OP_thread_index;
	l->e_raw = (uint16_t)block;
}

/* The same access at a base and an index; OBD_NO_OP: it has none. Sets *ret_size. */
static uint32_t indexed(uint32_t op, uint32_t *ret_size)
{
	switch (op) {
#define CASE(name, size)          \
	case OBD_OP_##name##_g:   \
		*ret_size = size; \
		return OBD_OP_##name##_i;
		CASE(ld8, 1)
		CASE(ld16, 2)
		CASE(ld32, 4)
		CASE(ld64, 8)
		CASE(st8, 1)
		CASE(st16, 2)
		CASE(st32, 4)
		CASE(st64, 8)
#undef CASE
	default:
		return OBD_NO_OP;
	}
}

/* The sum of two invariant values, in the prologue; OBD_NONE: there is no room for it. */
static uint32_t joined_base(struct fuse *f, uint32_t x, uint32_t y)
{
	struct obd_builder *b = f->b;
	struct obd_lin l = { .op = OBD_OP_add_u64,
		.flags = OBD_DEF_D | OBD_USE_A | OBD_USE_B,
		.d = N,
		.a = x,
		.b = y,
		.c = N,
		.e = N,
		.f = N,
		.g = N,
		.line = b->line };

	for (uint32_t i = b->n_prologue; i-- > 0 && b->n_prologue - i <= RECENT_BASES;)
		if (b->prologue[i].op == l.op && b->prologue[i].a == x && b->prologue[i].b == y)
			return b->prologue[i].d;
	if (b->n_vregs >= f->s->capacity || b->n_vregs >= OBD_MAX_REGISTERS)
		return N;
	l.d = obd_vreg_new(b, OBD_CLASS_64);
	return obd_shorten_prologue(f->s, &l) ? l.d : N;
}

/* base + index * size, where the base is invariant: the parts are put in the operands. */
static bool split(struct fuse *f, uint32_t address, uint32_t size, uint32_t *ret_base,
	uint32_t *ret_index, bool *ret_signed)
{
	const struct obd_lin *sum = value_of(f, address), *product = NULL;
	uint32_t base[2] = { N, N };
	uint64_t factor = 0;

	for (int i = 0; i < 2 && sum && sum->op == OBD_OP_add_u64; i++) {
		bool first = f->b->vregs[sum->a].is_const;

		base[i] = first ? sum->a : sum->b;
		product = value_of(f, first ? sum->b : sum->a);
		if (!f->b->vregs[base[i]].is_const || !product || product > sum)
			return false;
		sum = product;
	}
	if (!product)
		return false;
	if (product->op == OBD_OP_sext32_64 || product->op == OBD_OP_zext32_64) {
		factor = 1;
		*ret_index = product->a;
		*ret_signed = product->op == OBD_OP_sext32_64;
	} else if (product->op == OBD_OP_mulw_s32 || product->op == OBD_OP_mulw_u32) {
		bool first = constant(f, product->a, &factor);

		if (!first && !constant(f, product->b, &factor))
			return false;
		*ret_index = first ? product->b : product->a;
		*ret_signed = product->op == OBD_OP_mulw_s32;
	}
	if (factor != size || f->b->vregs[*ret_index].is_const || !still(f, product, *ret_index))
		return false;
	*ret_base = base[1] == N ? base[0] : joined_base(f, base[0], base[1]);
	return *ret_base != N;
}

/* Is the access a later element of a vector? The first has the alignment of the whole vector. */
static bool is_in_vector(const struct fuse *f, const struct obd_lin *l, uint32_t size)
{
	for (const struct obd_lin *x = l; x-- > f->b->code && l - x < VECTOR_MAX;) {
		if (x->op != l->op || x->a != l->a || x->imm != l->imm - size * (uint32_t)(l - x))
			return false;
		if (x->e_raw >= size)
			return true;
	}
	return false;
}

static void fuse_access(struct fuse *f, struct obd_lin *l)
{
	uint32_t size = 0, op = indexed(l->op, &size), base, index;
	bool is_signed;

	/* a vector access is lowered to several, and the handler of the first one does all */
	if (op == OBD_NO_OP || l->d_half || l->e_raw >= size || is_in_vector(f, l, size) ||
		!split(f, l->a, size, &base, &index, &is_signed))
		return;
	l->op = (uint16_t)op;
	set_use(f, &l->a, index);
	set_use(f, &l->c, base);
	l->flags |= OBD_USE_C;
	l->e_raw |= is_signed ? OBD_INDEX_SIGNED : 0;
}

/* A product that is only added to something. */
static void fuse_product(struct fuse *f, struct obd_lin *l)
{
	bool second = value_of(f, l->b) != NULL && f->s->uses[l->b] == 1;
	uint32_t v = second ? l->b : l->a, other = second ? l->a : l->b;
	struct obd_lin *product = value_of(f, v);

	if (!product || f->s->uses[v] != 1 || v == other ||
		(product->op != OBD_OP_mulw_s32 && product->op != OBD_OP_mulw_u32) ||
		!still(f, product, product->a) || !still(f, product, product->b))
		return;
	l->op = product->op == OBD_OP_mulw_s32 ? OBD_OP_madw_s32 : OBD_OP_madw_u32;
	set_use(f, &l->c, other);
	set_use(f, &l->a, product->a);
	set_use(f, &l->b, product->b);
	l->flags |= OBD_USE_C;
	obd_shorten_remove(f->s, (uint32_t)(product - f->b->code));
}

static uint32_t combined(uint32_t compare, bool is_or)
{
	switch (compare) {
#define CASE(name)          \
	case OBD_OP_##name: \
		return is_or ? OBD_OP_##name##_or : OBD_OP_##name##_and;
		CASE(eq_32)
		CASE(lt_u32)
		CASE(le_u32)
		CASE(lt_s32)
		CASE(le_s32)
#undef CASE
	default:
		return OBD_NO_OP;
	}
}

/* A comparison whose result is only combined with another predicate. */
static void fuse_compare(struct fuse *f, uint32_t i)
{
	struct obd_lin *l = &f->b->code[i], *compare = NULL;
	uint32_t other = N, op = OBD_NO_OP;

	for (int k = 0; k < 2 && op == OBD_NO_OP; k++) {
		uint32_t v = k ? l->a : l->b;

		compare = value_of(f, v);
		other = k ? l->b : l->a;
		if (compare && f->s->uses[v] == 1 && v != other)
			op = combined(compare->op, l->op == OBD_OP_por);
	}
	if (op == OBD_NO_OP || !obd_shorten_is_plain(f->b, i) || !still(f, compare, compare->a) ||
		!still(f, compare, compare->b))
		return;
	l->op = (uint16_t)op;
	l->e_raw = compare->e_raw;
	set_use(f, &l->c, other);
	set_use(f, &l->a, compare->a);
	set_use(f, &l->b, compare->b);
	l->flags |= OBD_USE_C;
	obd_shorten_remove(f->s, (uint32_t)(compare - f->b->code));
}

static void note(void *arg, uint32_t v, bool is_def)
{
	struct fuse *f = arg;

	if (is_def)
		f->last[v] = f->at;
}

static void join(struct fuse *f, uint32_t i, bool products)
{
	struct obd_lin *l = &f->b->code[i];

	if (products && l->op == OBD_OP_add_u64)
		fuse_product(f, l);
	else if (!products && l->op == OBD_OP_mad_u32)
		fuse_index(f, l);
	else if (!products && (l->op == OBD_OP_por || l->op == OBD_OP_pand))
		fuse_compare(f, i);
	else if (!products && !drop_move(f, i))
		fuse_access(f, l);
}

static void walk(struct fuse *f, bool products)
{
	memset(f->last, 0xff, f->s->capacity * sizeof(uint32_t));
	f->region = 0;
	for (f->at = 0; f->at < f->b->n_code; f->at++) {
		struct obd_lin *l = &f->b->code[f->at];

		if (f->entry[f->at])
			f->region = f->at;
		if (l->op == OBD_REMOVED)
			continue;
		join(f, f->at, products);
		obd_shorten_visit(f->b, l, note, f);
	}
}

static void drop_unused(struct obd_shorten *s)
{
	for (uint32_t i = s->b->n_code; i-- > 0;) {
		const struct obd_lin *l = &s->b->code[i];

		if ((obd_shorten_is_pure(l->op) || l->op == OBD_OP_sreg32 ||
			    l->op == OBD_OP_sreg64) &&
			obd_shorten_is_plain(s->b, i) && !s->uses[l->d])
			obd_shorten_remove(s, i);
	}
}

void obd_shorten_fuse(struct obd_shorten *s)
{
	struct obd_builder *b = s->b;
	struct fuse f = { .s = s, .b = b };

	f.last = obd_build_work(b, s->capacity, sizeof(uint32_t));
	f.entry = obd_build_work(b, b->n_code + 1, 1);
	if (f.last && f.entry) {
		for (uint32_t i = 0; i < b->labels.n; i++)
			if (b->labels.at[i] <= b->n_code)
				f.entry[b->labels.at[i]] = 1;
		walk(&f, false);
		drop_unused(s);
		walk(&f, true);
	}
}
