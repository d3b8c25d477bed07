/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_shadow: the pages of this process at the addresses of one piece of device memory that the
 * program accesses directly: managed memory and mapped host memory. The contents are on one side or
 * on both, separately for each block:
 *
 *                 write                   device reads               fetch, read access
 *     FRESH ────────────────► FRESH      DIRTY ────────► CLEAN      DEVICE ──────────► CLEAN
 *     CLEAN ────────────────► DIRTY
 *                                         any ──device writes──► DEVICE
 *
 *     FRESH   readable and writable here; pages that were never touched are equal on both sides
 *     DIRTY   readable and writable here; the device's copy is out of date
 *     CLEAN   readable here; both sides are equal
 *     DEVICE  no access here; the device's copy counts
 *
 * The object decides; what it decides is done by the functions of `ops`. The program's addresses
 * are never read or written here: the bytes go through `alias`, a second mapping of the same pages.
 * So a block can be filled before the program may access it. The owner holds a lock around each
 * call and owns the memory.
 */
#ifndef OBC_SHADOW_H
#define OBC_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda_types.h"

#define OBC_SHADOW_BLOCK     (64u << 10) /* bytes; the largest block */
#define OBC_SHADOW_PAGE      4096u       /* bytes; the smallest block */
#define OBC_SHADOW_AHEAD_MAX (4u << 20)  /* bytes; the most that one access fetches */

enum obc_shadow_state { OBC_SHADOW_FRESH, OBC_SHADOW_DIRTY, OBC_SHADOW_CLEAN, OBC_SHADOW_DEVICE };

enum obc_shadow_access { OBC_SHADOW_NONE, OBC_SHADOW_READ, OBC_SHADOW_WRITE };

struct obc_shadow;

struct obc_shadow_ops {
	/* Sets the program's access rights of whole pages. False: the system refused. */
	bool (*protect)(struct obc_shadow *shadow, uint64_t addr, uint64_t size,
		enum obc_shadow_access access);
	/* Copies `size` bytes from the alias to the device, before later work of the device. */
	CUresult (*upload)(struct obc_shadow *shadow, uint64_t addr, uint64_t size);
	/* Waits for the device's work as far as necessary and copies from the device to the alias. */
	CUresult (*fetch)(struct obc_shadow *shadow, uint64_t addr, uint64_t size);
	/*
	 * Finds the first bytes in [offset, offset + size) whose pages were ever touched. False:
	 * there are none.
	 */
	bool (*touched)(struct obc_shadow *shadow, uint64_t offset, uint64_t size,
		uint64_t *ret_offset, uint64_t *ret_size);
};

struct obc_shadow {
	uint64_t base, size; /* whole pages */
	uint8_t *alias;
	const struct obc_shadow_ops *ops;
	uint8_t *state; /* enum obc_shadow_state, by block */
	uint32_t block; /* bytes, a power of two */
	size_t n_blocks;
	size_t n_host;     /* blocks that are not DEVICE */
	size_t next_fetch; /* the block after the last fetch */
	uint32_t ahead;    /* blocks that the next fetch takes if it continues the last one */
};

/* All blocks are FRESH. False: out of memory. base and size are whole pages. */
bool obc_shadow_init(struct obc_shadow *shadow, uint64_t base, uint64_t size, uint8_t *alias,
	const struct obc_shadow_ops *ops);
void obc_shadow_fini(struct obc_shadow *shadow);

/*
 * The device will access [addr, addr + size), which is cut to the shadow. writes: it may write
 * there. The program's access ends accordingly, and what only this side has is uploaded.
 */
CUresult obc_shadow_give(struct obc_shadow *shadow, uint64_t addr, uint64_t size, bool writes);
/*
 * The program accesses `addr`, which is in the shadow: makes the block accessible, and following
 * blocks if the accesses are sequential. On an error of the device or the session the program gets
 * the bytes that this side had last, and the error is returned.
 */
CUresult obc_shadow_touch(struct obc_shadow *shadow, uint64_t addr, bool write);
/* Fetches what is only on the device, as for reading. The range is cut to the shadow. */
CUresult obc_shadow_fetch(struct obc_shadow *shadow, uint64_t addr, uint64_t size);

#endif
