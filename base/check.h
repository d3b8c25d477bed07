/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Checked arithmetic: true when the result does not fit; *ret must not be used then. */
#ifndef OB_CHECK_H
#define OB_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ob_add_overflows(a, b, ret) __builtin_add_overflow((a), (b), (ret))
#define ob_mul_overflows(a, b, ret) __builtin_mul_overflow((a), (b), (ret))

/* True when [offset, offset + size) lies inside [0, whole). */
static inline bool ob_span_inside(uint64_t offset, uint64_t size, uint64_t whole)
{
	return offset <= whole && size <= whole - offset;
}

/* n rounded up to a multiple of the power of two `align`; wraps to 0 when it does not fit. */
static inline uint64_t ob_round_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) & ~(align - 1);
}

/* Arguments are evaluated twice. */
#define ob_min(a, b)    ((a) < (b) ? (a) : (b))
#define ob_max(a, b)    ((a) > (b) ? (a) : (b))
#define ob_likely(x)    __builtin_expect(!!(x), 1)
#define ob_unlikely(x)  __builtin_expect(!!(x), 0)
#define ob_count(array) (sizeof(array) / sizeof((array)[0]))

#endif
