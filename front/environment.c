/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/environment.h"

#include <stdlib.h>
#include <string.h>

struct obf_environment obf_environment;

static bool is_set(const char *name)
{
	const char *text = getenv(name);

	return text && *text;
}

static bool is_on(const char *name)
{
	return is_set(name) && strtol(getenv(name), NULL, 10) != 0;
}

/* If two variables have the same meaning, the first takes precedence when it is set. */
static bool either_on(const char *first, const char *second)
{
	return is_set(first) ? is_on(first) : is_on(second);
}

static bool is_eager(const char *name)
{
	return is_set(name) && strcmp(getenv(name), "EAGER") == 0;
}

void obf_environment_read(void)
{
	struct obf_environment *e = &obf_environment;

	e->launch_blocking = is_on("CUDA_LAUNCH_BLOCKING");
	e->eager_code = is_eager("CUDA_MODULE_LOADING");
	e->eager_data = is_set("CUDA_MODULE_DATA_LOADING") ? is_eager("CUDA_MODULE_DATA_LOADING")
							   : e->eager_code;
	e->ptx_forced = either_on("CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT");
	e->ptx_disabled = either_on("CUDA_DISABLE_PTX_JIT", "CUDA_DISABLE_JIT");
}
