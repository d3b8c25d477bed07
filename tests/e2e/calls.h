/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Shared by the programs of the tests that load the driver library by dlopen. */
#ifndef OB_TESTS_E2E_CALLS_H
#define OB_TESTS_E2E_CALLS_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cuda_types.h"

/* The call must succeed, or the program ends. */
static inline void need(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s %d\n", what, (int)result);
	exit(1);
}

static inline void *library_open(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (library)
		return library;
	fprintf(stderr, "%s\n", dlerror());
	exit(2);
}

#endif
