/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Tells whether a signal was sent to the whole process group: by `timeout`, kill -- -PGID, a service
 * manager or a batch system. Then the program has it, too, and must not get it again from its
 * parent, because many take a second one as "at once". A signal to this process alone looks the same.
 * So there is a witness: a child in the group that does nothing and never takes a signal. What is
 * pending for it was sent to all.
 *
 * Main thread only. Without /proc, or without a process for it, no signal is known to be the group's.
 */
#ifndef OBX_WITNESS_H
#define OBX_WITNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OBX_WITNESS_SIGNALS 64 /* of the system */

struct obx_witness {
	pid_t pid; /* 0: none */
	/* when a signal of this number was seen at the group; ob_clock_ns */
	uint64_t seen_ns[OBX_WITNESS_SIGNALS + 1];
};

void obx_witness_start(struct obx_witness *witness);
/*
 * A signal of this number was received. True: by the group. Waits for up to 20 ms, and may replace the
 * witness, whose end it waits for.
 */
bool obx_witness_saw(struct obx_witness *witness, int number);
void obx_witness_stop(struct obx_witness *witness);

#endif
