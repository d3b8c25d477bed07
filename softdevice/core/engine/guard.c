/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>

struct guard {
	sigjmp_buf jmp;
	uintptr_t base;
	size_t size;
};

static _Thread_local struct guard *current; /* the call that the thread is in */

void obd_guard_fault(uintptr_t at)
{
	struct guard *guard = current;

	if (!guard || at - guard->base >= guard->size)
		return;
	current = NULL;
	siglongjmp(guard->jmp, 1);
}

bool obd_guard_try(void (*fn)(void *arg), void *arg, uintptr_t base, size_t size)
{
	struct guard guard = { .base = base, .size = size };

	if (sigsetjmp(guard.jmp, 0) != 0)
		return false;
	current = &guard;
	atomic_signal_fence(memory_order_seq_cst);
	fn(arg);
	atomic_signal_fence(memory_order_seq_cst);
	current = NULL;
	return true;
}

void obd_guard_unblock(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
