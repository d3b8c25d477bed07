/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Threads of ours, often inside somebody else's program: they take no signals, which are the
 * program's. No state; any thread may start one.
 */
#ifndef OB_THREAD_H
#define OB_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Runs fn(argument) in a new thread with all signals blocked. stack: bytes, 0 for the system's own
 * size. ret_thread: to be joined; NULL: nobody will. False: the system gives no thread; nothing was
 * changed.
 */
bool ob_thread_start(void *(*fn)(void *), void *argument, size_t stack, pthread_t *ret_thread);

#endif
