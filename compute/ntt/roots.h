/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The roots a transform multiplies by, in bit-reversed order: entry i is e(f(i)) with e(1) a full
 * turn and f(i) the bits of i read backwards behind the binary point, halved: 0, 1/4, 1/8, 3/8,
 * 1/16 ... Block i of any level of any transform takes entry i, so a larger size only appends. The
 * inverse of entry i is minus entry i ^ (2^k - 1) with 2^k the top bit of i. Entries beyond the
 * table are products of two, for f adds over disjoint bits.
 */
#ifndef OBK_ROOTS_H
#define OBK_ROOTS_H

#include "compute/field/fr.h"
#include "base/err.h"

#define OBK_ROOTS_MAX_LOG 20

/*
 * The table of at least 2^log_entries entries, log_entries <= OBK_ROOTS_MAX_LOG; NULL without
 * memory. Lives as long as the process.
 */
const struct obk_fr *obk_roots_get(unsigned log_entries);

/*
 * The same roots times 2^280 instead of 2^256, as compute/ntt/lanes.h takes them: entry x 2^24.
 * Made of the other table, which costs as much memory again.
 */
#define OBK_ROOTS_TO_LANES ((uint64_t)1 << 24)
const struct obk_fr *obk_roots_get_lanes(unsigned log_entries);

#endif
