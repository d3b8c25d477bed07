/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Uploaded points: the contents of struct outboard_bases. The user's handle and the jobs that use
 * it share ownership. Read-only, except for the list of copies on GPUs.
 */
#ifndef OBV_BASES_H
#define OBV_BASES_H

#include <pthread.h>
#include <stdbool.h>

#include "compute/engine/outboard.h"
#include "compute/msm/msm.h"

struct outboard_bases {
	struct outboard *context;
	unsigned refs; /* guarded by the context's lock */
	size_t count;
	enum obk_trust trust; /* after the check */
	size_t table_bytes;
	bool once; /* for one product only; set before the product starts */
	struct obk_msm_bases *cpu;
	struct obk_g1_affine *points; /* kept for uploads if there are GPUs, else NULL */
	pthread_mutex_t lock;         /* guards the list of copies */
	struct obv_bases_copy *copies;
};

/* The copy on one device. The first product on that device makes it. */
struct obv_bases_copy {
	void *owner; /* the backend that owns it */
	size_t bytes;
	void (*free)(struct obv_bases_copy *copy);
	struct obv_bases_copy *next;
};

/*
 * Makes a handle for products on the context's GPUs only; no CPU may be given work with it. The
 * points must be in G1, which is not checked; they are copied. OUTBOARD_NO_MEMORY.
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
