/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#define __CUDA_API_VERSION_INTERNAL /* also the structs of CUDA before 3.2 */
#define __CUDA_API_VERSION_INTERNAL /* declares the types of the old calls, too */
#include <cuda.h>
#include <cudaProfiler.h>
#include <stddef.h>

#include "tests/gen/check_cuda_layout.h"

#define ROW(name, value) { name, value },
const struct layout_row layout_theirs[] = {
#include "protocol/check_cuda_layout.inc"
};
const size_t layout_theirs_count = sizeof(layout_theirs) / sizeof(layout_theirs[0]);
