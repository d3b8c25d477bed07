/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/family.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/engine/family_inside.h"
#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/guard.h"
#include "softdevice/core/engine/worker.h"

#define HELP_DEPTH 16u /* workers on one thread that help one another */

static _Thread_local uint32_t help_depth;

static struct obd_node **number_bucket(struct obd_family *f, uint64_t number)
{
	return &f->numbers[number % OBD_FAMILY_BUCKETS];
}

struct obd_node *obd_family_find(const struct obd_family *f, uint64_t number)
{
	struct obd_node *n = number ? f->numbers[number % OBD_FAMILY_BUCKETS] : NULL;

	while (n && n->number != number)
		n = n->next_number;
	return n;
}

void obd_family_adopt(struct obd_node *n, struct obd_node *parent)
{
	struct obd_family *f = n->family;
	struct obd_node **bucket;

	n->number = ++f->numbers_given;
	n->parent = parent;
	bucket = number_bucket(f, n->number);
	n->next_number = *bucket;
	*bucket = n;
	f->n_nodes++;
}

bool obd_family_depend(struct obd_node *n, struct obd_node *on)
{
	struct obd_edge *edge = on ? malloc(sizeof(*edge)) : NULL;

	if (!on)
		return true;
	if (!edge)
		return false;
	*edge = (struct obd_edge){ .next = on->after, .to = n };
	on->after = edge;
	n->waits++;
	return true;
}

void obd_family_depend_undo(struct obd_node *on)
{
	struct obd_edge *edge = on ? on->after : NULL;

	if (!edge)
		return;
	on->after = edge->next;
	edge->to->waits--;
	free(edge);
}

static bool is_of(const struct obd_launch *l, const void *family)
{
	return l->node && l->node->family == family;
}

/* Of the same family as `own`, and another launch. */
static bool is_beside(const struct obd_launch *l, const void *own)
{
	return l != own && is_of(l, ((const struct obd_launch *)own)->node->family);
}

static void queue(struct obd_family *f, struct obd_node *n)
{
	n->next = NULL;
	*f->ready_end = n;
	f->ready_end = &n->next;
}

void obd_family_start(struct obd_node *n)
{
	struct obd_family *f = n->family;

	if (n->waits)
		return;
	if (n->kind != OBD_NODE_GRID || f->failed) {
		queue(f, n);
		return;
	}
	n->started = true;
	obd_pool_add(f->pool, &n->l);
	obd_pool_wake(f->pool);
}

static void forget(struct obd_node *n)
{
	struct obd_node **at = number_bucket(n->family, n->number);

	while (*at != n)
		at = &(*at)->next_number;
	*at = n->next_number;
	n->family->n_nodes--;
}

/*
 * The node is over: what waited for it starts, and so may its parent be over, and so on. The root
 * is freed by its thread.
 */
static void over(struct obd_node *n)
{
	while (n) {
		struct obd_family *f = n->family;
		struct obd_node *parent = n->parent;

		forget(n);
		for (struct obd_edge *e = n->after, *next; e; e = next) {
			next = e->next;
			e->to->waits--;
			obd_family_start(e->to);
			free(e);
		}
		if (!parent) {
			f->over = true;
			obd_pool_wake(f->pool);
			return;
		}
		free(n);
		parent->unfinished--;
		n = NULL;
		if (parent->ended && !parent->unfinished) {
			struct obd_node *tail = parent->tail;

			if (!tail) {
				n = parent;
				continue;
			}
			parent->tail = tail->next;
			parent->unfinished++;
			tail->waits--; /* it waited for this */
			obd_family_start(tail);
		}
	}
}

/* The grid's blocks have run, or it will not run. */
static void ended(struct obd_node *n)
{
	struct obd_node *tail = n->tail;

	n->ended = true;
	if (n->unfinished)
		return;
	if (!tail) {
		over(n);
		return;
	}
	n->tail = tail->next;
	n->unfinished++;
	tail->waits--;
	obd_family_start(tail);
}

static void uncount(struct obd_node *n)
{
	n->family->pending -= n->counted;
	n->counted = false;
}

void obd_family_fail(struct obd_family *f, const struct obd_fault *fault)
{
	if (f->failed)
		return;
	f->fault = *fault;
	f->failed = true;
	for (uint32_t i = 0; i < OBD_FAMILY_BUCKETS; i++)
		for (struct obd_node *n = f->numbers[i]; n; n = n->next_number) {
			if (n->kind != OBD_NODE_GRID || !n->started || n->ended)
				continue;
			atomic_store(&n->l.stop, 1);
			if (n->l.pool_refs) /* its workers leave it soon */
				continue;
			obd_pool_remove(f->pool, &n->l);
			queue(f, n);
		}
}

/* Called with the pool's lock when a worker enters the launch. */
static void worker_joined(struct obd_launch *l)
{
	uncount(l->node);
}

/* Called with the pool's lock when a worker has left the launch. */
static void worker_left(struct obd_launch *l)
{
	struct obd_node *n = l->node;
	struct obd_family *f = n->family;

	if (!obd_pool_is_over(l) || n->ended)
		return;
	obd_pool_remove(f->pool, l);
	obd_launch_close(l);
	n->ended = true; /* so that a failure does not end it as well */
	if (atomic_load(&l->fault_taken))
		obd_family_fail(f, &l->fault);
	ended(n);
	obd_family_settle(f);
}

/* ---- copies, fills, marks ---- */

static void rows_move(void *arg)
{
	const struct obd_rows *r = arg;

	for (size_t i = 0; i < r->height; i++) {
		char *to = (char *)(uintptr_t)(r->to + i * r->to_pitch);

		if (r->from)
			memmove(to, (char *)(uintptr_t)(r->from + i * r->from_pitch), r->width);
		else
			memset(to, r->value, r->width);
	}
}

static void rows_do(struct obd_node *n)
{
	const struct obd_env *env = &n->family->root->l.program->env;
	struct obd_fault fault = { .result = CUDA_ERROR_ILLEGAL_ADDRESS };
	bool ok;

	obd_pool_unlock(n->family->pool);
	ok = obd_guard_try(rows_move, &n->rows, env->window_base, env->window_size);
	obd_pool_lock(n->family->pool);
	if (ok)
		return;
	snprintf(fault.text, sizeof(fault.text),
		"a copy or fill that device code started accesses memory that is not there, kernel "
		"%.60s",
		n->parent->l.entry->pub.name);
	obd_family_fail(n->family, &fault);
}

void obd_family_settle(struct obd_family *f)
{
	struct obd_node *n;

	if (f->settling) /* the thread that does it goes on with what is new */
		return;
	f->settling = true;
	while ((n = f->ready)) {
		f->ready = n->next;
		if (!f->ready)
			f->ready_end = &f->ready;
		if (n->kind == OBD_NODE_ROWS && !f->failed)
			rows_do(n);
		if (n->kind == OBD_NODE_GRID) {
			uncount(n);
			obd_launch_close(&n->l);
			ended(n);
		} else {
			over(n);
		}
	}
	f->settling = false;
}

/* ---- running ---- */

static void run_one(struct obd_family *f, struct obd_launch *l)
{
	obd_pool_join(l);
	obd_pool_unlock(f->pool);
	obd_worker_run(l);
	obd_pool_lock(f->pool);
	obd_pool_leave(f->pool, l);
}

bool obd_family_is_deep(void)
{
	return help_depth >= HELP_DEPTH;
}

bool obd_family_can_help(const struct obd_launch *l)
{
	return help_depth < HELP_DEPTH && obd_pool_find(l->node->family->pool, is_beside, l);
}

/* Called by a worker between two turns: runs a grid of the family, if there is one to start. */
static void help(struct obd_launch *l)
{
	struct obd_family *f = l->node->family;
	struct obd_launch *other;

	help_depth++;
	obd_pool_lock(f->pool);
	other = obd_pool_find(f->pool, is_beside, l);
	if (other)
		run_one(f, other);
	obd_pool_unlock(f->pool);
	if (!other) /* another thread runs what the caller waits for */
		sched_yield();
	help_depth--;
}

/* Is it memory for parameters that device code writes? */
static bool owns(const struct obd_launch *l, uintptr_t at, size_t size)
{
	struct obd_family *f = l->node->family;
	bool found = false;

	obd_pool_lock(f->pool);
	for (uint32_t i = 0; i < OBD_FAMILY_BUCKETS && !found; i++)
		for (const struct obd_node *n = f->buffers[i]; n && !found; n = n->next) {
			size_t bytes = n->grid.kernel->param_bytes;
			uintptr_t o = at - (uintptr_t)n->l.params;

			found = o < bytes && size <= bytes - o;
		}
	obd_pool_unlock(f->pool);
	return found;
}

void obd_family_node_init(struct obd_node *n)
{
	n->tail_end = &n->tail;
	n->l.node = n;
	n->l.joined = worker_joined;
	n->l.left = worker_left;
	n->l.help = help;
	n->l.runtime = n->family->root->l.runtime;
	n->l.owns = owns;
}

static void buffers_free(struct obd_family *f)
{
	for (uint32_t i = 0; i < OBD_FAMILY_BUCKETS; i++)
		for (struct obd_node *n = f->buffers[i], *next; n; n = next) {
			next = n->next;
			obd_launch_close(&n->l);
			free(n);
		}
}

static void family_free(struct obd_family *f)
{
	const struct obd_env *env = &f->root->l.program->env;

	buffers_free(f);
	for (struct obd_family_text *t = f->texts, *next; t; t = next) {
		next = t->next;
		env->scratch_free(env->user, t->copy, t->size);
		free(t);
	}
	free(f->orders);
	free(f->root);
	free(f);
}

CUresult obd_family_run(struct obd_family *f, struct obd_fault *ret_fault)
{
	struct obd_launch *l;
	CUresult result;

	obd_pool_lock(f->pool);
	obd_family_adopt(f->root, NULL);
	obd_family_start(f->root);
	while (!f->over) {
		l = obd_pool_find(f->pool, is_of, f);
		if (l)
			run_one(f, l);
		else
			obd_pool_wait(f->pool);
	}
	obd_pool_unlock(f->pool);
	result = f->failed ? f->fault.result : CUDA_SUCCESS;
	if (result)
		*ret_fault = f->fault;
	family_free(f);
	return result;
}
