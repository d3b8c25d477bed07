/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/cuda_types.h"
#include "tests/gen/check_cuda_layout.h"

#define ROW(name, value) { name, value },
const struct layout_row layout_ours[] = {
#include "protocol/check_cuda_layout.inc"
};
const size_t layout_ours_count = sizeof(layout_ours) / sizeof(layout_ours[0]);
