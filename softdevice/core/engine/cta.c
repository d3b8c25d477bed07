/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/cta.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "softdevice/core/engine/fault.h"
#include "softdevice/core/ops.h"
#include "softdevice/core/engine/stats.h"
#include "softdevice/core/engine/warp.h"

/*
 * The worker switches to another block after this many rounds over all warps of a block, or earlier
 * if all warps that ran are spinning.
 */
#define CTA_ROUNDS   64
#define LOCAL_ALIGN  256u
#define SHARED_ALIGN 1024u
#define SHARED_LEAST 1024u

/* ---- frames ---- */

static void fill_consts(struct obd_frame *fr, const struct obd_func *f)
{
	for (uint32_t i = 0; i < f->n_consts; i++) {
		char *reg = fr->regs + (size_t)f->consts[i].slot * OBD_SLOT_BYTES;

		for (uint32_t l = 0; l < OBD_LANES; l++)
			if (f->consts[i].wide)
				((uint64_t *)(void *)reg)[l] = f->consts[i].value;
			else
				((uint32_t *)(void *)reg)[l] = (uint32_t)f->consts[i].value;
	}
}

struct obd_frame *obd_worker_get_frame(struct obd_worker *wk, const struct obd_func *f)
{
	struct obd_frame *fr = wk->free_frames[f->index];

	if (fr) {
		wk->free_frames[f->index] = fr->next_free;
	} else {
		size_t head = (sizeof(*fr) + OBD_SLOT_BYTES - 1) / OBD_SLOT_BYTES * OBD_SLOT_BYTES;
		size_t size = head + ((size_t)f->n_slots + 1) * OBD_SLOT_BYTES;

		fr = aligned_alloc(OBD_SLOT_BYTES, size);
		if (!fr)
			return NULL;
		memset(fr, 0, size);
		fr->func = f;
		fr->fp = (uint32_t *)(void *)((char *)fr + head);
		fr->regs = (char *)fr + head + OBD_SLOT_BYTES;
		fill_consts(fr, f);
		fr->next_all = wk->all_frames;
		wk->all_frames = fr;
	}
	fr->parent = NULL;
	fr->refs = 0;
	fr->depth = 0;
	return fr;
}

void obd_worker_put_frame(struct obd_worker *wk, struct obd_frame *f)
{
	f->next_free = wk->free_frames[f->func->index];
	wk->free_frames[f->func->index] = f;
}

/* ---- barriers ---- */

static void release(struct obd_cta *c, uint32_t id)
{
	struct obd_barrier *b = &c->barriers[id];

	for (uint32_t k = 0; k < c->n_warps; k++) {
		struct obd_warp *w = &c->warps[k];

		for (uint32_t i = 0; i < w->n_paths; i++) {
			struct obd_path *p = &w->paths[i];
			char *regs = p->frame->regs;

			if (p->state != OBD_PATH_BARRIER || p->barrier != id)
				continue;
			const struct obd_insn *in = p->pc;

			if (in->e == OBD_BAR_RED_POPC) {
				uint32_t v[OBD_LANES];

				for (uint32_t l = 0; l < OBD_LANES; l++)
					v[l] = b->red_popc;
				obd_write32(regs + (size_t)in->d * OBD_SLOT_BYTES, v, p->mask);
			} else if (in->e == OBD_BAR_RED_AND || in->e == OBD_BAR_RED_OR) {
				uint32_t *pred = (uint32_t *)(void *)regs + in->d;
				bool v = in->e == OBD_BAR_RED_AND ? b->red_and : b->red_or;

				*pred = (*pred & ~p->mask) | (v ? p->mask : 0);
			}
			p->pc++;
			p->state = OBD_PATH_RUN;
			if (w->state == OBD_WARP_BLOCKED)
				w->state = OBD_WARP_READY;
		}
	}
	memset(b, 0, sizeof(*b));
	b->red_and = true;
}

void obd_cta_barrier_check(struct obd_cta *c, uint32_t id)
{
	struct obd_barrier *b = &c->barriers[id];

	if (!b->arrived)
		return;
	if (!b->expected) {
		if (b->arrived >= c->n_live)
			release(c, id);
		return;
	}
	uint32_t n = 0;

	/*
	 * `expected` counts whole warps, 32 threads each. A warp therefore counts as 32 threads
	 * when all of its live lanes have arrived.
	 */
	for (uint32_t k = 0; k < c->n_warps; k++) {
		uint32_t a = b->warp_arrived[k];

		if (a)
			n += (a & c->warps[k].live) == c->warps[k].live
				? OBD_LANES
				: (uint32_t)__builtin_popcount(a);
	}
	if (n >= b->expected)
		release(c, id);
}

const struct obd_insn *obd_warp_barrier(
	struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const uint32_t *id_reg =
		(const uint32_t *)(const void *)(regs + (size_t)in->a * OBD_SLOT_BYTES);
	const uint32_t *n_reg =
		(const uint32_t *)(const void *)(regs + (size_t)in->b * OBD_SLOT_BYTES);
	uint32_t lane = (uint32_t)__builtin_ctz(m), kind = in->e, id;

	if (kind == OBD_BAR_CLUSTER_ARRIVE)
		return in + 1;
	id = kind == OBD_BAR_CLUSTER_WAIT ? OBD_BARRIER_CLUSTER : id_reg[lane];
	if (kind != OBD_BAR_CLUSTER_WAIT && id >= OBD_BARRIER_CLUSTER)
		obd_fault_raise(
			w, in, m, CUDA_ERROR_ILLEGAL_INSTRUCTION, "a barrier's number is above 15");
	struct obd_barrier *b = &w->cta->barriers[id];
	uint32_t n = in->b == OBD_NO_SLOT ? 0 : n_reg[lane];

	if (n > OBD_BLOCK_MAX_THREADS)
		obd_fault_raise(w, in, m, CUDA_ERROR_ILLEGAL_INSTRUCTION,
			"a barrier's thread count is above 1024");
	if (kind >= OBD_BAR_RED_POPC && kind <= OBD_BAR_RED_OR) {
		uint32_t p = (((uint32_t *)(void *)regs)[in->c] ^ (in->u.imm ? ~0u : 0)) & m;

		b->red_popc += (uint32_t)__builtin_popcount(p);
		b->red_and &= p == m;
		b->red_or |= p != 0;
	}
	b->arrived += (uint32_t)__builtin_popcount(m);
	b->warp_arrived[w->id] |= m;
	b->expected = n;
	if (kind != OBD_BAR_ARRIVE) {
		w->cur->pc = in;
		w->cur->state = OBD_PATH_BARRIER;
		w->cur->barrier = (uint8_t)id;
	} else {
		w->cur->pc = in + 1;
	}
	obd_cta_barrier_check(w->cta, id);
	return OBD_LEAVE;
}

/* ---- blocks ---- */

static void free_cta(struct obd_cta *c)
{
	const struct obd_env *env = &c->launch->program->env;

	if (c->shared)
		env->scratch_free(env->user, c->shared, c->launch->shared_size);
	if (c->local)
		env->scratch_free(env->user, c->local, c->local_size);
	free(c->warps);
	free(c);
}

static struct obd_cta *new_cta(struct obd_worker *wk)
{
	struct obd_launch *l = wk->launch;
	const struct obd_env *env = &l->program->env;
	const uint32_t *dim = l->grid->block;
	struct obd_cta *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->launch = l;
	c->worker = wk;
	c->n_threads = dim[0] * dim[1] * dim[2];
	c->n_warps = (c->n_threads + OBD_LANES - 1) / OBD_LANES;
	c->local_size = (size_t)l->entry->stack_bytes * c->n_warps * OBD_LANES;
	c->warps = aligned_alloc(64, c->n_warps * sizeof(struct obd_warp));
	c->shared = env->scratch_alloc(env->user, l->shared_size, SHARED_ALIGN);
	if (c->local_size)
		c->local = env->scratch_alloc(env->user, c->local_size, LOCAL_ALIGN);
	if (!c->warps || !c->shared || (c->local_size && !c->local)) {
		free_cta(c);
		return NULL;
	}
	memset(c->warps, 0, c->n_warps * sizeof(struct obd_warp));
	for (uint32_t k = 0; k < c->n_warps; k++) {
		struct obd_warp *w = &c->warps[k];

		w->cta = c;
		w->worker = wk;
		w->id = k;
		w->window_base = env->window_base;
		w->window_size = env->window_size;
		w->shared_base = (uintptr_t)c->shared;
		w->shared_bytes = l->shared_size;
		w->stack_bytes = l->entry->stack_bytes;
		w->memcheck = env->check != NULL;
		for (uint32_t i = 0; i < OBD_LANES; i++) {
			uint32_t t = k * OBD_LANES + i;

			w->tid[0][i] = t % dim[0];
			w->tid[1][i] = t / dim[0] % dim[1];
			w->tid[2][i] = t / dim[0] / dim[1];
			w->born |= t < c->n_threads ? 1u << i : 0;
			w->lbase[i] = (uint64_t)(uintptr_t)c->local + (uint64_t)t * w->stack_bytes;
		}
	}
	return c;
}

static bool start_cta(struct obd_cta *c, uint64_t index)
{
	const uint32_t *g = c->launch->grid->grid;
	const struct obd_func *f = c->launch->func;

	c->index = index;
	c->ctaid[0] = (uint32_t)(index % g[0]);
	c->ctaid[1] = (uint32_t)(index / g[0] % g[1]);
	c->ctaid[2] = (uint32_t)(index / g[0] / g[1]);
	c->n_live = c->n_threads;
	memset(c->barriers, 0, sizeof(c->barriers));
	for (uint32_t i = 0; i < OBD_MAX_BARRIERS; i++)
		c->barriers[i].red_and = true;
	for (uint32_t k = 0; k < c->n_warps; k++) {
		struct obd_warp *w = &c->warps[k];
		struct obd_frame *fr = obd_worker_get_frame(c->worker, f);

		if (!fr)
			return false;
		fr->refs = 1;
		w->live = w->born;
		w->steps = 0;
		w->n_paths = 1;
		w->paths[0] = (struct obd_path){
			.pc = f->code, .frame = fr, .mask = w->born, .state = OBD_PATH_RUN
		};
		w->state = OBD_WARP_READY;
		w->yield = false;
		for (uint32_t i = 0; i < OBD_LANES; i++) {
			fr->fp[i] = 0;
			w->sp[i] = f->local_bytes;
		}
	}
	return true;
}

enum turn { TURN_DONE, TURN_MORE, TURN_STOP };

static void report_deadlock(struct obd_cta *c)
{
	for (uint32_t k = 0; k < c->n_warps; k++) {
		struct obd_warp *w = &c->warps[k];

		if (w->state != OBD_WARP_BLOCKED)
			continue;
		w->cur = &w->paths[0];
		obd_fault_raise(w, w->cur->pc, w->cur->mask, CUDA_ERROR_LAUNCH_FAILED,
			"deadlock: every thread of the block waits at a barrier or for lanes that "
			"never come");
	}
}

static enum turn run_turn(struct obd_cta *c)
{
	struct obd_launch *l = c->launch;

	for (uint32_t round = 0; round < CTA_ROUNDS; round++) {
		uint32_t done = 0, ran = 0, spinning = 0;

		for (uint32_t k = 0; k < c->n_warps; k++) {
			struct obd_warp *w = &c->warps[k];

			if (w->state == OBD_WARP_READY) {
				ran++;
				c->worker->cur_warp = w;
				w->spinning = 0;
				obd_warp_run(w);
				spinning += w->state == OBD_WARP_READY && w->spinning;
				if (atomic_load_explicit(&l->stop, memory_order_relaxed))
					return TURN_STOP;
			}
			done += w->state == OBD_WARP_DONE;
		}
		if (done == c->n_warps)
			return TURN_DONE;
		if (l->grid->abort && atomic_load_explicit(l->grid->abort, memory_order_relaxed)) {
			obd_fault_abort(l);
			return TURN_STOP;
		}
		if (!ran)
			report_deadlock(c);
		if (spinning && spinning == ran)
			return TURN_MORE;
	}
	return TURN_MORE;
}

/* ---- workers ---- */

static bool take_cta(struct obd_worker *wk)
{
	struct obd_launch *l = wk->launch;
	uint64_t index = atomic_load_explicit(&l->next_cta, memory_order_relaxed);

	do {
		if (index >= l->n_ctas)
			return false;
	} while (!atomic_compare_exchange_weak(&l->next_cta, &index, index + 1));
	struct obd_cta *c = wk->free_ctas;

	if (c)
		wk->free_ctas = c->next;
	else
		c = new_cta(wk);
	if (!c) {
		obd_fault_memory(l);
		return false;
	}
	c->next = NULL;
	struct obd_cta **end = &wk->ctas;

	while (*end)
		end = &(*end)->next;
	*end = c;
	wk->n_ctas++;
	if (!start_cta(c, index)) {
		obd_fault_memory(l);
		return false;
	}
	return true;
}

static void note_steps(const struct obd_cta *c)
{
	uint64_t seen = atomic_load_explicit(&c->launch->longest, memory_order_relaxed);

	/* Relaxed: the value is read after all workers have returned. */
	for (uint32_t k = 0; k < c->n_warps; k++)
		while (c->warps[k].steps > seen &&
			!atomic_compare_exchange_weak_explicit(&c->launch->longest, &seen,
				c->warps[k].steps, memory_order_relaxed, memory_order_relaxed))
			;
}

static void work(struct obd_worker *wk)
{
	struct obd_launch *l = wk->launch;

	while (!atomic_load_explicit(&l->stop, memory_order_relaxed)) {
		if (!wk->ctas && !take_cta(wk))
			return;
		struct obd_cta *c = wk->ctas;

		switch (run_turn(c)) {
		case TURN_STOP:
			return;
		case TURN_DONE:
			note_steps(c);
			wk->ctas = c->next;
			wk->n_ctas--;
			c->next = wk->free_ctas;
			wk->free_ctas = c;
			break;
		case TURN_MORE:
			if (wk->n_ctas < l->resident_limit && take_cta(wk)) {
				/* the new block runs first */
				struct obd_cta **end = &wk->ctas;

				while ((*end)->next)
					end = &(*end)->next;
				struct obd_cta *fresh = *end;

				*end = NULL;
				fresh->next = wk->ctas;
				wk->ctas = fresh;
			}
			if (c->next || wk->ctas != c) { /* move c to the end of the list */
				struct obd_cta **at = &wk->ctas;

				while (*at != c)
					at = &(*at)->next;
				*at = c->next;
				while (*at)
					at = &(*at)->next;
				*at = c;
				c->next = NULL;
			}
			break;
		}
	}
}

static void worker_fini(struct obd_worker *wk)
{
	for (struct obd_cta *c = wk->ctas, *next; c; c = next) {
		next = c->next;
		free_cta(c);
	}
	for (struct obd_cta *c = wk->free_ctas, *next; c; c = next) {
		next = c->next;
		free_cta(c);
	}
	for (struct obd_frame *f = wk->all_frames, *next; f; f = next) {
		next = f->next_all;
		free(f);
	}
	free(wk->free_frames);
	obd_stats_add(wk->lane_instructions);
}

void obd_worker_run(struct obd_launch *l)
{
	struct obd_worker *wk = calloc(1, sizeof(*wk));

	if (wk)
		wk->free_frames = calloc(l->program->n_funcs, sizeof(struct obd_frame *));
	if (!wk || !wk->free_frames) {
		free(wk);
		obd_fault_memory(l);
		return;
	}
	wk->launch = l;
#if defined(__x86_64__)
	unsigned csr = _mm_getcsr();

	_mm_setcsr(0x1f80); /* all exceptions masked, round to nearest, subnormals kept */
#endif
	int how = sigsetjmp(wk->jmp, 0);

	if (how == 0) {
		obd_fault_enter(wk);
		work(wk);
	} else if (how == OBD_JUMP_SIGNAL) {
		obd_fault_from_signal(wk);
	}
	obd_fault_leave();
#if defined(__x86_64__)
	_mm_setcsr(csr);
#endif
	worker_fini(wk);
	free(wk);
}
