/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The life of green contexts, and the splits of multiprocessors from which they are made. What they
 * are: green_view.h. Any thread.
 */
#ifndef OBF_GREEN_H
#define OBF_GREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "front/front.h"
#include "front/green_view.h"

#define OBF_GREEN_MAX      256u /* green contexts of a process */
#define OBF_GREEN_GROUPS   256u /* groups of one split */
#define OBF_GREEN_NO_SPLIT UINT32_MAX
#define OBF_GREEN_MASK     (OBF_GREEN_GROUPS / 64u)

/* A split of the multiprocessors of a green context or, base 0, of a device. */
struct obf_split {
	uint64_t base;
	int device;
	uint32_t groups; /* at most OBF_GREEN_GROUPS; 0: only asks how many there would be */
	uint32_t flags;  /* CUdevSmResourceSplit_flags */
	uint32_t least;  /* of a group; OBF_GREEN_NO_SPLIT: only asks for `whole` */
};

struct obf_split_made {
	uint32_t groups;
	struct obf_sms whole, group, rest;
};

/* Groups of a split: split.groups 0: the whole. */
struct obf_sm_share {
	struct obf_split split;
	uint64_t chosen[OBF_GREEN_MASK]; /* a bit for each group */
	bool rest;
	struct obf_sms sms; /* together */
};

/* CUDA_ERROR_OUT_OF_MEMORY, or the error of the backend. */
CUresult obf_green_new(const struct obf_sm_share *share, struct obf_green **ret);
/* Ends its streams, too. CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED. */
CUresult obf_green_end(CUgreenCtx handle);

#endif
