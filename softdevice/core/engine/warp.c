/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/warp.h"

#include <string.h>

#include "softdevice/core/engine/barrier.h"
#include "softdevice/core/engine/cluster.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/frame.h"
#include "softdevice/core/engine/rt.h"
#include "softdevice/core/engine/slot.h"
#include "softdevice/core/engine/sync.h"

/*
 * Backward branches in one turn: of a whole warp, and of one path while other paths wait. The
 * second limit makes spin locks inside a warp progress.
 */
#define TURN_WARP  2000
#define TURN_PATH  200
/*
 * A warp whose lanes are on one path takes short turns. The warps of a block then read neighbouring
 * memory at about the same time where each thread of a grid strides through an array.
 */
#define TURN_SLICE (TURN_WARP / OBD_TURN_SLICES)

static struct obd_path *add_path(
	struct obd_warp *w, const struct obd_insn *pc, struct obd_frame *frame, uint32_t mask)
{
	struct obd_path *p = &w->paths[w->n_paths++];

	*p = (struct obd_path){ .pc = pc, .frame = frame, .mask = mask, .state = OBD_PATH_RUN };
	frame->refs++;
	return p;
}

static void drop_frame(struct obd_warp *w, struct obd_frame *f)
{
	while (f && --f->refs == 0) {
		struct obd_frame *parent = f->parent;

		obd_frame_put(w->worker, f);
		f = parent;
	}
}

static void remove_path(struct obd_warp *w, struct obd_path *p)
{
	drop_frame(w, p->frame);
	if (p != &w->paths[--w->n_paths])
		*p = w->paths[w->n_paths];
}

const struct obd_insn *obd_warp_branch(struct obd_warp *w, const struct obd_insn *target,
	uint32_t taken, const struct obd_insn *next)
{
	struct obd_path *p = w->cur;

	p->mask &= ~taken;
	p->pc = next;
	add_path(w, target, p->frame, taken);
	if (target < next && --w->budget < 0)
		w->yield = true;
	return OBD_LEAVE;
}

const struct obd_insn *obd_warp_branch_table(
	struct obd_warp *w, const struct obd_insn *in, const uint32_t *index, uint32_t m)
{
	struct obd_path *p = w->cur;
	const struct obd_func *f = p->frame->func;
	const uint32_t *table = f->tables + in->u.imm;
	uint32_t n = table[0], rest = m;

	while (rest) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest), same = 0, i = index[lane];

		for (uint32_t r = rest; r; r &= r - 1) {
			uint32_t l = (uint32_t)__builtin_ctz(r);

			same |= index[l] == i ? 1u << l : 0;
		}
		if (i >= n)
			obd_fault_raise(w, in, same, CUDA_ERROR_INVALID_PC,
				"brx.idx: index outside the .branchtargets table");
		if (same == p->mask)
			p->pc = f->code + table[1 + i];
		else {
			p->mask &= ~same;
			add_path(w, f->code + table[1 + i], p->frame, same);
		}
		rest &= ~same;
	}
	if (--w->budget < 0)
		w->yield = true;
	return OBD_LEAVE;
}

const struct obd_insn *obd_warp_call(struct obd_warp *w, const struct obd_insn *in, char *regs,
	uint32_t m, const struct obd_func *f)
{
	struct obd_path *p = w->cur;

	if (f->builtin) {
		if (obd_rt_call(w, in, f, regs, m)) {
			p->pc = in;
			w->yield = true;
			w->spinning++;
			return OBD_LEAVE;
		}
		p->pc = in + 1;
		if (m == p->mask)
			return in + 1;
		return OBD_LEAVE;
	}
	if (!f->defined)
		obd_fault_raise(w, in, m, CUDA_ERROR_INVALID_PC, "call of an undefined function");
	if (p->frame->depth >= OBD_MAX_CALL_DEPTH)
		obd_fault_raise(w, in, m, CUDA_ERROR_HARDWARE_STACK_ERROR,
			"stack overflow: calls nested more than 4096 levels deep");
	struct obd_frame *fr = obd_frame_get(w, f);

	if (!fr)
		obd_fault_raise(w, in, m, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
			"out of memory for the registers of a call");
	const uint16_t *list = p->frame->func->call_ops + in->u.imm;
	uint32_t n_args = list[0] < f->n_arg_words ? list[0] : f->n_arg_words;

	for (uint32_t i = 0; i < n_args; i++)
		obd_write32(fr->regs + (size_t)(f->arg_slot + i) * OBD_SLOT_BYTES,
			(const uint32_t *)(const void *)(regs +
				(size_t)list[2 + i] * OBD_SLOT_BYTES),
			m);
	for (uint32_t r = m; r; r &= r - 1) {
		uint32_t l = (uint32_t)__builtin_ctz(r);

		fr->fp[l] = w->sp[l];
		w->sp[l] += f->local_bytes;
		if (w->sp[l] > w->stack_bytes) {
			obd_frame_put(w->worker, fr);
			obd_fault_raise(w, in, 1u << l, CUDA_ERROR_HARDWARE_STACK_ERROR,
				"stack overflow: a call needs more local memory than the thread "
				"has");
		}
	}
	fr->parent = p->frame;
	fr->ret_pc = in + 1;
	fr->depth = p->frame->depth + 1;
	fr->refs = 0;
	if (m == p->mask) { /* the new frame takes over the path's reference to the parent */
		fr->refs = 1;
		p->frame = fr;
		p->pc = f->code;
	} else {
		p->frame->refs++;
		p->mask &= ~m;
		add_path(w, f->code, fr, m);
	}
	return OBD_LEAVE;
}

const struct obd_insn *obd_warp_call_indirect(
	struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const uint64_t *target =
		(const uint64_t *)(const void *)(regs + (size_t)in->a * OBD_SLOT_BYTES);
	const struct obd_program *prog = w->cta->launch->program;
	uint64_t t = target[__builtin_ctz(m)];
	uint32_t same = 0;

	for (uint32_t r = m; r; r &= r - 1) {
		uint32_t l = (uint32_t)__builtin_ctz(r);

		same |= target[l] == t ? 1u << l : 0;
	}
	uint64_t index = (t & ~(0xffffull << 48)) >> 4;

	if ((t >> 48) != OBD_CODE_TAG >> 48 || (t & 15) || index >= prog->n_funcs)
		obd_fault_raise(w, in, same, CUDA_ERROR_INVALID_PC,
			"indirect call of an address that is not a function");
	struct obd_path *p = w->cur;

	p->pc = in;
	if (same != p->mask) { /* the remaining lanes execute this instruction again */
		p->mask &= ~same;
		w->cur = add_path(w, in, p->frame, same);
	}
	const struct obd_insn *next = obd_warp_call(w, in, regs, same, prog->funcs[index]);

	if (next != OBD_LEAVE)
		w->cur->pc = next;
	return OBD_LEAVE;
}

const struct obd_insn *obd_warp_return(struct obd_warp *w, const struct obd_insn *in, uint32_t m)
{
	struct obd_path *p = w->cur;
	struct obd_frame *f = p->frame, *up = f->parent;

	if (!up)
		return obd_warp_exit(w, in, m);
	const struct obd_insn *call = f->ret_pc - 1;
	const uint16_t *list = up->func->call_ops + call->u.imm;
	uint32_t n_args = list[0],
		 n_rets = list[1] < f->func->n_ret_words ? list[1] : f->func->n_ret_words;

	for (uint32_t i = 0; i < n_rets; i++)
		obd_write32(up->regs + (size_t)list[2 + n_args + i] * OBD_SLOT_BYTES,
			(const uint32_t *)(const void *)(f->regs +
				(size_t)(f->func->ret_slot + i) * OBD_SLOT_BYTES),
			m);
	for (uint32_t r = m; r; r &= r - 1) {
		uint32_t l = (uint32_t)__builtin_ctz(r);

		w->sp[l] = f->fp[l];
	}
	if (m == p->mask) {
		up->refs++;
		p->frame = up;
		p->pc = f->ret_pc;
		drop_frame(w, f);
	} else {
		p->mask &= ~m;
		p->pc = in + 1;
		add_path(w, f->ret_pc, up, m);
	}
	return OBD_LEAVE;
}

const struct obd_insn *obd_warp_exit(struct obd_warp *w, const struct obd_insn *in, uint32_t m)
{
	struct obd_path *p = w->cur;

	p->mask &= ~m;
	p->pc = in + 1;
	w->live &= ~m;
	w->cta->n_live -= m == OBD_FULL_MASK ? OBD_LANES : (uint32_t)__builtin_popcount(m);
	if (!p->mask)
		remove_path(w, p);
	for (uint32_t rest = w->cta->arrived; rest; rest &= rest - 1)
		obd_barrier_check(w->cta, (uint32_t)__builtin_ctz(rest));
	if (w->cta->cluster)
		obd_cluster_exit(w, m);
	return OBD_LEAVE;
}

/* ---- .sync operations ---- */

/* Computes the results of lanes that are not in their own member masks. They do not wait. */
static void sync_outside(struct obd_warp *w, const struct obd_insn *in, uint32_t m,
	uint32_t outside, const uint32_t *members, struct obd_sync_io *io)
{
	if (w->memcheck)
		obd_fault_raise(w, in, outside, CUDA_ERROR_LAUNCH_FAILED,
			"the member mask does not include the executing lane (undefined behaviour "
			"in PTX)");
	for (uint32_t r = outside; r; r &= r - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(r);

		obd_sync_compute_outside(in, lane, members[lane] & m, io);
	}
}

const struct obd_insn *obd_warp_sync(
	struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	struct obd_path *p = w->cur;
	uint32_t members[OBD_LANES], waiting = 0, outside = 0;
	struct obd_sync_io io;

	obd_sync_members(in, regs, m, members);
	for (uint32_t i = 0; i < OBD_LANES; i++)
		outside |= ~members[i] & m & 1u << i;
	if (__builtin_expect(outside != 0, 0))
		/* needed because a shuffle may read a lane that is not on this path */
		memset(&io, 0, sizeof(io));
	obd_sync_gather(in, regs, m, &io);
	if (__builtin_expect(outside != 0, 0))
		sync_outside(w, in, m, outside, members, &io);
	for (uint32_t rest = m & ~outside; rest;) {
		uint32_t want = members[__builtin_ctz(rest)], group = 0;

		for (uint32_t r = rest; r; r &= r - 1) {
			uint32_t l = (uint32_t)__builtin_ctz(r);

			group |= members[l] == want ? 1u << l : 0;
		}
		rest &= ~group;
		if (want & w->live & ~group)
			waiting |= group;
		else
			obd_sync_compute(in, group, &io);
	}
	obd_sync_scatter(in, regs, m & ~waiting, &io);
	if (!waiting)
		return in + 1;
	p->pc = in + 1;
	p->mask = m & ~waiting;
	struct obd_frame *frame = p->frame;

	frame->refs++;
	if (!p->mask)
		remove_path(w, p);
	while (waiting) {
		uint32_t want = members[__builtin_ctz(waiting)], group = 0;

		for (uint32_t r = waiting; r; r &= r - 1) {
			uint32_t l = (uint32_t)__builtin_ctz(r);

			group |= members[l] == want ? 1u << l : 0;
		}
		waiting &= ~group;
		struct obd_path *q = add_path(w, in, frame, group);

		q->state = OBD_PATH_SYNC;
		q->members = want;
	}
	drop_frame(w, frame);
	return OBD_LEAVE;
}

/*
 * Executes the operations of waiting paths whose member masks are complete. True if there was one.
 */
static bool complete_syncs(struct obd_warp *w)
{
	for (uint32_t i = 0; i < w->n_paths; i++) {
		struct obd_path *p = &w->paths[i];
		uint32_t have = 0;
		struct obd_sync_io io;

		if (p->state != OBD_PATH_SYNC)
			continue;
		uint32_t want = p->members, kind = p->pc->e;

		for (uint32_t k = i; k < w->n_paths; k++) {
			struct obd_path *q = &w->paths[k];

			if (q->state == OBD_PATH_SYNC && q->members == want && q->pc->e == kind)
				have |= q->mask;
		}
		if (want & w->live & ~have)
			continue;
		const struct obd_insn *in = p->pc;

		memset(&io, 0, sizeof(io));
		for (uint32_t k = i; k < w->n_paths; k++) {
			struct obd_path *q = &w->paths[k];

			if (q->state == OBD_PATH_SYNC && q->members == want && q->pc->e == kind)
				obd_sync_gather(q->pc, q->frame->regs, q->mask, &io);
		}
		obd_sync_compute(in, have, &io);
		for (uint32_t k = i; k < w->n_paths; k++) {
			struct obd_path *q = &w->paths[k];

			if (q->state != OBD_PATH_SYNC || q->members != want || q->pc->e != kind ||
				!(q->mask & have))
				continue;
			obd_sync_scatter(q->pc, q->frame->regs, q->mask, &io);
			q->pc++;
			q->state = OBD_PATH_RUN;
		}
		return true;
	}
	return false;
}

/* ---- scheduling ---- */

static bool runs_before(const struct obd_path *a, const struct obd_path *b)
{
	if (a->frame->depth != b->frame->depth)
		return a->frame->depth > b->frame->depth;
	return a->pc < b->pc;
}

/*
 * Chooses the next path: the deepest call first, then the lowest pc. With the order of blocks that
 * nvcc generates, this makes lanes reconverge. Paths with the same pc and frame are merged. Paths
 * that have used their turn are skipped. NULL: no path can run.
 */
static struct obd_path *pick_path(struct obd_warp *w)
{
	struct obd_path *best = NULL;

	if (w->n_paths == 1)
		return w->paths[0].state == OBD_PATH_RUN ? &w->paths[0] : NULL;
	for (uint32_t i = 0; i < w->n_paths; i++) {
		struct obd_path *p = &w->paths[i];

		if (p->state != OBD_PATH_RUN || p->yielded)
			continue;
		if (!best || runs_before(p, best))
			best = p;
	}
	if (!best)
		return NULL;
	for (uint32_t i = 0; i < w->n_paths;) {
		struct obd_path *p = &w->paths[i];

		if (p == best || p->state != OBD_PATH_RUN || p->pc != best->pc ||
			p->frame != best->frame) {
			i++;
			continue;
		}
		best->mask |= p->mask;
		if (best == &w->paths[w->n_paths - 1])
			best = p; /* removal moves the last path to this place */
		struct obd_path *last = &w->paths[w->n_paths - 1];

		if (best == p) {
			drop_frame(w, p->frame);
			*p = *last;
			w->n_paths--;
		} else {
			remove_path(w, p);
		}
	}
	return best;
}

/* Lowers the limit to the place of the next path that can join the current one. */
static void set_limit(struct obd_warp *w)
{
	const struct obd_path *cur = w->cur;

	for (uint32_t i = 0; i < w->n_paths; i++) {
		const struct obd_path *p = &w->paths[i];

		if (p != cur && p->state == OBD_PATH_RUN && p->frame == cur->frame &&
			p->pc > cur->pc && (uintptr_t)p->pc < w->limit)
			w->limit = (uintptr_t)p->pc;
	}
}

static bool clear_yields(struct obd_warp *w)
{
	bool any = false;

	for (uint32_t i = 0; i < w->n_paths; i++) {
		any |= w->paths[i].yielded;
		w->paths[i].yielded = false;
	}
	return any;
}

void obd_warp_run(struct obd_warp *w)
{
	int64_t left = TURN_WARP;

	w->sliced = false;
	for (;;) {
		struct obd_path *p = pick_path(w);

		if (!p) {
			bool waited = clear_yields(w);

			if (waited)
				return;
			if (complete_syncs(w))
				continue;
			w->state = w->n_paths ? OBD_WARP_BLOCKED : OBD_WARP_DONE;
			return;
		}
		w->cur = p;
		w->limit = UINTPTR_MAX;
		if (w->n_paths > 1)
			set_limit(w);
		w->budget = w->n_paths > 1 ? TURN_PATH : TURN_SLICE;
		if (w->budget > left)
			w->budget = left;
		int64_t given = w->budget;

		obd_isa_current->run(w);
		if (!w->n_paths) {
			w->yield = false;
			w->state = OBD_WARP_DONE;
			return;
		}
		left -= given - w->budget;
		if (w->yield) {
			w->yield = false;
			if (w->n_paths > 1)
				w->cur->yielded = true;
			if (left <= 0 || w->n_paths == 1) {
				w->sliced = w->n_paths == 1 && !w->spinning;
				clear_yields(w);
				return;
			}
		}
	}
}
