/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/barrier.h"

#include <string.h>

#include "softdevice/core/engine/cluster.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/slot.h"
#include "softdevice/core/ops.h"

void obd_barrier_reset(struct obd_barrier *b)
{
	memset(b, 0, sizeof(*b));
	b->red_and = true;
}

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
	obd_barrier_reset(b);
	c->arrived &= ~(1u << id);
}

void obd_barrier_check(struct obd_cta *c, uint32_t id)
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

/* The threads of the warp's warpgroup, in whole warps. */
static uint32_t group_threads(const struct obd_warp *w)
{
	uint32_t first = w->id / OBD_GROUP_WARPS * OBD_GROUP_WARPS, n = w->cta->n_warps - first;

	return (n < OBD_GROUP_WARPS ? n : OBD_GROUP_WARPS) * OBD_LANES;
}

const struct obd_insn *obd_barrier(
	struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const uint32_t *id_reg =
		(const uint32_t *)(const void *)(regs + (size_t)in->a * OBD_SLOT_BYTES);
	const uint32_t *n_reg =
		(const uint32_t *)(const void *)(regs + (size_t)in->b * OBD_SLOT_BYTES);
	uint32_t lane = (uint32_t)__builtin_ctz(m), kind = in->e, id;

	if (w->cta->cluster && (kind == OBD_BAR_CLUSTER_ARRIVE || kind == OBD_BAR_CLUSTER_WAIT))
		return obd_cluster_barrier(w, in, m);
	if (kind == OBD_BAR_CLUSTER_ARRIVE)
		return in + 1;
	id = kind == OBD_BAR_CLUSTER_WAIT ? OBD_BARRIER_CLUSTER
		: kind == OBD_BAR_GROUP   ? OBD_BARRIER_GROUP + w->id / OBD_GROUP_WARPS
					  : id_reg[lane];
	if (kind < OBD_BAR_CLUSTER_WAIT && id >= OBD_BARRIER_CLUSTER)
		obd_fault_raise(
			w, in, m, CUDA_ERROR_ILLEGAL_INSTRUCTION, "barrier number above 15");
	struct obd_barrier *b = &w->cta->barriers[id];
	uint32_t n = kind == OBD_BAR_GROUP ? group_threads(w)
		: in->b == OBD_NO_SLOT     ? 0
					   : n_reg[lane];

	if (n > OBD_BLOCK_MAX_THREADS)
		obd_fault_raise(w, in, m, CUDA_ERROR_ILLEGAL_INSTRUCTION,
			"barrier thread count above 1024");
	if (kind >= OBD_BAR_RED_POPC && kind <= OBD_BAR_RED_OR) {
		uint32_t p = (((uint32_t *)(void *)regs)[in->c] ^ (in->u.imm ? ~0u : 0)) & m;

		b->red_popc += (uint32_t)__builtin_popcount(p);
		b->red_and &= p == m;
		b->red_or |= p != 0;
	}
	b->arrived += (uint32_t)__builtin_popcount(m);
	b->warp_arrived[w->id] |= m;
	w->cta->arrived |= 1u << id;
	b->expected = n;
	if (kind != OBD_BAR_ARRIVE) {
		w->cur->pc = in;
		w->cur->state = OBD_PATH_BARRIER;
		w->cur->barrier = (uint8_t)id;
	} else {
		w->cur->pc = in + 1;
	}
	obd_barrier_check(w->cta, id);
	return OBD_LEAVE;
}
