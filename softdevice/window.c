/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/window.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/log.h"
#include "softdevice/bitmap.h"
#include "softdevice/config.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

struct obd_window obd_window;

/*
 * One entry for each unit of the window. Pages of the table that are never written take no memory.
 */
static struct obd_span *_Atomic *table;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *taken;  /* one bit for each unit of the upper half; guarded by the lock */
static uint64_t n_units; /* number of units of the upper half */
static uint64_t hint;    /* where the next search starts; guarded by the lock */

static void *reserve(uint64_t at, uint64_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0);
	void *p = mmap((void *)at, size, PROT_NONE, flags, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* a kernel without MAP_FIXED_NOREPLACE treats the address as a hint */
	if (at && (uint64_t)p != at) {
		munmap(p, size);
		return NULL;
	}
	return p;
}

bool obd_window_start(uint64_t wanted)
{
	uint64_t size = OBD_WINDOW_SIZE, base;
	void *p = reserve(wanted ? wanted : OBD_WINDOW_BASE, size);

	/*
	 * Reserve at any address. Halve the size while the reservation fails, because of limits on
	 * the address space or a sanitizer. One extra unit makes room for alignment.
	 */
	while (!p && size >= OBD_WINDOW_MIN) {
		p = reserve(0, size + OBD_UNIT);
		if (!p)
			size /= 2;
	}
	if (!p) {
		ob_error("cannot reserve %llu GiB of addresses for the software device: raise the "
			 "limit on address space (ulimit -v)",
			OBD_WINDOW_MIN >> 30);
		return false;
	}
	base = ob_round_up((uint64_t)p, OBD_UNIT);
	n_units = size / 2 / OBD_UNIT;
	/*
	 * The C library gets a block of this size from mmap, so untouched pages take no memory. It
	 * is still allocated by calloc, so that a leak checker scans it.
	 */
	table = calloc(size / OBD_UNIT, sizeof *table);
	taken = calloc(OBD_BITMAP_WORDS(n_units), sizeof *taken);
	if (!table || !taken) {
		ob_error("cannot allocate the software device's tables: out of memory");
		return false;
	}
	obd_window = (struct obd_window){ .base = base, .size = size, .half = base + size / 2 };
	return true;
}

/* OBD_BITMAP_NONE: no run of n units is free. */
static uint64_t units_take(uint64_t n)
{
	uint64_t first;

	pthread_mutex_lock(&lock);
	first = obd_bitmap_find(taken, hint, n_units, n);
	if (first == OBD_BITMAP_NONE && hint)
		first = obd_bitmap_find(taken, 0, n_units, n);
	if (first != OBD_BITMAP_NONE) {
		obd_bitmap_set(taken, first, n, true);
		hint = first + n;
	}
	pthread_mutex_unlock(&lock);
	return first;
}

static void units_give(uint64_t first, uint64_t n)
{
	pthread_mutex_lock(&lock);
	obd_bitmap_set(taken, first, n, false);
	/*
	 * With the memory checker a freed address is reused as late as possible, to detect its use.
	 */
	if (!obd_config.memcheck)
		hint = ob_min(hint, first);
	pthread_mutex_unlock(&lock);
}

void obd_window_mark(uint64_t base, uint64_t size, struct obd_span *span)
{
	uint64_t first = (base - obd_window.base) / OBD_UNIT,
		 last = (base + size - 1 - obd_window.base) / OBD_UNIT;

	/* Release: a thread that finds the span also sees its contents. */
	for (uint64_t i = first; i <= last; i++)
		atomic_store_explicit(&table[i], span, memory_order_release);
}

struct obd_span *obd_window_span(uint64_t addr)
{
	if (!obd_window_holds(addr))
		return NULL;
	return atomic_load_explicit(
		&table[(addr - obd_window.base) / OBD_UNIT], memory_order_acquire);
}

uint64_t obd_window_take(struct obd_span *span, uint64_t size)
{
	uint64_t first, n, base, bytes = ob_round_up(size, OBD_PAGE);

	if (size == 0 || size > obd_window.size / 2)
		return 0;
	n = (bytes + OBD_PAGE + OBD_UNIT - 1) / OBD_UNIT;
	first = units_take(n);
	if (first == OBD_BITMAP_NONE)
		return 0;
	base = obd_window.half + first * OBD_UNIT;
	if (mprotect((void *)base, bytes, PROT_READ | PROT_WRITE) != 0) {
		units_give(first, n);
		return 0;
	}
	if (bytes >= OBD_UNIT)
		madvise((void *)base, bytes, MADV_HUGEPAGE);
	span->base = base;
	span->size = size;
	obd_window_mark(base, bytes, span);
	return base;
}

void obd_window_give(struct obd_span *span)
{
	uint64_t bytes = ob_round_up(span->size, OBD_PAGE),
		 n = (bytes + OBD_PAGE + OBD_UNIT - 1) / OBD_UNIT;

	obd_window_mark(span->base, bytes, NULL);
	/*
	 * A new mapping drops the pages and the access rights at once. If it fails, only the pages
	 * are dropped and the addresses stay accessible, which is harmless.
	 */
	if (mmap((void *)span->base, bytes, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		madvise((void *)span->base, bytes, MADV_DONTNEED);
	units_give((span->base - obd_window.half) / OBD_UNIT, n);
}
