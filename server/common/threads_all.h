/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Runs a function once in every thread of the process, including threads that a driver has started,
 * for system calls that affect only the calling thread (Landlock). Works as setuid() in the C
 * library: a signal that no thread blocks is sent to each, and its handler calls the function.
 *
 * Main thread, one call at a time. A thread inherits the effect from the thread that starts it.
 */
#ifndef OBS_THREADS_ALL_H
#define OBS_THREADS_ALL_H

#include <stdbool.h>

#define OBS_THREADS_MAX 4096u /* in one process */
/* a thread that does not answer for so long is blocked in the kernel */
#define OBS_THREADS_MS  5000

/* Opens the list of threads; call before files are denied. False: /proc is not mounted. */
bool obs_threads_open(void);
/*
 * Calls fn(argument) in this thread, then in all others. fn must be async-signal-safe and make
 * system calls only. False: it failed in one thread, or one did not answer.
 */
bool obs_threads_all(bool (*fn)(int), int argument);

#endif
