/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Points that were uploaded: what struct outboard_bases is inside. Shared by its user and the jobs
 * that use it; read-only but for the GPUs' copies.
 */
#ifndef OBV_BASES_H
#define OBV_BASES_H

#include <pthread.h>
#include <stdbool.h>

#include "compute/engine/outboard.h"
#include "compute/msm/msm.h"

struct outboard_bases {
	struct outboard *context;
	unsigned refs; /* under the context's lock */
	size_t count;
	enum obk_trust trust; /* after the check */
	size_t table_bytes;
	bool once; /* for one product; set before it */
	struct obk_msm_bases *cpu;
	struct obk_g1_affine *points; /* kept for uploads where there are GPUs, else NULL */
	pthread_mutex_t lock;         /* guards the list of copies */
	struct obv_bases_copy *copies;
};

/* The copy on one device, made by its first product there. */
struct obv_bases_copy {
	void *owner; /* the backend it belongs to */
	size_t bytes;
	void (*free)(struct obv_bases_copy *copy);
	struct obv_bases_copy *next;
};

/*
 * Points of G1, known to be that and copied, for products on the context's GPUs alone: no CPU may
 * be given work with them. OUTBOARD_NO_MEMORY.
 */
int obv_bases_for_gpus(struct outboard *context, const struct obk_g1_affine *points, size_t count,
	size_t table_bytes, struct outboard_bases **ret_bases, struct outboard_error *error);
void obv_bases_ref(struct outboard_bases *bases);
void obv_bases_unref(struct outboard_bases *bases);

static inline const struct obk_msm_bases *obv_bases_cpu(struct outboard_bases *bases)
{
	return bases->cpu;
}

#endif
