/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Functions that fill a caller's struct outboard_error. A NULL error is always allowed. Any thread.
 */
#ifndef OBV_FAIL_H
#define OBV_FAIL_H

#include "compute/engine/outboard.h"
#include "compute/field/fault.h"

/* Returns status, so that callers can write: return obv_fail(...). */
int obv_fail(struct outboard_error *error, int status, uint64_t item, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int obv_status_of(enum ob_err err);
/* Converts the fault of a kernel to an error; OUTBOARD_OK for OB_ERR_NONE. */
int obv_fail_fault(struct outboard_error *error, enum ob_err err, const struct obk_fault *fault);

#endif
