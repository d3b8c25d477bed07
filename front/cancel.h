/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_cancel: a call of the software device runs with cancellation off. A thread that
 * pthread_cancel ended inside would leave locks held and kernels half executed, because the calling
 * thread helps to execute them. The request is acted upon at the end of the call, when nothing is
 * held; over a server client-shim/inside.h does the same. Any thread.
 */
#ifndef OBF_CANCEL_H
#define OBF_CANCEL_H

#include <pthread.h>

static inline int obf_cancel_off(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

#ifdef __SANITIZE_ADDRESS__
/*
 * The end of a cancelled thread skips the ends of these functions, which would tell the sanitizer
 * that their stack is free.
 */
void __asan_handle_no_return(void);
#else
#define __asan_handle_no_return() ((void)0)
#endif

/* before: what obf_cancel_off returned. */
static inline void obf_cancel_back(int before)
{
	pthread_setcancelstate(before, NULL);
	__asan_handle_no_return();
	pthread_testcancel();
}

#endif
