/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Monotonic time in nanoseconds, and deadlines based on it. No state; any thread. */
#ifndef OB_CLOCK_H
#define OB_CLOCK_H

#include <stdint.h>

#define OB_MS     1000000ull
#define OB_SECOND 1000000000ull
#define OB_NEVER  UINT64_MAX

uint64_t ob_clock_ns(void);
/*
 * The time-out for poll() until `deadline` (ns; OB_NEVER: none), in milliseconds rounded up: 0 if
 * the deadline has passed, -1 for OB_NEVER.
 */
int ob_clock_poll_ms(uint64_t deadline);

static inline void ob_clock_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
