/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_guard: ends a copy or a fill that accesses device memory which is not there any more. The
 * state is per thread; any thread.
 */
#ifndef OBD_CORE_GUARD_H
#define OBD_CORE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Calls fn(arg), which holds no lock. False: an access to [base, base + size) has ended it, because
 * no memory is there or it may not be accessed. obd_fault_install was called, and the thread does
 * not block SIGSEGV.
 */
bool obd_guard_try(void (*fn)(void *arg), void *arg, uintptr_t base, size_t size);
/* The calling thread blocks the signals of faults no longer. */
void obd_guard_unblock(void);
/* For the signal handler: does not return if the fault at `at` ends a call of obd_guard_try. */
void obd_guard_fault(uintptr_t at);

#endif
