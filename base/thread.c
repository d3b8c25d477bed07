/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/thread.h"

#include <signal.h>

bool ob_thread_start(void *(*fn)(void *), void *argument, size_t stack, pthread_t *ret_thread)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	bool started;

	if (pthread_attr_init(&attr) != 0)
		return false;
	if (!ret_thread)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (stack)
		pthread_attr_setstacksize(&attr, stack);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = pthread_create(ret_thread ? ret_thread : &thread, &attr, fn, argument) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return started;
}
