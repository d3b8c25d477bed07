/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Device memory of contexts. Every allocation is in the map (front.h); the backend provides its
 * memory.
 */
#ifndef OBF_MEMORY_H
#define OBF_MEMORY_H

#include "front/front.h"

/* Allocates memory for the context and enters it in the map. pool: its owner, or NULL. */
CUresult obf_memory_alloc(struct obf_ctx *ctx, size_t size, CUmemoryPool pool, uint64_t *ret_addr);
/* The same for memory that the program accesses directly. */
CUresult obf_memory_share(struct obf_ctx *ctx, size_t size, enum obf_shared sharing, unsigned flags,
	uint64_t *ret_addr);
/*
 * Returns the memory of a range that was removed from the map to the backend. in_use: as for
 * mem_free of front/backend.h.
 */
CUresult obf_memory_give(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use);
/*
 * Removes the allocation that starts at addr from the map. CUDA_ERROR_INVALID_VALUE: there is none.
 */
CUresult obf_memory_take(uint64_t addr, struct obf_mem *ret);
/* The context's work has ended: frees the rest of its memory. */
void obf_memory_end(const struct obf_ctx *ctx);

#endif
