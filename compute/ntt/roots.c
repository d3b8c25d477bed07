/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "compute/ntt/roots.h"

/*
 * Tables are made on demand and never move. The smallest has 2^FIRST_LOG entries. A longer table is
 * allocated separately; shorter ones stay valid.
 */
#define FIRST_LOG 12

static _Atomic(struct obk_fr *) tables[OBK_ROOTS_MAX_LOG + 1];
static _Atomic(struct obk_fr *) lane_tables[OBK_ROOTS_MAX_LOG + 1];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, lane_lock = PTHREAD_MUTEX_INITIALIZER;

static struct obk_fr *make(unsigned log_entries)
{
	struct obk_fr *t = malloc(sizeof(*t) << log_entries);

	if (!t)
		return NULL;
	t[0] = obk_fr_one;
	for (unsigned k = 0; k < log_entries; k++) {
		struct obk_fr w;

		obk_fr_root(&w, k + 2);
		for (size_t i = 0; i < (size_t)1 << k; i++)
			obk_fr_mul(&t[((size_t)1 << k) + i], &t[i], &w);
	}
	return t;
}

static struct obk_fr *make_lanes(unsigned log_entries)
{
	const struct obk_fr *roots = obk_roots_get(log_entries);
	struct obk_fr *t = roots ? malloc(sizeof(*t) << log_entries) : NULL, factor;

	obk_fr_from_plain(&factor, (uint64_t[4]){ OBK_ROOTS_TO_LANES });
	for (size_t i = 0; t && i < (size_t)1 << log_entries; i++)
		obk_fr_mul(&t[i], &roots[i], &factor);
	return t;
}

static const struct obk_fr *get(_Atomic(struct obk_fr *) *all, pthread_mutex_t *guard,
	unsigned log_entries, struct obk_fr *(*make_table)(unsigned))
{
	/* Only three sizes, so that all tables together are smaller than twice the largest. */
	unsigned size = log_entries <= FIRST_LOG ? FIRST_LOG
		: log_entries <= 16              ? 16
						 : OBK_ROOTS_MAX_LOG;
	struct obk_fr *t = atomic_load_explicit(&all[size], memory_order_acquire);

	if (t)
		return t;
	pthread_mutex_lock(guard);
	t = atomic_load_explicit(&all[size], memory_order_relaxed);
	if (!t) {
		t = make_table(size);
		/*
		 * release: pairs with the acquire above; the entries are written before the pointer
		 */
		atomic_store_explicit(&all[size], t, memory_order_release);
	}
	pthread_mutex_unlock(guard);
	return t;
}

const struct obk_fr *obk_roots_get(unsigned log_entries)
{
	return get(tables, &lock, log_entries, make);
}

const struct obk_fr *obk_roots_get_lanes(unsigned log_entries)
{
	return get(lane_tables, &lane_lock, log_entries, make_lanes);
}
