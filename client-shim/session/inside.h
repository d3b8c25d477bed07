/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_inside: whether this thread is inside a call of the library. There are two uses.
 *
 * A signal handler may make a CUDA call while the interrupted thread holds a lock of the library.
 * That call would deadlock, so it is refused. The generated entry points call enter and leave.
 *
 * pthread_cancel may end the thread in a system call in which it waits while it holds the send or
 * receive right. Therefore every wait runs with cancellation disabled (OBC_WAITS). The entry point
 * acts on a cancellation request after the call, when the thread holds nothing.
 *
 * The state is per thread; no function blocks.
 */
#ifndef OBC_INSIDE_H
#define OBC_INSIDE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/cuda_types.h"

enum { OBC_INSIDE_CALL = 1, OBC_INSIDE_WAITED = 2 };

/* Volatile: a signal handler of the same thread reads it. */
extern _Thread_local volatile unsigned obc_inside;

/* Returns CUDA_ERROR_NOT_PERMITTED; the first refusal of the process is logged. */
CUresult obc_inside_refuse(const char *name);
/* After a call that has waited: acts on a cancellation request that came during the call. */
void obc_inside_cancel(void);

/* False: this thread is already in a call. */
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
 * Disables cancellation until the end of the block. For a block that may wait in the kernel, or
 * that holds a lock while it calls a function that may wait. May be nested.
 */
#define OBC_WAITS() \
	__attribute__((cleanup(obc_waits_end), unused)) int obc_waits_state = obc_waits_begin()

#endif
