/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The processes that a program leaves behind, as children of this one, which has become their
 * subreaper. Those that this process had before it started the program are not the program's: of
 * `sidecar & exec outboard run --restartable ...` for example. No state but the caller's; main thread
 * only.
 */
#ifndef OBX_LEFTOVER_H
#define OBX_LEFTOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct obx_earlier {
	pid_t *list; /* the children that were there before */
	size_t n;
	bool known; /* /proc shows the processes of this namespace */
};

/*
 * Becomes the subreaper and notes the children of now. Without a usable /proc nothing is known to be
 * left behind.
 */
void obx_earlier_note(struct obx_earlier *earlier);
/* A child that is not the program's either. */
void obx_earlier_add(struct obx_earlier *earlier, pid_t pid);
/* A child was reaped: its number may be that of another process soon. */
void obx_earlier_drop(struct obx_earlier *earlier, pid_t pid);
/* Sends a signal to all children but the earlier ones; 0: none. Returns how many there are. */
size_t obx_leftover_kill(const struct obx_earlier *earlier, int number);

#endif
