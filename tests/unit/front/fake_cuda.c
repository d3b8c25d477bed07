/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The rest of a libcuda.so.1 over the front end and the generated stubs: device memory is this process's
 * memory, and one kernel is known by name and computed here, so that a program built by nvcc can
 * check that its parameters arrived.
 */
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "protocol/obd_locals.h"
#include "protocol/obd_procs.h"

__attribute__((constructor)) static void attach(void);

static void attach(void)
{
	fake_attach(obd_procs, obd_n_procs);
}

/* add(const float *a, const float *b, float *c, int n) */
struct add_params {
	const float *a, *b;
	float *c;
	int n;
};

static inline CUresult launch_enqueue(struct obf_stream *stream, struct obf_func *func,
	const struct obf_launch *launch, void **params, void **extra)
{
	struct add_params packed;
	CUresult result;

	(void)stream;
	(void)launch;
	if (!strstr(func->name, "add") || func->param_bytes != 28)
		return CUDA_ERROR_LAUNCH_FAILED;
	result = obf_launch_pack(func, params, extra, &packed);
	if (result != CUDA_SUCCESS)
		return result;
	for (int i = 0; i < packed.n; i++)
		packed.c[i] = packed.a[i] + packed.b[i];
	return CUDA_SUCCESS;
}

#include "front/launch_calls.h"
