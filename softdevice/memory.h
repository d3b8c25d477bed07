/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Device memory: allocations (alloc.h) and the memory that kernels use. Any thread.
 */
#ifndef OBD_MEMORY_H
#define OBD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/front.h"
#include "softdevice/alloc.h"

struct obd_ctx;

/*
 * NULL: out of memory. `align` is a power of two up to OBD_UNIT. The contents are undefined, except
 * that memory that was never used before is zero.
 */
struct obd_alloc *obd_memory_new(
	struct obd_ctx *ctx, uint64_t size, uint64_t align, enum obd_alloc_kind kind);
void obd_memory_free(struct obd_alloc *alloc);
/* Frees all allocations that the context still has. */
void obd_memory_forget(struct obd_ctx *ctx);

/* The front end's backend table (front/backend.h). */
CUresult obd_memory_alloc(struct obf_ctx *ctx, struct obf_mem *mem);
/* All device memory is memory of this process, so only its bytes must be zero. */
CUresult obd_memory_share(struct obf_ctx *ctx, struct obf_mem *mem);
CUresult obd_memory_share_global(struct obf_ctx *ctx, const struct obf_mem *mem);
/* Whether the program accesses the memory at this address itself. */
bool obd_memory_is_shared(uint64_t addr);
CUresult obd_memory_release(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use);
CUresult obd_memory_info(struct obf_ctx *ctx, uint64_t *ret_free, uint64_t *ret_total);

/* The callbacks of obd_env; `user` is the context. */
void *obd_memory_env_alloc(void *user, size_t size, size_t align);
void obd_memory_env_free(void *user, void *p);
bool obd_memory_env_check(void *user, uintptr_t addr, size_t size);
bool obd_memory_env_check_texture(void *user, uintptr_t addr, size_t size);
void *obd_memory_heap_alloc(void *user, size_t size);
void obd_memory_heap_free(void *user, void *p);

#endif
