/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The entry point that libFuzzer and fuzz_main.c call. Returns 0. A crash, a sanitizer report or a
 * hang is a finding.
 */
#ifndef OB_FUZZ_H
#define OB_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
