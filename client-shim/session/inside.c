/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/inside.h"

#include <stdatomic.h>

#include "base/log.h"

_Thread_local volatile unsigned obc_inside;

CUresult obc_inside_refuse(const char *name)
{
	static _Atomic bool logged;

	/*
	 * Safe in a signal handler: logging formats into its own buffer and writes with one system
	 * call.
	 */
	if (!atomic_exchange(&logged, true))
		ob_error("%s refused: it was called in a signal handler that interrupted another "
			 "CUDA call of the same thread, or after such a handler left with longjmp. "
			 "Make CUDA calls outside of signal handlers",
			name);
	return CUDA_ERROR_NOT_PERMITTED;
}

void obc_inside_cancel(void)
{
	pthread_testcancel();
}
