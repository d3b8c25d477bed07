/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Monotonic time in nanoseconds, and deadlines made of it. Any thread; no state. */
#ifndef OB_CLOCK_H
#define OB_CLOCK_H

#include <stdint.h>

#define OB_MS     1000000ull
#define OB_SECOND 1000000000ull
#define OB_NEVER  UINT64_MAX

uint64_t ob_clock_ns(void);
/*
 * What poll() takes until `deadline` (ns, OB_NEVER for none): milliseconds rounded up, 0 when past,
 * -1 for never.
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
