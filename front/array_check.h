/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The checks of array descriptors: format, flags, and extents against the device's limits. No
 * state; any thread.
 */
#ifndef OBF_ARRAY_CHECK_H
#define OBF_ARRAY_CHECK_H

#include "front/front.h"

/*
 * Errors: CUDA_ERROR_INVALID_VALUE; CUDA_ERROR_NOT_SUPPORTED for formats and flags that the front
 * end does not know or that the device does not offer, which is logged.
 */
CUresult obf_array_check(
	const struct obf_device *device, const CUDA_ARRAY3D_DESCRIPTOR *desc, bool mipmapped);

#endif
