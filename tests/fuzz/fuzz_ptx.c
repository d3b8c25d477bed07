/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* PTX text for the software device's PTX front end. */
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/program.h"
#include "tests/fuzz/fuzz.h"

static void *env_alloc(void *user, size_t size, size_t align)
{
	void *p = NULL;

	(void)user;
	if (size > 1u << 24 || posix_memalign(&p, align < 16 ? 16 : align, size ? size : 1))
		return NULL;
	memset(p, 0, size);
	return p;
}

static void env_free(void *user, void *p)
{
	(void)user;
	free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct obd_env env = { .alloc = env_alloc,
		.free = env_free,
		.window_size = SIZE_MAX / 2,
		.compute_capability = 90,
		.sm_count = 2 };
	struct obd_program *program;
	char log[512];

	if (obd_program_load((const char *)data, size, &env, &program, log, sizeof log) !=
		CUDA_SUCCESS)
		return 0;
	for (size_t i = 0; i < obd_program_kernel_count(program); i++)
		if (!obd_program_kernel(program, obd_program_kernel_at(program, i)->name))
			abort();
	obd_program_free(program);
	return 0;
}
