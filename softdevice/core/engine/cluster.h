/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_cluster: the blocks of a thread block cluster. One worker runs all of them in turns, so they
 * are resident together, and only its thread accesses them.
 *
 * An address of the space shared::cluster is a number of 32 bits: 0 to 0xffffff is the shared
 * memory of the block itself, (rank + 1) << 24 and above that of the block with this rank. Generic
 * addresses need no translation.
 */
#ifndef OBD_CORE_CLUSTER_H
#define OBD_CORE_CLUSTER_H

#include "softdevice/core/engine/exec.h"

struct obd_cluster {
	struct obd_cluster *next_all, *next_free;
	uint32_t size, done; /* blocks; blocks that are done */
	uint32_t live;       /* threads that have not exited */
	uint32_t arrived;    /* of them, threads that have arrived at the barrier */
	struct obd_cta *ctas[OBD_CLUSTER_MAX];
};

/* Can a thread of the block's cluster go on? */
bool obd_cluster_can_run(const struct obd_cta *c);

/* barrier.cluster for a block that has a cluster. Returns what the handler must return. */
const struct obd_insn *obd_cluster_barrier(
	struct obd_warp *w, const struct obd_insn *in, uint32_t m);
/* The lanes have exited. */
void obd_cluster_exit(struct obd_warp *w, uint32_t m);

/* The instruction cluster_addr; in->e: enum obd_cluster_op. */
void obd_cluster_address(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m);
/*
 * The shared memory that an address of shared::cluster names; *at becomes the offset in it. If
 * there is no such block, it is that of the block itself, and *at stays, beyond its end.
 */
uint64_t obd_cluster_memory(const struct obd_warp *w, uint32_t *at);
/* Does the generic address lie in the shared memory of a block of the cluster? */
bool obd_cluster_owns(const struct obd_warp *w, uint64_t at);

#endif
