/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_cancel: a call of the software device runs with cancellation disabled. The calling thread
 * helps to execute kernels; if pthread_cancel ended it inside the call, locks would stay held and
 * kernels would be half executed. The call acts on a cancellation request at its end, when it holds
 * nothing. client-shim/session/inside.h does the same for the client library. Any thread.
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
 * A cancelled thread does not return from these functions, so the sanitizer is not notified that
 * their stack is free.
 */
void __asan_handle_no_return(void);
#else
#define __asan_handle_no_return() ((void)0)
#endif

/* before: the value that obf_cancel_off returned. */
static inline void obf_cancel_back(int before)
{
	pthread_setcancelstate(before, NULL);
	__asan_handle_no_return();
	pthread_testcancel();
}

#endif
