/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* A stand-in for libcudart.so, which answers what the driver says: see capability.py. */
#include <string.h>

#define MAJOR        75
#define MINOR        76
#define MAJOR_OFFSET 360 /* in cudaDeviceProp */

extern int cuGetProcAddress_v2(
	const char *name, void *ret, int version, unsigned long long flags, int *ret_status);

/* As the real one, it takes the driver's functions by cuGetProcAddress. */
static int fill(char *ret, int device)
{
	int (*attribute)(int *ret, int attribute, int device) = NULL;
	int capability[2] = { 0, 0 }, status;

	if (cuGetProcAddress_v2("cuDeviceGetAttribute", &attribute, 12000, 0, &status) != 0 ||
		!attribute || attribute(&capability[0], MAJOR, device) != 0 ||
		attribute(&capability[1], MINOR, device) != 0)
		return 1;
	memcpy(ret + MAJOR_OFFSET, capability, sizeof capability);
	return 0;
}

__attribute__((visibility("default"))) int cudaGetDeviceProperties(char *ret, int device)
{
	return fill(ret, device);
}

__attribute__((visibility("default"))) int cudaGetDeviceProperties_v2(char *ret, int device)
{
	return fill(ret, device);
}
