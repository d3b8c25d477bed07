/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Assigns slots to virtual registers: liveness over basic blocks, then a linear scan. Lanes that
 * have diverged write only their own elements of a slot, so the liveness of a single thread is
 * sufficient. The live interval of a register is one range without holes.
 *
 * Only registers that are live across blocks have a bit in the sets of the blocks. If a function's
 * sets would be too large, or its data-flow equations do not converge, each register gets its own
 * slot.
 */
#include "softdevice/core/compile/regalloc.h"

#include <stdlib.h>
#include <string.h>

#include "softdevice/core/heap.h"

#define MAX_SET_WORDS ((uint64_t)32 << 20)
#define MAX_PASSES    64u

struct block {
	uint32_t first, last; /* range of instructions; `last` is exclusive */
	uint32_t next[2];
	uint32_t table; /* brx: index of the table, else OBD_NONE */
};

struct state {
	struct obd_builder *b;
	struct block *blocks;
	uint32_t n_blocks;
	uint32_t *block_of; /* by instruction number */
	uint32_t *global;   /* by vreg: bit number, or OBD_NONE */
	uint32_t n_global, words;
	uint64_t *in, *kill;  /* per block; `in` is initialised with the gen set */
	uint32_t *from, *to;  /* by vreg */
	uint32_t *last_block; /* by vreg: block of the last definition found so far */
};

typedef void (*visit_fn)(struct state *s, uint32_t vreg, bool is_def, bool partial, uint32_t at);

/* Calls fn for the registers that an instruction uses, then for those that it defines. */
static void visit(struct state *s, uint32_t i, visit_fn fn)
{
	struct obd_builder *b = s->b;
	const struct obd_lin *l = &b->code[i];
	bool partial = l->flags & OBD_PARTIAL;

	if (l->flags & OBD_USE_A)
		fn(s, l->a, false, false, i);
	if (l->flags & OBD_USE_B)
		fn(s, l->b, false, false, i);
	if (l->flags & OBD_USE_C)
		fn(s, l->c, false, false, i);
	if (l->flags & OBD_USE_D)
		fn(s, l->d, false, false, i);
	if (l->flags & OBD_USE_E)
		fn(s, l->e, false, false, i);
	if (l->flags & OBD_USE_F)
		fn(s, l->f, false, false, i);
	if (l->flags & OBD_CALL) {
		const uint32_t *c = b->calls + l->imm;

		for (uint32_t k = 0; k < c[0]; k++)
			fn(s, c[2 + k], false, false, i);
		for (uint32_t k = 0; k < c[1]; k++)
			fn(s, c[2 + c[0] + k], true, partial, i);
	}
	if (l->flags & OBD_DEF_D)
		fn(s, l->d, true, partial || l->d_half, i);
	if (l->flags & OBD_DEF_G)
		fn(s, l->g, true, partial, i);
}

static bool tracked(const struct obd_builder *b, uint32_t v)
{
	return !b->vregs[v].is_const && !b->vregs[v].fixed;
}

/* Pass 1: finds the registers that a block uses before it defines them. */
static void find_global(struct state *s, uint32_t v, bool is_def, bool partial, uint32_t at)
{
	uint32_t blk = s->block_of[at];

	if (!tracked(s->b, v))
		return;
	if (is_def && !partial) {
		s->last_block[v] = blk;
		return;
	}
	if (s->last_block[v] != blk && s->global[v] == OBD_NONE)
		s->global[v] = s->n_global++;
}

/* Pass 2: computes the gen and kill sets. */
static void fill_sets(struct state *s, uint32_t v, bool is_def, bool partial, uint32_t at)
{
	uint32_t blk = s->block_of[at], g = s->global[v];

	if (g == OBD_NONE)
		return;
	uint64_t bit = 1ull << (g % 64), *kill = &s->kill[(size_t)blk * s->words + g / 64],
		 *in = &s->in[(size_t)blk * s->words + g / 64];

	if (is_def && !partial)
		*kill |= bit;
	else if (!(*kill & bit))
		*in |= bit;
}

static void touch(struct state *s, uint32_t v, uint32_t at)
{
	if (at < s->from[v])
		s->from[v] = at;
	if (at + 1 > s->to[v])
		s->to[v] = at + 1;
}

static void extend(struct state *s, uint32_t v, bool is_def, bool partial, uint32_t at)
{
	(void)partial;
	touch(s, v, at);
	/*
	 * The results of one operation must not share a slot, also when one of them is not used:
	 * its interval would otherwise end where the others start.
	 */
	if (is_def && s->b->code[at].flags & OBD_CALL && s->to[v] < at + 2)
		s->to[v] = at + 2;
}

static bool make_blocks(struct state *s)
{
	struct obd_builder *b = s->b;
	uint32_t n = b->n_code, count = 0;
	uint8_t *lead = calloc(n + 1, 1);

	if (!lead)
		return false;
	lead[0] = 1;
	for (uint32_t i = 0; i < b->labels.n; i++)
		if (b->labels.at[i] != OBD_NONE && b->labels.at[i] < n)
			lead[b->labels.at[i]] = 1;
	for (uint32_t i = 0; i + 1 < n; i++)
		if (b->code[i].flags & (OBD_BRANCH | OBD_STOP | OBD_TABLE))
			lead[i + 1] = 1;
	for (uint32_t i = 0; i < n; i++)
		count += lead[i];
	s->blocks = calloc(count ? count : 1, sizeof(*s->blocks));
	s->block_of = malloc(n * sizeof(uint32_t));
	if (!s->blocks || !s->block_of) {
		free(lead);
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (lead[i])
			s->blocks[s->n_blocks++].first = i;
		s->block_of[i] = s->n_blocks - 1;
		s->blocks[s->n_blocks - 1].last = i + 1;
	}
	for (uint32_t k = 0; k < s->n_blocks; k++) {
		struct block *blk = &s->blocks[k];
		const struct obd_lin *l = &b->code[blk->last - 1];

		blk->next[0] = l->flags & OBD_STOP || blk->last >= n ? OBD_NONE : k + 1;
		blk->next[1] = blk->table = OBD_NONE;
		if (l->flags & OBD_BRANCH && b->labels.at[l->imm] != OBD_NONE &&
			b->labels.at[l->imm] < n)
			blk->next[1] = s->block_of[b->labels.at[l->imm]];
		if (l->flags & OBD_TABLE)
			blk->table = l->imm;
	}
	free(lead);
	return true;
}

static bool join(struct state *s, uint64_t *out, uint32_t succ)
{
	const uint64_t *in = &s->in[(size_t)succ * s->words];

	for (uint32_t w = 0; w < s->words; w++)
		out[w] |= in[w];
	return true;
}

static void block_out(struct state *s, const struct block *blk, uint64_t *out)
{
	memset(out, 0, s->words * sizeof(*out));
	for (int k = 0; k < 2; k++)
		if (blk->next[k] != OBD_NONE)
			join(s, out, blk->next[k]);
	if (blk->table == OBD_NONE)
		return;
	const uint32_t *t = s->b->tables + blk->table;

	for (uint32_t k = 0; k < t[0]; k++) {
		uint32_t at = s->b->labels.at[t[1 + k]];

		if (at != OBD_NONE && at < s->b->n_code)
			join(s, out, s->block_of[at]);
	}
}

static bool solve(struct state *s)
{
	uint64_t *out = malloc((s->words + 1) * sizeof(*out));
	bool changed = true;

	if (!out)
		return false;
	for (uint32_t pass = 0; changed; pass++) {
		if (pass >= MAX_PASSES) {
			free(out);
			return false;
		}
		changed = false;
		for (uint32_t k = s->n_blocks; k-- > 0;) {
			uint64_t *in = &s->in[(size_t)k * s->words];
			const uint64_t *kill = &s->kill[(size_t)k * s->words];

			block_out(s, &s->blocks[k], out);
			for (uint32_t w = 0; w < s->words; w++) {
				uint64_t v = in[w] | (out[w] & ~kill[w]);

				changed |= v != in[w];
				in[w] = v;
			}
		}
	}
	free(out);
	return true;
}

/* A register that is live into or out of a block is treated as live in all of it. */
static bool extend_over_blocks(struct state *s, const uint32_t *vreg_of)
{
	uint64_t *out = malloc((s->words + 1) * sizeof(*out));

	if (!out)
		return false;
	for (uint32_t k = 0; k < s->n_blocks; k++) {
		const struct block *blk = &s->blocks[k];
		const uint64_t *in = &s->in[(size_t)k * s->words];

		block_out(s, blk, out);
		for (uint32_t w = 0; w < s->words; w++) {
			for (uint64_t bits = in[w]; bits; bits &= bits - 1)
				touch(s, vreg_of[w * 64 + (uint32_t)__builtin_ctzll(bits)],
					blk->first);
			for (uint64_t bits = out[w]; bits; bits &= bits - 1) {
				uint32_t v = vreg_of[w * 64 + (uint32_t)__builtin_ctzll(bits)];

				touch(s, v, blk->last - 1);
				if (s->to[v] < blk->last + 1)
					s->to[v] = blk->last + 1;
			}
		}
	}
	free(out);
	return true;
}

static bool analyse(struct state *s)
{
	struct obd_builder *b = s->b;
	uint32_t n = b->n_vregs ? b->n_vregs : 1;
	uint32_t *vreg_of = NULL;
	bool ok = false;

	s->global = malloc(n * sizeof(uint32_t));
	s->last_block = malloc(n * sizeof(uint32_t));
	if (!s->global || !s->last_block || !make_blocks(s))
		return false;
	memset(s->global, 0xff, n * sizeof(uint32_t));
	memset(s->last_block, 0xff, n * sizeof(uint32_t));
	for (uint32_t i = 0; i < b->n_code; i++)
		visit(s, i, find_global);
	s->words = (s->n_global + 63) / 64;
	if ((uint64_t)s->words * s->n_blocks > MAX_SET_WORDS)
		return false;
	s->in = obd_heap_alloc(((size_t)s->words * s->n_blocks + 1) * sizeof(uint64_t));
	s->kill = obd_heap_alloc(((size_t)s->words * s->n_blocks + 1) * sizeof(uint64_t));
	vreg_of = calloc((size_t)s->words * 64 + 1, sizeof(uint32_t));
	if (s->in && s->kill && vreg_of) {
		for (uint32_t v = 0; v < b->n_vregs; v++)
			if (s->global[v] != OBD_NONE)
				vreg_of[s->global[v]] = v;
		for (uint32_t i = 0; i < b->n_code; i++)
			visit(s, i, fill_sets);
		ok = solve(s) && extend_over_blocks(s, vreg_of);
	}
	free(vreg_of);
	return ok;
}

/* ---- the scan ---- */

struct pool {
	uint32_t *free_list;
	uint32_t n_free;
	struct active {
		uint32_t to, slot;
	} * heap; /* by `to`, smallest first */
	uint32_t n_heap;
};

static void heap_push(struct pool *p, uint32_t to, uint32_t slot)
{
	uint32_t i = p->n_heap++;

	for (; i && p->heap[(i - 1) / 2].to > to; i = (i - 1) / 2)
		p->heap[i] = p->heap[(i - 1) / 2];
	p->heap[i] = (struct active){ to, slot };
}

static uint32_t heap_pop(struct pool *p)
{
	uint32_t slot = p->heap[0].slot, i = 0;
	struct active last = p->heap[--p->n_heap];

	for (;;) {
		uint32_t k = 2 * i + 1;

		if (k >= p->n_heap)
			break;
		if (k + 1 < p->n_heap && p->heap[k + 1].to < p->heap[k].to)
			k++;
		if (p->heap[k].to >= last.to)
			break;
		p->heap[i] = p->heap[k];
		i = k;
	}
	p->heap[i] = last;
	return slot;
}

/* Sorts the registers by the start of their interval, with a counting sort over instructions. */
static uint32_t *by_start(const struct state *s, uint32_t *ret_n)
{
	struct obd_builder *b = s->b;
	uint32_t *start = calloc(b->n_code + 2, sizeof(uint32_t)), n = 0;
	uint32_t *order = malloc((b->n_vregs + 1) * sizeof(uint32_t));

	if (start && order) {
		for (uint32_t v = 0; v < b->n_vregs; v++)
			if (s->to[v] && tracked(b, v)) {
				start[s->from[v] + 1]++;
				n++;
			}
		for (uint32_t i = 0; i <= b->n_code; i++)
			start[i + 1] += start[i];
		for (uint32_t v = 0; v < b->n_vregs; v++)
			if (s->to[v] && tracked(b, v))
				order[start[s->from[v]]++] = v;
	} else {
		free(order);
		order = NULL;
	}
	free(start);
	*ret_n = n;
	return order;
}

static const uint32_t class_slots[OBD_CLASS_COUNT] = { 0, 1, 2, 4 };

static uint32_t fresh_slot(uint32_t cls, uint32_t *next_slot, uint32_t *next_pred)
{
	if (cls == OBD_CLASS_PRED)
		return (*next_pred)++;
	uint32_t slot = *next_slot;

	*next_slot += class_slots[cls];
	return slot;
}

static bool scan(struct state *s, bool share, uint32_t *next_slot, uint32_t *next_pred)
{
	struct obd_builder *b = s->b;
	struct pool pools[OBD_CLASS_COUNT] = { { 0 } };
	uint32_t n = 0, *order = by_start(s, &n);
	bool ok = order != NULL;

	for (int k = 0; k < OBD_CLASS_COUNT; k++) {
		pools[k].free_list = malloc((n + 1) * sizeof(uint32_t));
		pools[k].heap = malloc((n + 1) * sizeof(struct active));
		ok = ok && pools[k].free_list && pools[k].heap;
	}
	for (uint32_t i = 0; ok && i < n; i++) {
		uint32_t v = order[i];
		struct pool *p = &pools[b->vregs[v].cls];

		/*
		 * An interval that ends at the operation where this one starts may share its slot,
		 * because operations read their operands before they write.
		 */
		while (share && p->n_heap && p->heap[0].to <= s->from[v] + 1 &&
			p->heap[0].to <= s->to[v])
			p->free_list[p->n_free++] = heap_pop(p);
		uint32_t slot = share && p->n_free
			? p->free_list[--p->n_free]
			: fresh_slot(b->vregs[v].cls, next_slot, next_pred);

		b->vregs[v].slot = slot;
		heap_push(p, s->to[v], slot);
	}
	for (int k = 0; k < OBD_CLASS_COUNT; k++) {
		free(pools[k].free_list);
		free(pools[k].heap);
	}
	free(order);
	return ok;
}

uint32_t obd_regalloc(struct obd_builder *b, uint32_t first_slot)
{
	uint32_t n = b->n_vregs ? b->n_vregs : 1, next_slot = first_slot, next_pred = 0;
	struct state s = { .b = b };
	bool ok;

	s.from = malloc(n * sizeof(uint32_t));
	s.to = calloc(n, sizeof(uint32_t));
	ok = s.from && s.to;
	if (ok) {
		memset(s.from, 0xff, n * sizeof(uint32_t));
		for (uint32_t i = 0; i < b->n_code; i++)
			visit(&s, i, extend);
		bool share = analyse(&s);

		for (uint32_t i = 0; i < b->n_consts; i++)
			b->vregs[b->consts[i].vreg].slot =
				fresh_slot(b->consts[i].cls, &next_slot, &next_pred);
		for (uint32_t i = 0; i < b->n_prologue; i++) {
			struct obd_vreg *v = &b->vregs[b->prologue[i].d];

			v->slot = fresh_slot(v->cls, &next_slot, &next_pred);
		}
		ok = scan(&s, share, &next_slot, &next_pred);
	}
	free(s.blocks);
	free(s.block_of);
	free(s.global);
	free(s.last_block);
	obd_heap_free(s.in);
	obd_heap_free(s.kill);
	free(s.from);
	free(s.to);
	if (!ok)
		obd_ptx_fail_with(b->ld, CUDA_ERROR_OUT_OF_MEMORY,
			"out of memory while the module is compiled");
	/*
	 * A predicate is a single word. The first two slots of a frame hold 64 predicates; further
	 * ones are stored after all other slots.
	 */
	if (next_pred > 64) {
		uint32_t extra = (next_pred - 64 + OBD_LANES - 1) / OBD_LANES;

		uint32_t base = next_slot * OBD_LANES;

		for (uint32_t v = 0; v < b->n_vregs; v++)
			if (b->vregs[v].cls == OBD_CLASS_PRED && b->vregs[v].slot != OBD_NONE &&
				b->vregs[v].slot >= 64)
				b->vregs[v].slot = base + b->vregs[v].slot - 64;
		next_slot += extra;
		if (next_slot * OBD_LANES > OBD_NO_SLOT)
			obd_ptx_refuse(b->ld,
				"function %s uses more registers and predicates than the software "
				"device has",
				b->func->name);
	}
	for (uint32_t v = 0; v < b->n_vregs; v++)
		if (b->vregs[v].slot == OBD_NONE)
			b->vregs[v].slot = 0; /* never used */
	return next_slot;
}
