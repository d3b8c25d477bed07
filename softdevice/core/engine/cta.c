/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/cta.h"

#include <stdlib.h>
#include <string.h>

#include "softdevice/core/engine/barrier.h"
#include "softdevice/core/engine/cluster.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/frame.h"
#include "softdevice/core/engine/warp.h"

/*
 * A turn of a block ends after this many rounds over all of its warps, or earlier if all warps that
 * ran are spinning. A round in which a warp did more than a short turn counts as OBD_TURN_SLICES.
 */
#define TURN_ROUNDS  (64 * OBD_TURN_SLICES)
#define LOCAL_ALIGN  256u
#define SHARED_ALIGN 1024u

void obd_cta_free(struct obd_cta *c)
{
	const struct obd_env *env;

	if (!c)
		return;
	env = &c->launch->program->env;
	if (c->shared)
		env->scratch_free(env->user, c->shared, c->launch->shared_size);
	if (c->local)
		env->scratch_free(env->user, c->local, c->local_size);
	free(c->warps);
	free(c);
}

/*
 * From one thread's local memory to the next one's. The threads of a warp mostly access the same
 * offset. An odd number of units spreads these cells over the sets of a cache.
 */
static uint32_t local_stride(uint32_t bytes)
{
	return bytes ? (bytes + LOCAL_ALIGN - 1) / LOCAL_ALIGN * LOCAL_ALIGN | LOCAL_ALIGN : 0;
}

struct obd_cta *obd_cta_new(struct obd_worker *wk)
{
	struct obd_launch *l = wk->launch;
	const struct obd_env *env = &l->program->env;
	const uint32_t *dim = l->grid->block;
	struct obd_cta *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->launch = l;
	c->worker = wk;
	for (uint32_t i = 0; i < OBD_MAX_BARRIERS; i++)
		obd_barrier_reset(&c->barriers[i]);
	c->n_threads = dim[0] * dim[1] * dim[2];
	c->n_warps = (c->n_threads + OBD_LANES - 1) / OBD_LANES;
	uint32_t stride = local_stride(l->entry->stack_bytes);

	c->local_size = (size_t)stride * c->n_warps * OBD_LANES;
	c->warps = aligned_alloc(64, c->n_warps * sizeof(struct obd_warp));
	c->shared = env->scratch_alloc(env->user, l->shared_size, SHARED_ALIGN);
	if (c->local_size)
		c->local = env->scratch_alloc(env->user, c->local_size, LOCAL_ALIGN);
	if (!c->warps || !c->shared || (c->local_size && !c->local)) {
		obd_cta_free(c);
		return NULL;
	}
	for (uint32_t i = 0; i < OBD_LANES; i++)
		c->first_sp[i] = l->func->local_bytes;
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
		w->shared_alone = true;
		for (uint32_t i = 0; i < OBD_LANES; i++) {
			uint32_t t = k * OBD_LANES + i;

			w->tid[0][i] = t % dim[0];
			w->tid[1][i] = t / dim[0] % dim[1];
			w->tid[2][i] = t / dim[0] / dim[1];
			w->born |= t < c->n_threads ? 1u << i : 0;
			w->lbase[i] = (uint64_t)(uintptr_t)c->local + (uint64_t)t * stride;
		}
	}
	return c;
}

void obd_cta_start(struct obd_cta *c, uint64_t index)
{
	const uint32_t *g = c->launch->grid->grid;

	c->index = index;
	c->ctaid[0] = (uint32_t)index;
	c->ctaid[1] = c->ctaid[2] = 0;
	if (index >= g[0]) {
		c->ctaid[0] = (uint32_t)(index % g[0]);
		c->ctaid[1] = (uint32_t)(index / g[0] % g[1]);
		c->ctaid[2] = (uint32_t)(index / g[0] / g[1]);
	}
	for (int i = 0; i < 3; i++)
		c->first_thread[i] = c->ctaid[i] * c->launch->grid->block[i];
	c->n_live = c->n_threads;
	c->null_last = 0;
	for (uint32_t i = 0; c->arrived; i++, c->arrived >>= 1)
		if (c->arrived & 1)
			obd_barrier_reset(&c->barriers[i]);
	for (uint32_t k = 0; k < c->n_warps; k++)
		c->warps[k].state = OBD_WARP_FRESH;
}

/*
 * Puts the warp at the kernel's first instruction. This happens at its first turn: if the warps
 * before it have ended by then, it takes their registers, which are in the cache.
 */
static bool start_warp(struct obd_warp *w)
{
	const struct obd_func *f = w->cta->launch->func;
	struct obd_frame *fr = w->worker->first_frame;
	struct obd_path *p = &w->paths[0];

	w->worker->first_frame = NULL;
	if (!fr) {
		fr = obd_frame_get(w, f);
		if (!fr)
			return false;
		fr->refs = 1;
	}
	if (w->cta->launch->program->launches)
		memset(w->errors, 0, sizeof(w->errors));
	w->cluster_arrived = 0;
	w->live = w->born;
	w->steps = 0;
	w->n_paths = 1;
	p->pc = f->code;
	p->frame = fr;
	p->mask = w->born;
	p->state = OBD_PATH_RUN;
	p->yielded = false;
	w->state = OBD_WARP_READY;
	w->yield = false;
	if (w->stack_bytes) { /* otherwise both are always 0 */
		memcpy(w->sp, w->cta->first_sp, sizeof(w->sp));
		memset(fr->fp, 0, sizeof(w->sp));
	}
	return true;
}

static void report_deadlock(struct obd_cta *c)
{
	for (uint32_t k = 0; k < c->n_warps; k++) {
		struct obd_warp *w = &c->warps[k];

		if (w->state != OBD_WARP_BLOCKED)
			continue;
		w->cur = &w->paths[0];
		obd_fault_raise(w, w->cur->pc, w->cur->mask, CUDA_ERROR_LAUNCH_FAILED,
			"deadlock: all live threads of the block wait at barriers or for other "
			"lanes of their warp");
	}
}

static bool is_aborted(const struct obd_launch *l)
{
	return l->grid->abort && atomic_load_explicit(l->grid->abort, memory_order_relaxed);
}

enum obd_cta_turn obd_cta_run(struct obd_cta *c)
{
	struct obd_launch *l = c->launch;

	/* here too: the blocks of a grid, or of grids that launch one another, may all be short */
	if (is_aborted(l)) {
		obd_fault_abort(l);
		return OBD_TURN_STOP;
	}
	for (uint32_t rounds = 0; rounds < TURN_ROUNDS;) {
		uint32_t done = 0, ran = 0, spinning = 0, sliced = 0;

		for (uint32_t k = 0; k < c->n_warps; k++) {
			struct obd_warp *w = &c->warps[k];

			if (w->state == OBD_WARP_FRESH && !start_warp(w)) {
				obd_fault_memory(l);
				return OBD_TURN_STOP;
			}
			if (w->state == OBD_WARP_READY) {
				ran++;
				c->worker->cur_warp = w;
				w->spinning = 0;
				obd_warp_run(w);
				spinning += w->state == OBD_WARP_READY && w->spinning;
				sliced += w->sliced;
				if (atomic_load_explicit(&l->stop, memory_order_relaxed))
					return OBD_TURN_STOP;
			}
			done += w->state == OBD_WARP_DONE;
		}
		if (done == c->n_warps)
			return OBD_TURN_DONE;
		if (is_aborted(l)) {
			obd_fault_abort(l);
			return OBD_TURN_STOP;
		}
		if (!ran && c->cluster && obd_cluster_can_run(c))
			return OBD_TURN_MORE;
		if (!ran)
			report_deadlock(c);
		if (spinning && spinning == ran)
			return OBD_TURN_MORE;
		rounds += sliced == ran ? 1 : OBD_TURN_SLICES;
	}
	return OBD_TURN_MORE;
}
