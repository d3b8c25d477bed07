/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the parameter structs of copies say, resolved and checked. A copy of nothing (an extent of
 * 0) has addresses of no meaning. Errors: CUDA_ERROR_INVALID_VALUE; CUDA_ERROR_NOT_SUPPORTED for
 * arrays. No state; any thread.
 */
#ifndef OBF_COPY_H
#define OBF_COPY_H

#include "front/front.h"

CUresult obf_copy_from_2d(const CUDA_MEMCPY2D *copy, struct obf_copy *ret);
CUresult obf_copy_from_3d(const CUDA_MEMCPY3D *copy, struct obf_copy *ret);
/* The contexts are the caller's to resolve. */
CUresult obf_copy_from_peer(const CUDA_MEMCPY3D_PEER *copy, struct obf_copy *ret);

#endif
