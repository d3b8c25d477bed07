/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Converts the parameter structs of copies to struct obf_copy and checks them. The addresses of an
 * empty copy (an extent of 0) are undefined. Errors: CUDA_ERROR_INVALID_VALUE;
 * CUDA_ERROR_NOT_SUPPORTED for arrays. No state; any thread.
 */
#ifndef OBF_COPY_H
#define OBF_COPY_H

#include "front/front.h"

CUresult obf_copy_from_2d(const CUDA_MEMCPY2D *copy, struct obf_copy *ret);
CUresult obf_copy_from_3d(const CUDA_MEMCPY3D *copy, struct obf_copy *ret);
/* The caller resolves the contexts. */
CUresult obf_copy_from_peer(const CUDA_MEMCPY3D_PEER *copy, struct obf_copy *ret);

#endif
