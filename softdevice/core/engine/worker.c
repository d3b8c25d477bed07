/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/worker.h"

#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "softdevice/core/engine/cluster_run.h"
#include "softdevice/core/engine/cta.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/frame.h"
#include "softdevice/core/engine/stats.h"

/*
 * Reserves the numbers of the next blocks: several while many are left, because neighbours mostly
 * access neighbouring memory. It never reserves more than it can hold at once: no other worker
 * starts them, and running blocks may wait for them.
 */
static bool take_numbers(struct obd_worker *wk)
{
	struct obd_launch *l = wk->launch;
	uint64_t first = atomic_load_explicit(&l->next_cta, memory_order_relaxed), n;
	uint64_t room = l->resident_limit - wk->n_ctas; /* at least 1, see work */

	do {
		if (first >= l->n_ctas)
			return false;
		n = (l->n_ctas - first) / l->n_parts;
		n = n < 1 ? 1 : n > room ? room : n;
	} while (!atomic_compare_exchange_weak(&l->next_cta, &first, first + n));
	wk->next_cta = first;
	wk->end_cta = first + n;
	return true;
}

/* Starts the next block of the launch. NULL: all are started, or there is no memory for another. */
static struct obd_cta *take_cta(struct obd_worker *wk)
{
	struct obd_launch *l = wk->launch;

	if (l->cluster_size > 1)
		return obd_cluster_take(wk);
	if (wk->next_cta == wk->end_cta && !take_numbers(wk))
		return NULL;
	struct obd_cta *c = wk->free_ctas;

	if (c)
		wk->free_ctas = c->next;
	else
		c = obd_cta_new(wk);
	if (!c) {
		obd_fault_memory(l);
		return NULL;
	}
	obd_cta_start(c, wk->next_cta++);
	wk->n_ctas++;
	return c;
}

static void note_steps(struct obd_worker *wk, const struct obd_cta *c)
{
	for (uint32_t k = 0; k < c->n_warps; k++)
		if (c->warps[k].steps > wk->longest)
			wk->longest = c->warps[k].steps;
}

static void add_steps(struct obd_launch *l, uint64_t longest)
{
	uint64_t seen = atomic_load_explicit(&l->longest, memory_order_relaxed);

	/* Relaxed: the value is read after all workers have returned. */
	while (longest > seen &&
		!atomic_compare_exchange_weak_explicit(
			&l->longest, &seen, longest, memory_order_relaxed, memory_order_relaxed))
		;
}

static void append(struct obd_cta **list, struct obd_cta *c)
{
	while (*list)
		list = &(*list)->next;
	*list = c;
	c->next = NULL;
}

static void prepend(struct obd_cta **list, struct obd_cta *c)
{
	c->next = *list;
	*list = c;
}

/* Runs the first block of the list until no block is left. */
static void work(struct obd_worker *wk)
{
	struct obd_launch *l = wk->launch;

	while (!atomic_load_explicit(&l->stop, memory_order_relaxed)) {
		struct obd_cta *c = wk->ctas, *fresh;

		if (!c) {
			c = take_cta(wk);
			if (!c)
				return;
			prepend(&wk->ctas, c);
		}
		switch (obd_cta_run(c)) {
		case OBD_TURN_STOP:
			return;
		case OBD_TURN_DONE:
			note_steps(wk, c);
			wk->ctas = c->next;
			wk->n_ctas--;
			if (c->cluster)
				obd_cluster_block_done(wk, c);
			else
				prepend(&wk->free_ctas, c);
			break;
		case OBD_TURN_MORE:
			if (wk->wants_help) {
				wk->wants_help = false;
				l->help(l);
				obd_fault_enter(wk); /* help has run another worker */
			}
			wk->ctas = c->next;
			append(&wk->ctas, c);
			fresh = wk->n_ctas < l->resident_limit ? take_cta(wk) : NULL;
			if (fresh) /* a new block runs before those that have had a turn */
				prepend(&wk->ctas, fresh);
			break;
		}
	}
}

static void free_list(struct obd_cta *c)
{
	for (struct obd_cta *next; c; c = next) {
		next = c->next;
		obd_cta_free(c);
	}
}

static void worker_free(struct obd_worker *wk)
{
	if (wk->launch->cluster_size > 1)
		obd_cluster_free_all(wk);
	else
		free_list(wk->ctas);
	free_list(wk->free_ctas);
	obd_frame_free_all(wk);
	free(wk->free_frames);
	obd_stats_add(wk->lane_instructions);
	add_steps(wk->launch, wk->longest);
	free(wk);
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
	int jump = sigsetjmp(wk->jmp, 0);

	if (jump == 0) {
		obd_fault_enter(wk);
		work(wk);
	} else if (jump == OBD_JUMP_SIGNAL) {
		obd_fault_from_signal(wk);
	}
	obd_fault_leave();
#if defined(__x86_64__)
	_mm_setcsr(csr);
#endif
	worker_free(wk);
}
