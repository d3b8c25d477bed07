/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Starts Outboard's own threads. In the client library they run inside the user's program, so they
 * block all signals and leave them to the program's threads. No state; any thread may start one.
 */
#ifndef OB_THREAD_H
#define OB_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Runs fn(argument) in a new thread with all signals blocked. stack: bytes; 0: the system's
 * default. ret_thread: set to the thread, which the caller must join; NULL: the thread is detached.
 * False: the system cannot create a thread; nothing was changed.
 */
bool ob_thread_start(void *(*fn)(void *), void *argument, size_t stack, pthread_t *ret_thread);

#endif
