/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Inside the multi-scalar product: what bases hold and how one call is laid out. A product is cut
 * into `sets` of buckets; set g takes the windows g, g + sets, g + 2 sets, ... of every scalar,
 * window w on the shifted copy w / sets of the bases. Without a table there is one copy and a set
 * per window.
 *
 *     entries   one per scalar (half) and window whose digit is not 0: a reference to a base, with
 *               the digit's sign
 *     buckets   entries of one set with the same |digit|; sorted by counting
 *     chunks    runs of entries, cut without regard to sets and, if a bucket is long, inside it:
 *               equal work for every thread
 *     segments  runs of buckets that are summed up with their weights
 */
#ifndef OBK_PLAN_H
#define OBK_PLAN_H

#include "compute/curve/lanes.h"
#include "compute/msm/msm.h"
#include "compute/msm/scalars.h"

struct obk_msm_bases {
	const struct obk_lanes *lanes;
	size_t count;
	unsigned halves; /* 2: entry count + i of a copy is the endomorphism of entry i */
	bool order_r;    /* r times every point is infinity: scalars may be reduced */
	unsigned copies; /* shifted copies; copy t holds 2^(shift t) P */
	unsigned shift;
	unsigned window; /* with more than one copy: the only window they fit */
	void *slots;     /* copies x halves x count */
	size_t bytes;
};

/* Bytes from one of the caller's points to the next. */
size_t obk_msm_stride(const struct obk_msm_bases_args *args);

/* The shape of a product. */
struct obk_plan {
	unsigned window, windows, sets, copies;
	uint32_t buckets; /* of a set: 2^(window - 1) */
};

/*
 * Bits of the numbers that are cut into windows, the one bit more that signed digits need included.
 */
unsigned obk_plan_bits(unsigned halves, bool order_r);
/* Additions that a product of n points costs, in all. */
double obk_plan_cost(const struct obk_plan *plan, size_t n, unsigned halves);
/* window = 0: what was measured to be best (compute/msm/tune.h), else the cheapest. */
void obk_plan_make(
	struct obk_plan *plan, const struct obk_msm_bases *bases, size_t n, unsigned window);
struct obk_plan obk_plan_shape(unsigned window, unsigned bits, unsigned copies);

/*
 * Above this many points the endomorphism saves too few doublings and buckets to be worth twice the
 * memory, which caches feel.
 */
#define OBK_PLAN_ENDOMORPHISM_LOG 18

#define OBK_EMPTY             UINT32_MAX
#define OBK_CHUNK_ENTRIES     8192
#define OBK_CHUNK_ENTRIES_MIN 512
#define OBK_SEGMENT_BATCH     1024 /* segments whose sums go on together, at most */

struct obk_chunk {
	uint32_t first, last; /* buckets, counted through all sets of the group */
	/* entries of the first bucket before the chunk; entries of the last one up to its end */
	uint32_t skip, stop;
	/* the first bucket began in an earlier chunk: its part waits in edge */
	bool has_edge;
	struct obk_g1_affine edge;
};

/* One group of sets that is worked on together. */
struct obk_group {
	const struct obk_msm_bases *bases;
	/* the points that are worked on together, as a job of their own */
	const struct obk_msm_job *job;
	const struct obk_plan *plan;
	const struct obk_half *split; /* halves = 2: [product][2][count] */
	const uint64_t (*plain)[4];   /* halves = 1: [product][count] */
	size_t first_set, sets;       /* counted through the products prepared in split or plain */
	uint32_t *refs;               /* [set][entries] sorted by bucket */
	size_t entries;               /* room of a set */
	uint32_t *start;              /* [set][buckets + 1], within the set's refs */
	uint32_t *bucket;             /* [set][buckets] reference to its sum, or OBK_EMPTY */
	void *points;                 /* slots: the sums of buckets, then three a segment */
	struct obk_chunk *chunk;
	size_t chunks, chunk_entries;
	uint32_t segment; /* buckets of a segment */
	/* of the group; that go on together in one call of obk_group_run_sums */
	size_t segments, segment_batch;
	uint32_t *run, *acc;                     /* [segment] references while sums go on */
	struct obk_g1_affine *run_sum, *acc_sum; /* [segment] */
	struct obk_g1 *sum;                      /* [set] */
	struct obk_worker *workers;              /* [thread] */
};

/* Scratch memory of one thread. */
struct obk_worker {
	uint32_t *items; /* [chunk_entries] */
	struct obk_piece {
		uint32_t at, count, bucket;
	} * pieces;             /* [chunk_entries] the entries of one bucket */
	uint32_t *live;         /* [chunk_entries] pieces with more than one item left */
	struct obk_pair *pairs; /* [max_pairs] */
	void *slots, *workspace;
};

/* Left unfinished when the job is stopped. */
void obk_group_sort(struct obk_group *group, size_t set);
/* Cuts the sorted entries into chunks; OB_ERR_NO_MEMORY. */
enum ob_err obk_group_cut(struct obk_group *group);
void obk_group_accumulate(struct obk_group *group, size_t chunk, unsigned thread);
/* Parts of buckets that span chunks, put together. */
void obk_group_join(struct obk_group *group);
void obk_group_run_sums(struct obk_group *group, size_t batch, unsigned thread);
void obk_group_finish_set(struct obk_group *group, size_t set);

#endif
