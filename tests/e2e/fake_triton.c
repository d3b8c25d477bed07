/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A stand-in for Triton's compiler, for its module for the driver (with ASKS_DRIVER) and for a library
 * of PyTorch, according to the file that a copy of it is in: see capability.py. asks_* return the
 * device's compute capability, 130 for 13.0.
 */
#include <string.h>

#define EXPORT       __attribute__((visibility("default")))
#define MAJOR        75
#define MINOR        76
#define MAJOR_OFFSET 360 /* in cudaDeviceProp */

extern int cuInit(unsigned flags);
extern int cuDeviceGetAttribute(int *ret, int attribute, int device);
extern int cudaGetDeviceProperties(char *ret, int device);
extern int cudaGetDeviceProperties_v2(char *ret, int device);

/* The processors that this compiler knows; the last is no name of its own. */
EXPORT const char processors[] = "\0sm_90a\0sm_120a\0sm_120f\0+sm_121a";

#ifdef ASKS_DRIVER
EXPORT void *PyInit_cuda_utils(void)
{
	return NULL;
}
#endif

EXPORT int asks_driver(void)
{
	int major = 0, minor = 0;

	if (cuInit(0) != 0 || cuDeviceGetAttribute(&major, MAJOR, 0) != 0 ||
		cuDeviceGetAttribute(&minor, MINOR, 0) != 0)
		return -1;
	return major * 10 + minor;
}

static int ask(int (*properties)(char *ret, int device))
{
	char about[1024] = "";
	int capability[2];

	if (cuInit(0) != 0 || properties(about, 0) != 0)
		return -1;
	memcpy(capability, about + MAJOR_OFFSET, sizeof capability);
	return capability[0] * 10 + capability[1];
}

EXPORT int asks_runtime(void)
{
	return ask(cudaGetDeviceProperties);
}

EXPORT int asks_runtime_12(void)
{
	return ask(cudaGetDeviceProperties_v2);
}
