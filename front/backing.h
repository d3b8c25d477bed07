/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_backing: the file behind shared memory of this process (mmap with MAP_SHARED), which several
 * of its mappings, and other processes, may have in common. No state; any thread. Reads
 * /proc/self/maps.
 */
#ifndef OBF_BACKING_H
#define OBF_BACKING_H

#include <stdbool.h>
#include <stdint.h>

struct obf_backing {
	unsigned major, minor;
	uint64_t inode;  /* 0: no file */
	uint64_t offset; /* of the byte in the file */
};

/* Without a shared mapping at this address the inode is 0. */
void obf_backing_find(uint64_t addr, struct obf_backing *ret);
/* Whether two ranges have bytes of a file in common. */
bool obf_backing_meets(
	const struct obf_backing *a, uint64_t a_size, const struct obf_backing *b, uint64_t b_size);

#endif
