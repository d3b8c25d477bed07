/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The roots that a transform multiplies by, in bit-reversed order. Entry i is e(f(i)), where e(t)
 * is the root of unity at t turns, and f(i) is half of the binary fraction whose digits are the
 * bits of i in reverse order: f = 0, 1/4, 1/8, 3/8, 1/16 ... Block i of any level of any transform
 * uses entry i, so a larger size only appends entries. The inverse of entry i is minus entry i ^
 * (2^k - 1), where 2^k is the top bit of i. An entry beyond the table is the product of two
 * entries, because f(a + b) = f(a) + f(b) if a and b have no common bits.
 */
#ifndef OBK_ROOTS_H
#define OBK_ROOTS_H

#include "compute/field/fr.h"
#include "base/err.h"

#define OBK_ROOTS_MAX_LOG 20

/*
 * The table of at least 2^log_entries entries, log_entries <= OBK_ROOTS_MAX_LOG. NULL: out of
 * memory. Valid until the process ends.
 */
const struct obk_fr *obk_roots_get(unsigned log_entries);

/*
 * The same roots times 2^280 instead of 2^256, as compute/ntt/lanes.h uses them: entry x 2^24.
 * Computed from the other table; needs the same amount of memory in addition.
 */
#define OBK_ROOTS_TO_LANES ((uint64_t)1 << 24)
const struct obk_fr *obk_roots_get_lanes(unsigned log_entries);

#endif
