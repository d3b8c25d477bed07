/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Landlock: which files a worker can open, that it can connect and listen on no TCP port, and that
 * its signals and abstract unix sockets reach nobody outside. Two rule sets lie on top of one
 * another, the second lets through less. Worker's main thread.
 */
#ifndef OBS_SANDBOX_LANDLOCK_H
#define OBS_SANDBOX_LANDLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel's version of the interface; 0: it has none, or it is switched off. */
int obs_landlock_version(void);
/* A rule set that lets no file through. A descriptor, or -1 with errno. */
int obs_landlock_none(void);
/*
 * A rule set that lets through what the driver needs (file: its library; NULL: the software device)
 * and files below the folder `writable`, -1 for none. early: the client is not known yet; new
 * folders can be made there, and its process can be looked for in /proc. A descriptor, or -1 with
 * errno.
 */
int obs_landlock_new(const char *file, int writable, bool early);
/*
 * Puts the rule set into force for the calling thread and those it will start. Plain system calls:
 * it may run in a signal handler.
 */
bool obs_landlock_enforce(int rules);

#endif
