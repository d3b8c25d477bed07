/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Runs a function once in every thread of the process, those that a driver has started included,
 * for system calls that change only the calling thread (Landlock). It is done as the C library does
 * setuid(): a signal that no thread blocks is sent to each, and its handler calls the function.
 *
 * Main thread, one call at a time. Threads that a thread starts after it has done it inherit what
 * was done.
 */
#ifndef OBS_THREADS_ALL_H
#define OBS_THREADS_ALL_H

#include <stdbool.h>

#define OBS_THREADS_MAX 4096u /* seen in one process */
/* a thread that does not answer for so long is in the kernel and will not */
#define OBS_THREADS_MS  5000

/* Before files are denied: where the threads are listed. False: /proc is not there. */
bool obs_threads_open(void);
/*
 * fn(argument) in this thread, then in all others; async-signal-safe, system calls only. False: it
 * failed in one, or one did not answer.
 */
bool obs_threads_all(bool (*fn)(int), int argument);

#endif
