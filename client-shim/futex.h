/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Waiting on a word of memory, always with a time-out. Linux futexes: private to the process. */
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
 * Returns when woken, when *word differs from value, on a signal, or after ms milliseconds: the
 * caller looks again.
 */
static inline void obc_futex_wait(_Atomic uint32_t *word, uint32_t value, unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &ts, NULL, 0);
}

static inline void obc_futex_wake(_Atomic uint32_t *word, int waiters)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters, NULL, NULL, 0);
}

#endif
