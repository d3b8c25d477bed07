/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Access to the software device's counters for tests: the symbols counted_longest and counted_all
 * of its library. See softdevice/core/program.h.
 */
#ifndef OBT_COUNTED_H
#define OBT_COUNTED_H

#include <stdint.h>

struct counted {
	uint64_t (*longest)(void); /* sum of the instructions of each launch's longest warp */
	uint64_t (*all)(void);     /* instructions of all lanes of all launches */
};

#endif
