/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/cluster.h"

#include "softdevice/core/engine/slot.h"
#include "softdevice/core/ops.h"

#define OFFSET_BITS 24u
#define OFFSET_MASK ((1u << OFFSET_BITS) - 1)

bool obd_cluster_can_run(const struct obd_cta *c)
{
	const struct obd_cluster *k = c->cluster;

	for (uint32_t r = 0; r < k->size; r++)
		for (uint32_t i = 0; i < k->ctas[r]->n_warps; i++) {
			enum obd_warp_state state = k->ctas[r]->warps[i].state;

			if (state == OBD_WARP_READY || state == OBD_WARP_FRESH)
				return true;
		}
	return false;
}

/* ---- the barrier ---- */

static void release(struct obd_warp *w)
{
	w->cluster_arrived = 0;
	if (w->state == OBD_WARP_FRESH)
		return;
	for (uint32_t i = 0; i < w->n_paths; i++) {
		struct obd_path *p = &w->paths[i];

		if (p->state != OBD_PATH_BARRIER || p->barrier != OBD_BARRIER_CLUSTER)
			continue;
		p->pc++;
		p->state = OBD_PATH_RUN;
		if (w->state == OBD_WARP_BLOCKED)
			w->state = OBD_WARP_READY;
	}
}

static void check(struct obd_cluster *k)
{
	if (!k->arrived || k->arrived < k->live)
		return;
	k->arrived = 0;
	for (uint32_t r = 0; r < k->size; r++)
		for (uint32_t i = 0; i < k->ctas[r]->n_warps; i++)
			release(&k->ctas[r]->warps[i]);
}

const struct obd_insn *obd_cluster_barrier(
	struct obd_warp *w, const struct obd_insn *in, uint32_t m)
{
	struct obd_cluster *k = w->cta->cluster;

	if (in->e == OBD_BAR_CLUSTER_ARRIVE) {
		k->arrived += (uint32_t)__builtin_popcount(m & ~w->cluster_arrived);
		w->cluster_arrived |= m;
		check(k);
		return in + 1;
	}
	/* a lane whose bit is clear: all have arrived since it did */
	if (!(m & w->cluster_arrived))
		return in + 1;
	w->cur->pc = in;
	w->cur->state = OBD_PATH_BARRIER;
	w->cur->barrier = OBD_BARRIER_CLUSTER;
	return OBD_LEAVE;
}

void obd_cluster_exit(struct obd_warp *w, uint32_t m)
{
	struct obd_cluster *k = w->cta->cluster;

	k->live -= (uint32_t)__builtin_popcount(m);
	k->arrived -= (uint32_t)__builtin_popcount(m & w->cluster_arrived);
	w->cluster_arrived &= ~m;
	check(k);
}

/* ---- addresses ---- */

/* The shared memory of the block with this rank; 0: there is none. */
static uint64_t base_of(const struct obd_warp *w, uint32_t rank)
{
	const struct obd_cta *c = w->cta;

	if (rank == c->rank)
		return w->shared_base;
	if (!c->cluster || rank >= c->cluster->size)
		return 0;
	return (uint64_t)(uintptr_t)c->cluster->ctas[rank]->shared;
}

static uint32_t n_ranks(const struct obd_warp *w)
{
	return w->cta->cluster ? w->cta->cluster->size : 1;
}

/* The rank of the block whose shared memory contains the generic address; ~0: none. */
static uint32_t rank_of(const struct obd_warp *w, uint64_t at)
{
	if (at - w->shared_base < w->shared_bytes)
		return w->cta->rank;
	for (uint32_t r = 0; r < n_ranks(w); r++)
		if (at - base_of(w, r) < w->shared_bytes)
			return r;
	return ~0u;
}

bool obd_cluster_owns(const struct obd_warp *w, uint64_t at)
{
	return rank_of(w, at) != ~0u;
}

static uint32_t narrow_rank(const struct obd_warp *w, uint32_t at)
{
	return at >> OFFSET_BITS ? (at >> OFFSET_BITS) - 1 : w->cta->rank;
}

/*
 * The generic address of an access. 0, at which each access is a fault: not all of its bytes are in
 * the shared memory of the block.
 */
static uint64_t checked(const struct obd_warp *w, uint32_t at, uint32_t bytes)
{
	uint64_t base = base_of(w, narrow_rank(w, at));
	uint32_t offset = at & OFFSET_MASK;

	return base && offset < w->shared_bytes && w->shared_bytes - offset >= bytes ? base + offset
										     : 0;
}

/* A pointer may be outside the shared memory until it is used. */
static uint64_t flat(const struct obd_warp *w, uint32_t at)
{
	uint64_t base = obd_cluster_memory(w, &at);

	return base + at;
}

uint64_t obd_cluster_memory(const struct obd_warp *w, uint32_t *at)
{
	uint64_t base = *at >> OFFSET_BITS ? base_of(w, narrow_rank(w, *at)) : 0;

	if (!base)
		return w->shared_base;
	*at &= OFFSET_MASK;
	return base;
}

static uint32_t narrow(const struct obd_warp *w, uint32_t rank, uint32_t offset)
{
	return rank == w->cta->rank ? offset : ((rank + 1) << OFFSET_BITS) | offset;
}

/* a: the address; b: a rank */
static uint64_t value(const struct obd_warp *w, const struct obd_insn *in, uint64_t a, uint32_t b)
{
	uint32_t low = (uint32_t)a;

	switch (OBD_CLUSTER_OP(in->e)) {
	case OBD_CLUSTER_CHECKED:
		return checked(w, low + in->u.imm, OBD_CLUSTER_BYTES(in->e));
	case OBD_CLUSTER_FLAT:
		return flat(w, low);
	case OBD_CLUSTER_NARROW:
		b = rank_of(w, a);
		return b == ~0u ? (uint32_t)(a - w->shared_base)
				: narrow(w, b, (uint32_t)(a - base_of(w, b)));
	case OBD_CLUSTER_MAP:
		return narrow(w, b, low & OFFSET_MASK);
	case OBD_CLUSTER_MAP_FLAT:
		low = rank_of(w, a);
		return low != ~0u && base_of(w, b) ? base_of(w, b) + (a - base_of(w, low)) : 0;
	case OBD_CLUSTER_RANK:
		return narrow_rank(w, low);
	default:
		return rank_of(w, a);
	}
}

void obd_cluster_address(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const char *a = regs + (size_t)in->a * OBD_SLOT_BYTES,
		   *b = regs + (size_t)in->b * OBD_SLOT_BYTES;
	uint64_t out[OBD_LANES] = { 0 };

	for (uint32_t r = m; r; r &= r - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(r);

		out[i] = value(w, in, ((const uint64_t *)(const void *)a)[i],
			in->b == OBD_NO_SLOT ? 0 : ((const uint32_t *)(const void *)b)[i]);
	}
	obd_write64(regs + (size_t)in->d * OBD_SLOT_BYTES, out, m);
}
