/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_region: device memory at whose addresses this process has pages too. The pages are those of a
 * file in memory that is mapped twice: at the device addresses, with the access rights that the
 * program has at the moment, and as the alias, which this library always can access. Small
 * allocations are pieces of a common region, in whole pages.
 *
 * A child of a fork has no pages there, so it cannot change those of its parent. The caller holds
 * the lock of client-shim/cuda/shared.h.
 */
#ifndef OBC_REGION_H
#define OBC_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "client-shim/cuda/shadow.h"
#include "front/front.h"

#define OBC_REGION_BYTES (2u << 20)   /* of a common region */
#define OBC_REGION_SMALL (512u << 10) /* bytes; larger allocations have a region of their own */

struct obc_block;
struct obc_region;

/* A part of a region, in whole pages. Its bytes are zero in this process. */
struct obc_piece {
	uint64_t base, size;
	uint8_t *alias;
	struct obc_region *region;
	struct obc_block *block; /* NULL: the piece is the whole region */
};

/*
 * The program has no access. CUDA_ERROR_NOT_SUPPORTED: the server's driver chose addresses that
 * this process uses for something else.
 */
CUresult obc_piece_take(struct obf_ctx *ctx, uint64_t size, struct obc_piece *ret);
/*
 * The same for device memory that exists already and is not this object's: pages at these
 * addresses. CUDA_ERROR_NOT_SUPPORTED: this process uses them for something else.
 */
CUresult obc_piece_place(struct obf_ctx *ctx, uint64_t base, uint64_t size, struct obc_piece *ret);
/* in_use: as for mem_free of front/backend.h. The bytes are dropped. */
CUresult obc_piece_give(struct obf_ctx *ctx, struct obc_piece *piece, bool in_use);
/* The first bytes of the range whose pages were ever written or read; false: none. */
bool obc_piece_touched(const struct obc_piece *piece, uint64_t offset, uint64_t size,
	uint64_t *ret_offset, uint64_t *ret_size);

bool obc_region_protect(uint64_t addr, uint64_t size, enum obc_shadow_access access);

#endif
