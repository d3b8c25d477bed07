/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/cluster_run.h"

#include <stdlib.h>

#include "softdevice/core/engine/cluster.h"
#include "softdevice/core/engine/cta.h"
#include "softdevice/core/engine/fault.h"

static struct obd_cluster *cluster_new(struct obd_worker *wk)
{
	struct obd_cluster *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->size = wk->launch->cluster_size;
	k->next_all = wk->clusters;
	wk->clusters = k;
	for (uint32_t r = 0; r < k->size; r++) {
		k->ctas[r] = obd_cta_new(wk);
		if (!k->ctas[r])
			return NULL; /* the worker frees the rest */
		k->ctas[r]->cluster = k;
		k->ctas[r]->rank = r;
	}
	return k;
}

/* The index in the grid of the block with this rank in cluster number `cluster`. */
static uint64_t block_index(const struct obd_launch *l, uint64_t cluster, uint32_t rank)
{
	const uint32_t *g = l->grid->grid, *k = l->cluster;
	uint64_t nx = g[0] / k[0], ny = g[1] / k[1];
	uint64_t x = cluster % nx * k[0] + rank % k[0],
		 y = cluster / nx % ny * k[1] + rank / k[0] % k[1],
		 z = cluster / nx / ny * k[2] + rank / k[0] / k[1];

	return x + g[0] * (y + g[1] * z);
}

struct obd_cta *obd_cluster_take(struct obd_worker *wk)
{
	struct obd_launch *l = wk->launch;
	uint64_t first = atomic_load_explicit(&l->next_cta, memory_order_relaxed);
	struct obd_cluster *k = wk->free_clusters;
	struct obd_cta **end = &wk->ctas;

	do {
		if (first >= l->n_ctas)
			return NULL;
	} while (!atomic_compare_exchange_weak(&l->next_cta, &first, first + l->cluster_size));
	if (k)
		wk->free_clusters = k->next_free;
	else
		k = cluster_new(wk);
	if (!k) {
		obd_fault_memory(l);
		return NULL;
	}
	for (uint32_t r = 0; r < k->size; r++)
		obd_cta_start(k->ctas[r], block_index(l, first / l->cluster_size, r));
	k->done = k->arrived = 0;
	k->live = k->size * k->ctas[0]->n_threads;
	while (*end)
		end = &(*end)->next;
	for (uint32_t r = 1; r < k->size; r++) {
		*end = k->ctas[r];
		end = &k->ctas[r]->next;
	}
	*end = NULL;
	wk->n_ctas += k->size;
	return k->ctas[0];
}

void obd_cluster_block_done(struct obd_worker *wk, struct obd_cta *c)
{
	struct obd_cluster *k = c->cluster;

	/* the others may still access the block's shared memory */
	if (++k->done < k->size)
		return;
	k->next_free = wk->free_clusters;
	wk->free_clusters = k;
}

void obd_cluster_free_all(struct obd_worker *wk)
{
	for (struct obd_cluster *k = wk->clusters, *next; k; k = next) {
		next = k->next_all;
		for (uint32_t r = 0; r < k->size; r++)
			obd_cta_free(k->ctas[r]);
		free(k);
	}
}
