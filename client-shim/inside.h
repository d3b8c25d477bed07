/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_inside: whether this thread is in a call of the library, for two things that may happen to it
 * there.
 *
 * A signal handler may make a CUDA call while the thread it interrupts holds a lock of ours: that
 * call would wait for itself. It is refused instead: the generated entry points enter and leave.
 *
 * pthread_cancel may end the thread at a system call in which it waits with a right of the log.
 * Whoever waits does it with cancellation off (OBC_WAITS); the entry point acts on a request after
 * the call, when nothing is held.
 *
 * Each thread has its own; no function blocks.
 */
#ifndef OBC_INSIDE_H
#define OBC_INSIDE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/cuda_types.h"

enum { OBC_INSIDE_CALL = 1, OBC_INSIDE_WAITED = 2 };

/* Volatile: a signal handler of the same thread looks at it. */
extern _Thread_local volatile unsigned obc_inside;

/* CUDA_ERROR_NOT_PERMITTED; the first one of the process is logged. */
CUresult obc_inside_refuse(const char *name);
/* The call has waited: acts on a cancellation request that came meanwhile. */
void obc_inside_cancel(void);

/* False: this thread is in a call already. */
static inline bool obc_inside_enter(void)
{
	if (ob_unlikely(obc_inside))
		return false;
	obc_inside = OBC_INSIDE_CALL;
	return true;
}

static inline void obc_inside_leave(void)
{
	unsigned was = obc_inside;

	obc_inside = 0;
	if (ob_unlikely(was != OBC_INSIDE_CALL))
		obc_inside_cancel();
}

static inline CUresult obc_inside_left(CUresult result)
{
	obc_inside_leave();
	return result;
}

static inline int obc_waits_begin(void)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	if (obc_inside)
		obc_inside |= OBC_INSIDE_WAITED;
	return old;
}

static inline void obc_waits_end(const int *old)
{
	pthread_setcancelstate(*old, NULL);
}

/*
 * At the start of a block that may wait in the kernel, or that holds a lock while something it
 * calls does. May be nested.
 */
#define OBC_WAITS() \
	__attribute__((cleanup(obc_waits_end), unused)) int obc_waits_state = obc_waits_begin()

#endif
