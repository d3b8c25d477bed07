/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "softdevice/core/engine/exec.h"
#include "softdevice/core/native/code_memory.h"
#include "softdevice/core/native/unit.h"

/* larger functions stay with the interpreter */
#define MAX_INSTRUCTIONS 100000u
#define MAX_SLOTS        16000u
#define REFUSALS         32u /* of entries, before the code is made again */
#define MAX_MADE         8u  /* how often code is made for a function, of one kind */

/* ---- one function ---- */

static void jump_to(struct obn_unit *u, uint32_t block)
{
	if (u->n_jumps == u->cap_jumps) {
		uint32_t cap = u->cap_jumps ? u->cap_jumps * 2 : 64;
		struct obn_jump *p = realloc(u->jumps, cap * sizeof(*p));

		if (!p) {
			u->failed = true;
			return;
		}
		u->jumps = p;
		u->cap_jumps = cap;
	}
	u->jumps[u->n_jumps++] = (struct obn_jump){ x_jump(&u->x, -1), block };
}

static void write_branch(struct obn_unit *u, uint32_t i)
{
	const struct obd_insn *in = &u->f->code[i];
	const struct obn_block *b = u->block;
	struct x_buf *x = &u->x;
	uint32_t fall = 0, target = i + in->u.imm;
	bool conditional = in->op == OBD_OP_bra_p;

	obn_block_end(u);
	obn_step(u);
	u->at = i;
	obn_count(u, b->last);
	if (conditional) {
		int p = obn_pred_get(u, in->a);

		/* no lane takes the branch */
		if (in->e)
			x_alu_imm(x, X_CMP, false, p, -1);
		else
			x_test(x, false, p, p);
		fall = x_jump(x, CC_E);
		if (!obn_pred_same(u, in->a)) {
			if (in->e)
				x_test(x, false, p, p);
			else
				x_alu_imm(x, X_CMP, false, p, -1);
			obn_exit(u, CC_NE, i);
		}
	}
	if (target <= i) {
		x_mem_imm(x, X_CMP, true, OBN_WARP(budget), 0);
		obn_exit(u, CC_LE, i);
		x_mem_imm(x, X_SUB, true, OBN_WARP(budget), 1);
	}
	if (b->next[1] == OBN_NONE)
		u->failed = true;
	else
		jump_to(u, b->next[1]);
	if (conditional)
		x_here(x, fall);
}

/* One instruction, or several that belong together. Returns how many. */
static uint32_t write_instruction(struct obn_unit *u, uint32_t i)
{
	const struct obd_insn *in = &u->f->code[i];
	uint32_t shape = u->f->shapes[i];
	const struct obn_op *o = obn_op_info(in->op);
	bool check = false, done = false;
	int32_t form = OBN_VARIES;

	if (OBD_SHAPE_FLAGS(shape) & OBD_DEF_D &&
		OBD_SHAPE_CLASS(shape, OBD_SHAPE_D) != OBD_CLASS_PRED)
		form = obn_result(u, i, &check);
	switch (o->special) {
	case OBN_PREFIX:
		if (in->op == OBD_OP_guard && in[1].op != OBD_OP_round && obn_guarded_vector(u, i))
			return 2;
		break;
	case OBN_COMPARE:
		done = obn_compare(u, i);
		break;
	case OBN_PREDICATE:
		done = obn_predicate(u, i);
		break;
	case OBN_LOAD:
	case OBN_STORE:
		done = obn_access(u, i, form);
		break;
	case OBN_VALUE:
		done = obn_value(u, i, form);
		break;
	default:
		if (form != OBN_VARIES) {
			done = obn_scalar(u, i, form, check);
			if (!done) { /* the same in all lanes: one chunk is enough */
				int v = obn_vector_new(u), d = obn_scalar_new(u);

				obn_vector_chunk(u, i, 0, v);
				x_v(&u->x, V(1, P66, (uint32_t)u->wide[in->d], 0x7eu),
					(struct x_how){ .len = 0, .imm = -1 }, v, 0, d);
				obn_scalar_set(u, in->d, d, 0);
				done = true;
			}
		} else if (o->bytes[0]) {
			done = obn_vector(u, i);
		}
		break;
	}
	return done ? 1 : obn_handler(u, i);
}

static void write_block(struct obn_unit *u, struct obn_block *b)
{
	obn_block_begin(u, b);
	b->code = u->x.n;
	for (uint32_t i = b->first; i < b->last && !obn_failed(u);) {
		uint32_t op = u->f->code[i].op;

		obn_step(u);
		u->at = i;
		if (op == OBD_OP_bra || op == OBD_OP_bra_p) {
			write_branch(u, i);
			return;
		}
		if (obn_leaves(op)) {
			obn_exit(u, -1, i);
			return;
		}
		if (op == OBD_OP_nop)
			i++;
		else
			i += write_instruction(u, i);
	}
	obn_block_end(u);
	obn_count(u, b->last);
}

static void write_all(struct obn_unit *u)
{
	obn_write_leave(u);
	for (uint32_t k = 0; k < u->n_blocks && !obn_failed(u); k++)
		if (u->blocks[k].seen)
			write_block(u, &u->blocks[k]);
	obn_write_exits(u);
	for (uint32_t k = 0; k < u->n_jumps; k++)
		x_to(&u->x, u->jumps[k].at, u->blocks[u->jumps[k].block].code);
}

static bool allocate(struct obn_unit *u)
{
	uint32_t n = u->f->n_slots + 4;

	u->x.wide = strcmp(u->isa->name, "avx512") == 0;
	u->chunk_bytes = u->x.wide ? 64 : 32;
	u->chunks = OBD_SLOT_BYTES / u->chunk_bytes;
	u->n_vectors = u->x.wide ? 29 : 13;
	u->nan = (int)u->n_vectors;
	u->t0 = u->nan + 1;
	u->t1 = u->nan + 2;
	u->last_use = calloc(n, sizeof(*u->last_use));
	u->in_memory = calloc(n, 1);
	u->listed = calloc(n, 1);
	u->linear = calloc(n, sizeof(*u->linear));
	u->where = malloc((size_t)n * (u->chunks + 1) * sizeof(*u->where));
	u->number = calloc(u->f->n_code + 1, sizeof(*u->number));
	if (!u->last_use || !u->in_memory || !u->listed || !u->linear || !u->where || !u->number)
		return false;
	for (uint32_t i = 0; i < u->f->n_code; i++)
		u->number[i + 1] =
			u->number[i] + (obn_op_info(u->f->code[i].op)->special != OBN_PREFIX);
	for (int i = 0; i < 32; i++)
		u->vec[i].key = OBN_NONE;
	memset(u->where, 0xff, (size_t)n * (u->chunks + 1) * sizeof(*u->where));
	return true;
}

static void unit_free(struct obn_unit *u)
{
	x_free(&u->x);
	free(u->blocks);
	free(u->block_at);
	free(u->live_in);
	free(u->live_out);
	free(u->entry);
	free(u->const_at);
	free(u->fixed);
	free(u->wide);
	free(u->state);
	free(u->last_use);
	free(u->in_memory);
	free(u->linear);
	free(u->listed);
	free(u->where);
	free(u->number);
	obn_exits_free(u);
	free(u->jumps);
}

/* What the code assumes where a block begins, for obd_native_refused. */
static bool keep_checks(const struct obn_unit *u, struct obd_native *n)
{
	uint32_t total = 0;

	n->first_check = malloc((u->n_blocks + 1) * sizeof(*n->first_check));
	n->block_at = malloc(u->f->n_code * sizeof(*n->block_at));
	for (int pass = 0; pass < 2; pass++) {
		uint32_t at = 0;

		if (pass)
			n->checks = malloc((total + 1) * sizeof(*n->checks));
		if (!n->first_check || !n->block_at || (pass && !n->checks))
			return false;
		for (uint32_t k = 0; k < u->n_blocks; k++) {
			const int32_t *entry = u->entry + (size_t)k * u->f->n_slots;

			n->first_check[k] = at;
			for (uint32_t s = 0; u->blocks[k].seen && s < u->f->n_slots; s++)
				if (entry[s] != OBN_VARIES && !u->fixed[s]) {
					if (pass)
						n->checks[at] = (struct obd_native_check){ s,
							u->forms[entry[s]].lane,
							u->forms[entry[s]].half, u->wide[s] };
					at++;
				}
		}
		n->first_check[u->n_blocks] = total = at;
	}
	memcpy(n->block_at, u->block_at, u->f->n_code * sizeof(*n->block_at));
	return true;
}

static bool make(struct obn_unit *u, struct obd_native *n)
{
	uint32_t *entries;

	if (u->f->n_code > MAX_INSTRUCTIONS || u->f->n_slots > MAX_SLOTS || !allocate(u) ||
		!obn_flow(u))
		return false;
	write_all(u);
	entries = calloc(u->n_blocks, sizeof(*entries));
	n->entry = calloc(u->f->n_code, sizeof(*n->entry));
	for (uint32_t k = 0; entries && k < u->n_blocks && !obn_failed(u); k++)
		if (u->blocks[k].seen) {
			entries[k] = u->x.n;
			obn_write_entry(u, &u->blocks[k]);
		}
	x_finish(&u->x);
	if (entries && n->entry && !obn_failed(u) && keep_checks(u, n)) {
		n->size = u->x.n;
		n->code = obd_code_memory_add(u->x.p, n->size);
	}
	for (uint32_t k = 0; n->code && k < u->n_blocks; k++)
		if (u->blocks[k].seen) {
			char *at = (char *)n->code + entries[k];

			memcpy(&n->entry[u->blocks[k].first], &at, sizeof(at));
		}
	free(entries);
	return n->code != NULL;
}

static void native_free(struct obd_native *n)
{
	if (n->code)
		obd_code_memory_remove(n->code, n->size);
	free(n->entry);
	free(n->checks);
	free(n->first_check);
	free(n->block_at);
	free(n);
}

/* Makes the code of f, which has none or is replaced. The lock is held. */
static void make_code(struct obd_func *f, enum obd_native_kind kind)
{
	struct obd_native *old = atomic_load_explicit(&f->native[kind], memory_order_relaxed);
	struct obd_native *n = calloc(1, sizeof(*n));
	struct obn_unit u = { .f = f, .isa = obd_isa_current, .kind = kind };

	if (!n)
		return;
	if (!f->varies)
		f->varies = calloc(f->n_slots + 4, 1);
	u.varies = f->varies;
	n->before = old;
	n->made = old ? old->made + 1 : 1;
	if (!f->varies || !make(&u, n)) {
		free(n->entry);
		n->entry = NULL; /* the interpreter runs it */
	}
	unit_free(&u);
	atomic_store_explicit(&f->native[kind], n, memory_order_release);
}

/* ---- functions of a launch ---- */

bool obd_native_on = true;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool has_code(const struct obd_func *f)
{
	return f->defined && !f->builtin && !f->refused && f->n_code;
}

static void make_reachable(struct obd_program *p, struct obd_func *first, enum obd_native_kind kind)
{
	uint32_t *list = malloc(p->n_funcs * sizeof(*list)), n = 0;
	uint8_t *seen = calloc(p->n_funcs, 1);

	if (list && seen) {
		list[n++] = first->index;
		seen[first->index] = 1;
	}
	for (uint32_t k = 0; k < n; k++) {
		struct obd_func *f = p->funcs[list[k]];

		if (has_code(f) && !atomic_load_explicit(&f->native[kind], memory_order_relaxed))
			make_code(f, kind);
		for (uint32_t c = 0; c < f->n_callees; c++)
			if (!seen[f->callees[c]]) {
				seen[f->callees[c]] = 1;
				list[n++] = f->callees[c];
			}
		for (uint32_t c = 0; f->calls_indirect && c < p->n_funcs; c++)
			if (p->funcs[c]->address_taken && !seen[c]) {
				seen[c] = 1;
				list[n++] = c;
			}
	}
	free(list);
	free(seen);
}

void obd_native_prepare(struct obd_launch *l)
{
	const uint32_t *block = l->grid->block;
	enum obd_native_kind kind = block[0] % OBD_LANES == 0 ? OBD_NATIVE_ROWS
		: block[0] == OBN_HALF && block[1] % 2 == 0   ? OBD_NATIVE_HALVES
							      : OBD_NATIVE_OTHER;
	struct obd_func *f = l->entry->func;

	l->native = OBD_NATIVE_NONE;
	if (!obd_native_on || !obd_code_memory_ready() || !obd_isa_current->native ||
		l->program->env.check)
		return;
	l->native = (uint8_t)kind;
	if (atomic_load_explicit(&f->native[kind], memory_order_acquire))
		return;
	pthread_mutex_lock(&lock);
	if (!atomic_load_explicit(&f->native[kind], memory_order_relaxed))
		make_reachable(l->program, f, kind);
	pthread_mutex_unlock(&lock);
}

/* Marks the slots at instruction `in` that are not linear. */
static void blame(struct obd_func *f, const struct obd_native *n, uint32_t i, const char *regs)
{
	uint32_t block = n->block_at[i];

	for (uint32_t k = n->first_check[block]; k < n->first_check[block + 1]; k++) {
		const struct obd_native_check *c = &n->checks[k];
		const char *reg = regs + (size_t)c->slot * OBD_SLOT_BYTES;
		const uint32_t *s = (const uint32_t *)(const void *)reg;
		const uint64_t *g = (const uint64_t *)(const void *)reg;

		for (int lane = 1; lane < (int)OBD_LANES; lane++) {
			int64_t by = (int64_t)c->lane * (lane % OBN_HALF) +
				(int64_t)c->half * (lane / OBN_HALF);

			if (c->wide ? g[lane] != g[0] + (uint64_t)by
				    : s[lane] != s[0] + (uint32_t)by)
				f->varies[c->slot] = 1;
		}
	}
}

void obd_native_refused(
	struct obd_func *f, enum obd_native_kind kind, const struct obd_insn *in, const char *regs)
{
	struct obd_native *n = atomic_load_explicit(&f->native[kind], memory_order_acquire);

	if (atomic_fetch_add_explicit(&n->refused, 1, memory_order_relaxed) + 1 != REFUSALS ||
		n->made >= MAX_MADE || !n->entry)
		return;
	pthread_mutex_lock(&lock);
	if (atomic_load_explicit(&f->native[kind], memory_order_relaxed) == n) {
		blame(f, n, (uint32_t)(in - f->code), regs);
		make_code(f, kind);
	}
	pthread_mutex_unlock(&lock);
}

void obd_native_free(struct obd_func *f)
{
	for (int k = 0; k < OBD_NATIVE_KINDS; k++)
		for (struct obd_native *n = atomic_exchange(&f->native[k], NULL), *before; n;
			n = before) {
			before = n->before;
			native_free(n);
		}
	free(f->varies);
	f->varies = NULL;
}
