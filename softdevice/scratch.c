/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/scratch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "softdevice/address.h"
#include "softdevice/window.h"

#define SMALLEST_SHIFT 12
#define CLASSES        32
#define SLAB_BYTES     (OBD_UNIT - OBD_PAGE)

_Static_assert(OBD_SCRATCH_SMALLEST == 1u << SMALLEST_SHIFT, "the first class");

struct stack {
	uint64_t *pieces;
	size_t n, max;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* free pieces of OBD_SCRATCH_SMALLEST << i bytes */
static struct stack stacks[CLASSES];
static uint64_t free_large;      /* bytes of free large pieces */
static uint64_t slab, slab_left; /* the unused rest of the newest slab */

static unsigned class_of(size_t size)
{
	return size <= OBD_SCRATCH_SMALLEST
		? 0
		: (unsigned)(64 - __builtin_clzll((unsigned long long)size - 1)) - SMALLEST_SHIFT;
}

static bool stack_reserve(struct stack *s)
{
	size_t max = s->max ? s->max * 2 : 64;
	uint64_t *more;

	if (s->n < s->max)
		return true;
	more = realloc(s->pieces, max * sizeof *more);
	if (!more)
		return false;
	s->pieces = more;
	s->max = max;
	return true;
}

static uint64_t span_take(uint64_t size)
{
	struct obd_span *span = calloc(1, sizeof *span);
	uint64_t base;

	if (!span)
		return 0;
	span->kind = OBD_SPAN_SCRATCH;
	base = obd_window_take(span, size);
	if (!base)
		free(span);
	return base;
}

/*
 * Cuts a small piece from a slab. Called with the lock held. A slab begins at a unit and its unused
 * rest is a multiple of a page, so a piece is aligned to a page.
 */
static uint64_t small_cut(size_t size)
{
	uint64_t piece;

	if (slab_left < size) {
		slab = span_take(SLAB_BYTES);
		slab_left = slab ? SLAB_BYTES : 0;
	}
	if (slab_left < size)
		return 0;
	piece = slab;
	slab += size;
	slab_left -= size;
	return piece;
}

void *obd_scratch_alloc(void *user, size_t size, size_t align)
{
	unsigned c = class_of(size);
	size_t bytes;
	uint64_t piece = 0;

	(void)user;
	if (c >= CLASSES || align > OBD_PAGE)
		return NULL;
	bytes = (size_t)OBD_SCRATCH_SMALLEST << c;
	pthread_mutex_lock(&lock);
	if (stacks[c].n > 0) {
		piece = stacks[c].pieces[--stacks[c].n];
		free_large -= bytes > OBD_SCRATCH_SMALL_MAX ? bytes : 0;
	} else if (bytes <= OBD_SCRATCH_SMALL_MAX) {
		piece = small_cut(bytes);
	}
	pthread_mutex_unlock(&lock);
	if (!piece && bytes > OBD_SCRATCH_SMALL_MAX)
		piece = span_take(bytes);
	return (void *)piece;
}

static void span_give(uint64_t piece)
{
	struct obd_span *span = obd_address_classify(piece, 1).span;

	obd_window_give(span);
	/* No thread looks up the span any more: only kernels that have ended did so. */
	free(span);
}

void obd_scratch_free(void *user, void *p, size_t size)
{
	unsigned c = class_of(size);
	size_t bytes;
	bool large, keep;

	(void)user;
	if (!p || c >= CLASSES)
		return;
	bytes = (size_t)OBD_SCRATCH_SMALLEST << c;
	large = bytes > OBD_SCRATCH_SMALL_MAX;
	pthread_mutex_lock(&lock);
	keep = (!large || free_large + bytes <= OBD_SCRATCH_KEEP_MAX) && stack_reserve(&stacks[c]);
	if (keep) {
		stacks[c].pieces[stacks[c].n++] = (uint64_t)p;
		free_large += large ? bytes : 0;
	}
	pthread_mutex_unlock(&lock);
	/* If the list cannot grow, a small piece is leaked: it is never reused. */
	if (!keep && large)
		span_give((uint64_t)p);
}
