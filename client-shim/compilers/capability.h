/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The compute capability that Triton and PyTorch get: the device's, or the newest that this Triton
 * can compile for, whichever is lower. The software device has one that Triton does not know, but
 * runs PTX for all lower ones. Triton asks PyTorch for it, and without PyTorch the driver, from a
 * module of its own (cuda_utils). Triton has no setting for another capability. All other callers
 * get the device's. Any thread (ADR 43).
 *
 * The functions below are for programs that are linked with libcuda or libcudart.
 */
#ifndef OBC_CAPABILITY_H
#define OBC_CAPABILITY_H

#include "client-shim/compilers/copies.h"

struct cudaDeviceProp;

OBC_EXPORT int cuDeviceGetAttribute(int *ret, int attribute, int device);
/* of CUDA 12; before and since, the other one */
OBC_EXPORT int cudaGetDeviceProperties_v2(struct cudaDeviceProp *ret, int device);
OBC_EXPORT int cudaGetDeviceProperties(struct cudaDeviceProp *ret, int device);

#endif
