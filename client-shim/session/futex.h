/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Waits on a 32-bit word, always with a time-out. Private Linux futexes. */
#ifndef OBC_FUTEX_H
#define OBC_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Returns when woken, when *word differs from value, on a signal, or after ns nanoseconds. The
 * caller checks its condition again.
 */
static inline void obc_futex_wait_ns(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u) };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &ts, NULL, 0);
}

static inline void obc_futex_wait(_Atomic uint32_t *word, uint32_t value, unsigned ms)
{
	obc_futex_wait_ns(word, value, ms * UINT64_C(1000000));
}

static inline void obc_futex_wake(_Atomic uint32_t *word, int waiters)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters, NULL, NULL, 0);
}

#endif
