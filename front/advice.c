/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/advice.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* Sorted by address, without overlaps. Addresses in no part have no advice. */
static struct part {
	uint64_t base, end;
	struct obf_advice advice;
} * parts;
static size_t n_parts, capacity;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Room for `more` further parts. */
static bool room(size_t more)
{
	size_t wanted = 2 * (n_parts + more);
	struct part *larger;

	if (n_parts + more <= capacity)
		return true;
	larger = realloc(parts, wanted * sizeof *parts);
	if (!larger)
		return false;
	parts = larger;
	capacity = wanted;
	return true;
}

/* Index of the first part that ends above addr. */
static size_t part_at(uint64_t addr)
{
	size_t at = 0;

	while (at < n_parts && parts[at].end <= addr)
		at++;
	return at;
}

static void insert(size_t at, uint64_t base, uint64_t end, const struct obf_advice *advice)
{
	struct obf_advice copy = *advice;

	memmove(parts + at + 1, parts + at, (n_parts - at) * sizeof *parts);
	parts[at] = (struct part){ base, end, copy };
	n_parts++;
}

/* Makes addr a border between parts if it is inside of one. */
static void split(uint64_t addr)
{
	size_t at = part_at(addr);

	if (at == n_parts || parts[at].base >= addr)
		return;
	insert(at, parts[at].base, addr, &parts[at].advice);
	parts[at + 1].base = addr;
}

/* After split: parts of [addr, end) that have none get an empty one. */
static void fill(uint64_t addr, uint64_t end)
{
	const struct obf_advice none = { 0 };

	for (size_t at = part_at(addr); addr < end; at++) {
		uint64_t next = at < n_parts ? ob_min(parts[at].base, end) : end;

		if (addr < next)
			insert(at, addr, next, &none);
		addr = parts[at].end;
	}
}

bool obf_advice_change(uint64_t addr, uint64_t size,
	void (*change)(void *user, struct obf_advice *advice), void *user)
{
	bool ok;

	pthread_mutex_lock(&lock);
	/* Two borders, and a gap before, between and after all parts. */
	ok = room(n_parts + 3);
	if (ok) {
		split(addr);
		split(addr + size);
		fill(addr, addr + size);
		for (size_t at = part_at(addr); at < n_parts && parts[at].base < addr + size; at++)
			change(user, &parts[at].advice);
	}
	pthread_mutex_unlock(&lock);
	return ok;
}

void obf_advice_see(uint64_t addr, uint64_t size,
	void (*see)(void *user, const struct obf_advice *advice), void *user)
{
	const struct obf_advice none = { 0 };
	uint64_t end = addr + size;

	pthread_mutex_lock(&lock);
	for (size_t at = part_at(addr); addr < end; at++) {
		if (at == n_parts || parts[at].base >= end) {
			see(user, &none);
			break;
		}
		if (addr < parts[at].base)
			see(user, &none);
		see(user, &parts[at].advice);
		addr = parts[at].end;
	}
	pthread_mutex_unlock(&lock);
}

void obf_advice_forget(uint64_t addr, uint64_t size)
{
	size_t first, last;

	pthread_mutex_lock(&lock);
	/* Advice lies within one allocation, so no part crosses its ends. */
	first = last = part_at(addr);
	while (last < n_parts && parts[last].base < addr + size)
		last++;
	if (last > first)
		memmove(parts + first, parts + last, (n_parts - last) * sizeof *parts);
	n_parts -= last - first;
	pthread_mutex_unlock(&lock);
}
