/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_cancel: a call of the software device runs with cancellation off. A thread that pthread_cancel ended inside would leave locks held and kernels half
 * executed, because the calling thread helps to execute them. The request is acted upon at the end of the call, when nothing is held; over a server
 * client-shim/inside.h does the same. Any thread.
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

/* before: what obf_cancel_off returned. */
static inline void obf_cancel_back(int before)
{
	pthread_setcancelstate(before, NULL);
	pthread_testcancel();
}

#endif
