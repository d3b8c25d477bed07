/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by the tests' driver libraries: the calls that a server's worker needs to start, for one
 * device whose context does nothing. Each library defines the two constants. Any thread may call.
 */
#ifndef OB_TESTS_ONE_DEVICE_H
#define OB_TESTS_ONE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

extern const char one_device_name[];
extern const size_t one_device_bytes; /* memory of the device */

/* If a library defines it: called by cuInit, which fails with OPERATING_SYSTEM if it returns false. */
__attribute__((weak)) bool one_device_start(void);

#endif
