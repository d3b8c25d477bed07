/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Private to the MSM: the contents of bases, and the layout of one call. A product has `sets` sets
 * of buckets. Set g receives the windows g, g + sets, g + 2 sets, ... of every scalar; window w
 * uses the shifted copy w / sets of the bases. Without a table there is one copy and one set per
 * window.
 *
 *     entries   one per scalar (or half of one) and window with a non-zero digit: a reference to a
 *               base, with the digit's sign
 *     buckets   entries of one set with the same |digit|; sorted by counting
 *     chunks    runs of entries, cut independently of sets and, if a bucket is long, inside it:
 *               equal work for every thread
 *     segments  runs of buckets that are summed up with their weights
 */
#ifndef OBK_PLAN_H
#define OBK_PLAN_H

#include "compute/curve/lanes.h"
#include "compute/msm/job.h"
#include "compute/msm/scalars.h"

struct obk_msm_bases {
	const struct obk_lanes *lanes;
	size_t count;
	unsigned halves; /* 2: entry count + i of a copy is the endomorphism of entry i */
	bool order_r;    /* r times every point is infinity, so scalars may be reduced modulo r */
	unsigned copies; /* shifted copies; copy t holds 2^(shift t) P */
	unsigned shift;
	unsigned window; /* with several copies: the only window size that they fit */
	void *slots;     /* copies x halves x count */
	size_t bytes;
};

/* Bytes from one point of the caller to the next. */
size_t obk_msm_stride(const struct obk_msm_bases_args *args);
/* OB_ERR_ARGUMENT, OB_ERR_LIMIT: the points cannot be bases. Does not read the points. */
enum ob_err obk_msm_bases_check(const struct obk_msm_bases_args *args, struct obk_fault *fault);

/* The shape of a product. */
struct obk_plan {
	unsigned window, windows, sets, copies;
	uint32_t buckets; /* in a set: 2^(window - 1) */
};

/* Bits of the numbers that are cut into windows, including the additional bit for signed digits. */
unsigned obk_plan_bits(unsigned halves, bool order_r);
/* The total number of additions in a product of n points. */
double obk_plan_cost(const struct obk_plan *plan, size_t n, unsigned halves);
/*
 * window = 0: the window that was measured to be the best (compute/msm/tune.h), else the one with
 * the lowest cost.
 */
void obk_plan_make(
	struct obk_plan *plan, const struct obk_msm_bases *bases, size_t n, unsigned window);
struct obk_plan obk_plan_shape(unsigned window, unsigned bits, unsigned copies);

/*
 * Above this many points the endomorphism saves too few doublings and buckets to justify twice the
 * memory, which no longer fits into the caches.
 */
#define OBK_PLAN_ENDOMORPHISM_LOG 18

#define OBK_EMPTY             UINT32_MAX
#define OBK_CHUNK_ENTRIES     8192
#define OBK_CHUNK_ENTRIES_MIN 512
#define OBK_SEGMENT_BATCH     1024 /* most segments that are summed up side by side */

struct obk_chunk {
	uint32_t first, last; /* buckets, numbered consecutively over all sets of the group */
	/*
	 * entries of the first bucket that precede the chunk; entries of the last bucket up to the
	 * end of the chunk
	 */
	uint32_t skip, stop;
	/* the first bucket began in an earlier chunk: the sum of this chunk's part is in edge */
	bool has_edge;
	struct obk_g1_affine edge;
};

/* A group of sets that are processed together. */
struct obk_group {
	const struct obk_msm_bases *bases;
	/* the points that are processed together, as a separate job */
	const struct obk_msm_job *job;
	const struct obk_plan *plan;
	const struct obk_half *split; /* halves = 2: [product][2][count] */
	const uint64_t (*plain)[4];   /* halves = 1: [product][count] */
	/* numbered consecutively over the products prepared in split or plain */
	size_t first_set, sets;
	uint32_t *refs;   /* [set][entries] sorted by bucket */
	size_t entries;   /* capacity of a set */
	uint32_t *start;  /* [set][buckets + 1], within the set's refs */
	uint32_t *bucket; /* [set][buckets] reference to its sum, or OBK_EMPTY */
	void *points;     /* slots: the sums of buckets, then three per segment */
	struct obk_chunk *chunk;
	size_t chunks, chunk_entries;
	uint32_t segment; /* buckets in a segment */
	/* in the group; most that one call of obk_group_run_sums processes side by side */
	size_t segments, segment_batch;
	/* [segment] references, while the sums are incomplete */
	uint32_t *run, *acc;
	struct obk_g1_affine *run_sum, *acc_sum; /* [segment] */
	struct obk_g1 *sum;                      /* [set] */
	struct obk_worker *workers;              /* [thread] */
};

/* Scratch memory for one thread. */
struct obk_worker {
	uint32_t *items; /* [chunk_entries] */
	struct obk_piece {
		uint32_t at, count, bucket;
	} * pieces;             /* [chunk_entries] the entries of one bucket */
	uint32_t *live;         /* [chunk_entries] pieces with more than one item left */
	struct obk_pair *pairs; /* [max_pairs] */
	void *slots, *workspace;
};

/* Returns early, with incomplete data, when the job is stopped. */
void obk_group_sort(struct obk_group *group, size_t set);
/* Cuts the sorted entries into chunks; OB_ERR_NO_MEMORY. */
enum ob_err obk_group_cut(struct obk_group *group);
void obk_group_accumulate(struct obk_group *group, size_t chunk, unsigned thread);
/* Adds up the parts of buckets that span several chunks. */
void obk_group_join(struct obk_group *group);
void obk_group_run_sums(struct obk_group *group, size_t batch, unsigned thread);
void obk_group_finish_set(struct obk_group *group, size_t set);

#endif
