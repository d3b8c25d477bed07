/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The second part of obd_family: what device code calls. */
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/engine/family_inside.h"

#define FIRST_HANDLE 0x100u /* lower numbers are the named streams */

static struct obd_node *node_of(const struct obd_cta *c)
{
	return c->launch->node;
}

static struct obd_node *node_new(struct obd_family *f, enum obd_node_kind kind)
{
	struct obd_node *n = calloc(1, sizeof(*n));

	if (n) {
		n->family = f;
		n->kind = kind;
	}
	return n;
}

/* ---- streams and events ---- */

static struct obd_order *order_of(struct obd_family *f, uint64_t handle, bool is_event)
{
	uint64_t i = handle - FIRST_HANDLE;

	if (handle < FIRST_HANDLE || i >= f->n_orders || !f->orders[i].used ||
		f->orders[i].is_event != is_event)
		return NULL;
	return &f->orders[i];
}

static bool orders_grow(struct obd_family *f)
{
	uint32_t max = f->max_orders ? f->max_orders * 2 : 64;
	struct obd_order *orders;

	if (f->n_orders < f->max_orders)
		return true;
	if (max > OBD_FAMILY_MAX_STREAMS)
		return false;
	orders = realloc(f->orders, max * sizeof(*orders));
	if (!orders)
		return false;
	f->orders = orders;
	f->max_orders = max;
	return true;
}

uint64_t obd_family_stream_new(struct obd_cta *c, bool is_event)
{
	struct obd_family *f = node_of(c)->family;
	uint64_t handle = 0;
	uint32_t i = 0;

	obd_pool_lock(f->pool);
	if (f->free_order) {
		i = f->free_order - 1;
		f->free_order = f->orders[i].next_free;
		handle = i + FIRST_HANDLE;
	} else if (orders_grow(f)) {
		i = f->n_orders++;
		handle = i + FIRST_HANDLE;
	}
	if (handle)
		f->orders[i] = (struct obd_order){ .used = true, .is_event = is_event };
	obd_pool_unlock(f->pool);
	return handle;
}

CUresult obd_family_stream_free(struct obd_cta *c, uint64_t handle, bool is_event)
{
	struct obd_family *f = node_of(c)->family;
	struct obd_order *order;

	obd_pool_lock(f->pool);
	order = order_of(f, handle, is_event);
	if (order) {
		order->used = false;
		order->next_free = f->free_order;
		f->free_order = (uint32_t)(order - f->orders) + 1;
	}
	obd_pool_unlock(f->pool);
	return order ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/*
 * Where the number of the stream's last node is kept. *ret NULL: the stream has no order. False:
 * there is no such stream.
 */
static bool stream_last(struct obd_cta *c, uint64_t stream, uint64_t **ret)
{
	struct obd_order *order;

	*ret = NULL;
	switch (stream) {
	case OBD_STREAM_NULL:
	case OBD_STREAM_LEGACY:
	case OBD_STREAM_PER_THREAD:
		*ret = &c->null_last;
		return true;
	case OBD_STREAM_TAIL:
	case OBD_STREAM_FORGET:
		return true;
	default:
		order = order_of(node_of(c)->family, stream, false);
		*ret = order ? &order->last : NULL;
		return order != NULL;
	}
}

/*
 * Locked. Submits the node for the stream. It belongs to the family, unless an error is returned.
 */
static CUresult submit(
	struct obd_cta *c, struct obd_node *n, uint64_t stream, struct obd_node *after)
{
	struct obd_node *parent = node_of(c);
	struct obd_family *f = parent->family;
	uint64_t *last;

	if (!stream_last(c, stream, &last))
		return CUDA_ERROR_INVALID_HANDLE;
	if (f->n_nodes >= OBD_FAMILY_MAX_NODES)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	n->block = c->index;
	if (stream == OBD_STREAM_TAIL) {
		n->waits++;
		*parent->tail_end = n;
		parent->tail_end = &n->next;
		obd_family_adopt(n, parent);
		return CUDA_SUCCESS;
	}
	if (!obd_family_depend(n, after))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!obd_family_depend(n, last ? obd_family_find(f, *last) : NULL)) {
		obd_family_depend_undo(after);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	obd_family_adopt(n, parent);
	parent->unfinished++;
	if (last)
		*last = n->number;
	obd_family_start(n);
	obd_family_settle(f);
	return CUDA_SUCCESS;
}

static CUresult mark(struct obd_cta *c, uint64_t stream, uint64_t after)
{
	struct obd_family *f = node_of(c)->family;
	struct obd_node *n = node_new(f, OBD_NODE_MARK);
	CUresult result;

	if (!n)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = submit(c, n, stream, obd_family_find(f, after));
	if (result)
		free(n);
	return result;
}

CUresult obd_family_record(struct obd_cta *c, uint64_t event, uint64_t stream)
{
	struct obd_family *f = node_of(c)->family;
	struct obd_order *order;
	CUresult result = CUDA_ERROR_INVALID_HANDLE;
	uint64_t *last;

	obd_pool_lock(f->pool);
	order = order_of(f, event, true);
	if (order && stream_last(c, stream, &last) && last) {
		order->last = *last;
		result = CUDA_SUCCESS;
	}
	obd_pool_unlock(f->pool);
	return result;
}

CUresult obd_family_wait(struct obd_cta *c, uint64_t stream, uint64_t event)
{
	struct obd_family *f = node_of(c)->family;
	struct obd_order *order;
	CUresult result = CUDA_ERROR_INVALID_HANDLE;
	uint64_t *last;

	obd_pool_lock(f->pool);
	order = order_of(f, event, true);
	if (order && stream_last(c, stream, &last) && last)
		result = mark(c, stream, order->last);
	obd_pool_unlock(f->pool);
	return result;
}

/* ---- launches ---- */

static struct obd_node **buffer_bucket(struct obd_family *f, const void *buffer)
{
	return &f->buffers[((uintptr_t)buffer >> 6) % OBD_FAMILY_BUCKETS];
}

bool obd_family_has_room(struct obd_cta *c, uint32_t n)
{
	struct obd_family *f = node_of(c)->family;
	bool wait;

	obd_pool_lock(f->pool);
	wait = f->pending + n > f->limit && !f->failed && obd_family_can_help(c->launch);
	obd_pool_unlock(f->pool);
	return !wait;
}

enum obd_family_wait_result obd_family_block_wait(struct obd_cta *c)
{
	struct obd_node *parent = node_of(c);
	struct obd_family *f = parent->family;
	bool busy = false;

	obd_pool_lock(f->pool);
	for (uint32_t i = 0; i < OBD_FAMILY_BUCKETS && !busy && parent->unfinished; i++)
		for (const struct obd_node *n = f->numbers[i]; n && !busy; n = n->next_number)
			busy = n->parent == parent && n->block == c->index;
	obd_pool_unlock(f->pool);
	if (!busy)
		return OBD_FAMILY_IDLE;
	return obd_family_is_deep() ? OBD_FAMILY_TOO_DEEP : OBD_FAMILY_BUSY;
}

void *obd_family_buffer(struct obd_cta *c, const struct obd_grid *grid, CUresult *ret_result)
{
	struct obd_family *f = node_of(c)->family;
	struct obd_node *n = node_new(f, OBD_NODE_GRID), **bucket;
	struct obd_fault fault;

	if (!n) {
		*ret_result = CUDA_ERROR_OUT_OF_MEMORY;
		return NULL;
	}
	n->grid = *grid;
	n->grid.params = NULL;
	*ret_result = obd_launch_open(f->pool, &n->l, &n->grid, &fault);
	if (*ret_result) {
		free(n);
		return NULL;
	}
	obd_family_node_init(n);
	obd_pool_lock(f->pool);
	if (f->pending >= f->limit) {
		*ret_result = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	} else {
		f->pending++;
		n->counted = true;
		bucket = buffer_bucket(f, n->l.params);
		n->next = *bucket;
		*bucket = n;
	}
	obd_pool_unlock(f->pool);
	if (*ret_result) {
		obd_launch_close(&n->l);
		free(n);
		return NULL;
	}
	return n->l.params;
}

static struct obd_node *buffer_take(struct obd_family *f, const void *buffer)
{
	struct obd_node **at = buffer_bucket(f, buffer), *n;

	while (*at && (*at)->l.params != buffer)
		at = &(*at)->next;
	n = *at;
	if (n) {
		*at = n->next;
		n->next = NULL;
	}
	return n;
}

CUresult obd_family_launch(struct obd_cta *c, void *buffer, uint64_t stream)
{
	struct obd_family *f = node_of(c)->family;
	struct obd_node *n;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	obd_pool_lock(f->pool);
	n = buffer_take(f, buffer);
	if (n) {
		n->grid.grid_id = c->launch->grid->grid_id + ((f->numbers_given + 1) << 32);
		result = submit(c, n, stream, NULL);
	}
	if (result && n) {
		f->pending--;
		obd_launch_close(&n->l);
		free(n);
	}
	obd_pool_unlock(f->pool);
	return result;
}

CUresult obd_family_rows(struct obd_cta *c, const struct obd_rows *rows, uint64_t stream)
{
	struct obd_family *f = node_of(c)->family;
	struct obd_node *n = node_new(f, OBD_NODE_ROWS);
	CUresult result;

	if (!n)
		return CUDA_ERROR_OUT_OF_MEMORY;
	n->rows = *rows;
	obd_pool_lock(f->pool);
	result = submit(c, n, stream, NULL);
	obd_pool_unlock(f->pool);
	if (result)
		free(n);
	return result;
}

const char *obd_family_text(struct obd_cta *c, const char *text)
{
	struct obd_family *f = node_of(c)->family;
	const struct obd_env *env = &c->launch->program->env;
	struct obd_family_text *t;

	obd_pool_lock(f->pool);
	for (t = f->texts; t && t->from != text;)
		t = t->next;
	if (!t && (t = calloc(1, sizeof(*t)))) {
		t->from = text;
		t->size = (strlen(text) + 64) & ~(size_t)63;
		t->copy = env->scratch_alloc(env->user, t->size, 64);
		if (t->copy) {
			strcpy(t->copy, text);
			t->next = f->texts;
			f->texts = t;
		} else {
			free(t);
			t = NULL;
		}
	}
	obd_pool_unlock(f->pool);
	return t ? t->copy : NULL;
}
