/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_dry_clock: the clock of the device in a dry run (dry.h): waiting for it, and asking it. It is
 * the time of ob_clock_ns; without a dry run every time has passed. No state. Any thread.
 */
#ifndef OBD_DRY_CLOCK_H
#define OBD_DRY_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/clock.h"
#include "softdevice/config.h"

/* Whether the device has a clock of its own. */
static inline bool obd_dry_clock(void)
{
	return obd_config.model && obd_config.dry_time;
}
/* Whether the device's clock has reached a time; true if it has none. */
static inline bool obd_dry_passed(uint64_t time_ns)
{
	return ob_likely(!obd_dry_clock()) || time_ns <= ob_clock_ns();
}
/* Blocks until the device's clock has reached the time, or `abort`, if it is not NULL, is set. */
void obd_dry_wait(uint64_t time_ns, const _Atomic int *abort);

#endif
