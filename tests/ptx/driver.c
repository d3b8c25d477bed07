/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/ptx/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static bool driver_symbols(struct pt_driver *d)
{
	bool complete = true;
#define LOOK_UP(field, symbol, args)                               \
	{                                                          \
		void *p = dlsym(d->lib, #symbol);                  \
		memcpy(&d->field, &p, sizeof p);                   \
		if (!p) {                                          \
			printf("the library lacks %s\n", #symbol); \
			complete = false;                          \
		}                                                  \
	}
	PT_DRIVER_CALLS(LOOK_UP)
#undef LOOK_UP
	return complete;
}

static CUresult driver_context(struct pt_driver *d)
{
	CUresult r = d->primary_retain(&d->context, d->device);
	return r ? r : d->ctx_set(d->context);
}

enum pt_open pt_driver_open(struct pt_driver *d, const char *path)
{
	memset(d, 0, sizeof *d);
	if (!path || !*path) {
		puts("no driver library: name one on the command line or in OUTBOARD_TEST_LIBCUDA");
		return PT_OPEN_NO_LIBRARY;
	}
	d->lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!d->lib) {
		printf("cannot open the driver library: %s\n", dlerror());
		return PT_OPEN_NO_LIBRARY;
	}
	if (!driver_symbols(d))
		return PT_OPEN_BROKEN;
	CUresult r = d->init(0);
	if (!r)
		r = d->device_get(&d->device, 0);
	if (!r)
		r = d->device_name(d->name, sizeof d->name, d->device);
	if (!r)
		r = driver_context(d);
	if (r) {
		printf("%s: no usable device, error %d\n", path, (int)r);
		return r == CUDA_ERROR_NO_DEVICE || r == CUDA_ERROR_STUB_LIBRARY
			? PT_OPEN_NO_LIBRARY
			: PT_OPEN_BROKEN;
	}
	return PT_OPEN_OK;
}

void pt_driver_close(struct pt_driver *d)
{
	d->ctx_set(NULL);
	d->primary_release(d->device);
}

CUresult pt_driver_reset(struct pt_driver *d)
{
	d->ctx_set(NULL);
	d->primary_release(d->device);
	d->primary_reset(d->device);
	return driver_context(d);
}

CUresult pt_driver_load(struct pt_driver *d, const char *text, CUmodule *ret)
{
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { d->log, (void *)(uintptr_t)(sizeof d->log - 1) };
	memset(d->log, 0, sizeof d->log);
	return d->module_load(ret, text, 2, options, values);
}
