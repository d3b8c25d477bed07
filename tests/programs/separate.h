/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Declarations shared by the two files of the separable compilation test. */
#ifndef TESTS_PROGRAMS_SEPARATE_H
#define TESTS_PROGRAMS_SEPARATE_H

extern __device__ int base;
extern __device__ int shared_counter;
extern __constant__ int shared_table[4];
__device__ int twice(int x);
__device__ int elsewhere(int x);
__global__ void there(int *out, int add);

#endif
