/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_advice: what cuMemAdvise and the prefetches of the program have said about ranges of managed
 * memory. Nothing depends on it but the answers of cuMemRangeGetAttribute. One lock; any thread.
 */
#ifndef OBF_ADVICE_H
#define OBF_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

struct obf_advice {
	bool read_mostly, accessed_by_host;
	uint64_t accessed_by;              /* one bit for each device */
	CUmemLocation preferred, prefetch; /* CU_MEM_LOCATION_TYPE_INVALID: none */
};

/* Calls change() for the advice of each part of the range. False: out of memory, nothing is done. */
bool obf_advice_change(uint64_t addr, uint64_t size,
	void (*change)(void *user, struct obf_advice *advice), void *user);
/* Calls see() for each different part of the range, also for those without advice. */
void obf_advice_see(uint64_t addr, uint64_t size,
	void (*see)(void *user, const struct obf_advice *advice), void *user);
/* The memory is freed. */
void obf_advice_forget(uint64_t addr, uint64_t size);

#endif
