/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Landlock: denies access to all but listed files, connecting and listening on TCP, and signals and
 * abstract unix sockets to processes outside. Two rule sets are stacked; the second allows less.
 * Worker's main thread.
 */
#ifndef OBS_SANDBOX_LANDLOCK_H
#define OBS_SANDBOX_LANDLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel's version of the interface; 0: it has none, or it is switched off. */
int obs_landlock_version(void);
/* A rule set that allows no file. A descriptor, or -1 with errno. */
int obs_landlock_none(void);
/*
 * A rule set that allows what the driver needs (file: its library; NULL: the software device) and
 * files below the folder `writable` (-1: none). early: the client is not known yet; folders can be
 * created there, and /proc can be read to find the client's process. A descriptor, or -1 with
 * errno.
 */
int obs_landlock_new(const char *file, int writable, bool early);
/*
 * Applies the rule set to the calling thread and threads that it will start. Makes system calls
 * only: it may run in a signal handler.
 */
bool obs_landlock_enforce(int rules);

#endif
