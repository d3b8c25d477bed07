/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/region.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "client-shim/cuda/memory.h"
#include "client-shim/cuda/slabs.h"

struct obc_region {
	struct obf_mem raw; /* the device memory, which contains the region; size 0: not ours */
	uint64_t base, size;
	uint8_t *alias;
	int fd;
	struct obf_ctx *ctx;
	struct obc_slabs slabs; /* common region: its pieces */
	unsigned pieces;
	bool common;
	struct obc_region *next; /* common regions */
};

static struct obc_region *commons;

static void *pointer(uint64_t addr)
{
	return (void *)(uintptr_t)addr; /* NOLINT(performance-no-int-to-ptr) */
}

bool obc_region_protect(uint64_t addr, uint64_t size, enum obc_shadow_access access)
{
	static const int prot[] = {
		[OBC_SHADOW_NONE] = PROT_NONE,
		[OBC_SHADOW_READ] = PROT_READ,
		[OBC_SHADOW_WRITE] = PROT_READ | PROT_WRITE,
	};

	return mprotect(pointer(addr), size, prot[access]) == 0;
}

/*
 * Maps the file at the device addresses and at the alias. fixed: MAP_FIXED if the addresses are
 * reserved in this process, so that nothing else is replaced.
 */
static bool pages_map(struct obc_region *region, int fixed)
{
	region->fd = memfd_create("outboard-shared", MFD_CLOEXEC);
	if (region->fd < 0)
		return false;
	if (ftruncate(region->fd, (off_t)region->size) != 0)
		goto no_alias;
	region->alias = mmap(NULL, region->size, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
	if (region->alias == MAP_FAILED)
		goto no_alias;
	if (mmap(pointer(region->base), region->size, PROT_NONE, MAP_SHARED | fixed, region->fd,
		    0) == MAP_FAILED)
		goto no_pages;
	madvise(region->alias, region->size, MADV_DONTFORK);
	madvise(pointer(region->base), region->size, MADV_DONTFORK);
	return true;
no_pages:
	munmap(region->alias, region->size);
no_alias:
	close(region->fd);
	return false;
}

/* Reserves the addresses again, as far as they were. */
static void pages_unmap(struct obc_region *region)
{
	if (!region->raw.size)
		munmap(pointer(region->base), region->size);
	else
		(void)mmap(pointer(region->base), region->size, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	munmap(region->alias, region->size);
	close(region->fd);
}

static CUresult region_new(struct obf_ctx *ctx, uint64_t size, struct obc_region **ret)
{
	struct obc_region *region = calloc(1, sizeof *region);
	CUresult result;

	if (!region)
		return CUDA_ERROR_OUT_OF_MEMORY;
	region->ctx = ctx;
	region->size = size;
	region->raw = (struct obf_mem){
		/* Device memory begins at a multiple of less than a page. */
		.size = size + OBC_SHADOW_PAGE,
		.kind = OBF_MEM_DEVICE,
		.device = ctx->device,
		.ctx = ctx,
	};
	result = obc_memory_alloc(ctx, &region->raw);
	if (result != CUDA_SUCCESS)
		goto no_memory;
	region->base = ob_round_up(region->raw.base, (uint64_t)OBC_SHADOW_PAGE);
	if (!region->raw.backend) {
		ob_warn("managed and mapped memory are not available here: this process uses the "
			"address 0x%llx, which the server's driver chose, for something else",
			(unsigned long long)region->raw.base);
		result = CUDA_ERROR_NOT_SUPPORTED;
	} else if (pages_map(region, MAP_FIXED)) {
		*ret = region;
		return CUDA_SUCCESS;
	} else {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	obc_memory_free(ctx, &region->raw, false);
no_memory:
	free(region);
	return result;
}

static CUresult region_free(struct obf_ctx *ctx, struct obc_region *region, bool in_use)
{
	struct obc_region **link = &commons;
	CUresult result = CUDA_SUCCESS;

	while (*link && *link != region)
		link = &(*link)->next;
	if (*link)
		*link = region->next;
	pages_unmap(region);
	if (region->raw.size)
		result = obc_memory_free(ctx, &region->raw, in_use);
	obc_slabs_fini(&region->slabs);
	free(region);
	return result;
}

/* ---- pieces ---- */

static CUresult common_new(struct obf_ctx *ctx, struct obc_region **ret)
{
	CUresult result = region_new(ctx, OBC_REGION_BYTES, ret);

	if (result != CUDA_SUCCESS)
		return result;
	(*ret)->common = true;
	if (!obc_slabs_add(&(*ret)->slabs, (*ret)->base, (*ret)->size)) {
		region_free(ctx, *ret, false);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*ret)->next = commons;
	commons = *ret;
	return CUDA_SUCCESS;
}

static CUresult small_take(struct obf_ctx *ctx, struct obc_piece *piece)
{
	CUresult result = CUDA_SUCCESS;

	for (struct obc_region *region = commons; region && !piece->block; region = region->next)
		if (region->ctx == ctx) {
			piece->region = region;
			piece->block = obc_slabs_take(&region->slabs, piece->size);
		}
	if (!piece->block) {
		result = common_new(ctx, &piece->region);
		if (result == CUDA_SUCCESS)
			piece->block = obc_slabs_take(&piece->region->slabs, piece->size);
	}
	if (result == CUDA_SUCCESS && !piece->block)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		piece->base = piece->block->addr;
	return result;
}

CUresult obc_piece_take(struct obf_ctx *ctx, uint64_t size, struct obc_piece *ret)
{
	CUresult result;

	*ret = (struct obc_piece){ .size = ob_round_up(size, (uint64_t)OBC_SHADOW_PAGE) };
	if (ret->size <= OBC_REGION_SMALL) {
		result = small_take(ctx, ret);
	} else {
		result = region_new(ctx, ret->size, &ret->region);
		if (result == CUDA_SUCCESS)
			ret->base = ret->region->base;
	}
	if (result != CUDA_SUCCESS)
		return result;
	ret->region->pieces++;
	ret->alias = ret->region->alias + (ret->base - ret->region->base);
	return CUDA_SUCCESS;
}

CUresult obc_piece_place(struct obf_ctx *ctx, uint64_t base, uint64_t size, struct obc_piece *ret)
{
	struct obc_region *region = calloc(1, sizeof *region);

	if (!region)
		return CUDA_ERROR_OUT_OF_MEMORY;
	region->ctx = ctx;
	region->base = base;
	region->size = size;
	region->pieces = 1;
	if (!pages_map(region, MAP_FIXED_NOREPLACE)) {
		free(region);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	*ret = (struct obc_piece){
		.base = base, .size = size, .alias = region->alias, .region = region
	};
	return CUDA_SUCCESS;
}

CUresult obc_piece_give(struct obf_ctx *ctx, struct obc_piece *piece, bool in_use)
{
	struct obc_region *region = piece->region;

	if (--region->pieces == 0)
		return region_free(ctx, region, in_use);
	/* The pages become zero and count as untouched. */
	obc_region_protect(piece->base, piece->size, OBC_SHADOW_NONE);
	fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		(off_t)(piece->base - region->base), (off_t)piece->size);
	obc_slabs_give(&region->slabs, piece->block);
	return CUDA_SUCCESS;
}

bool obc_piece_touched(const struct obc_piece *piece, uint64_t offset, uint64_t size,
	uint64_t *ret_offset, uint64_t *ret_size)
{
	uint64_t shift = piece->base - piece->region->base;
	off_t from = lseek(piece->region->fd, (off_t)(shift + offset), SEEK_DATA), to;

	if (from < 0 || (uint64_t)from >= shift + offset + size)
		return false;
	to = lseek(piece->region->fd, from, SEEK_HOLE);
	*ret_offset = (uint64_t)from - shift;
	*ret_size = ob_min((uint64_t)to, shift + offset + size) - (uint64_t)from;
	return to > from;
}
