/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Which compiled instruction set runs: the best the processor has, or a lower one by OUTBOARD_SOFT_ISA. */
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/exec.h"

const struct obd_isa *obd_isa_current = &obd_isa_baseline;

__attribute__((constructor)) static void
choose(void)
{
	const struct obd_isa *have[4] = {&obd_isa_baseline};
	size_t n = 1;
	const char *want = getenv("OUTBOARD_SOFT_ISA");

#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("sse4.1"))
		have[n++] = &obd_isa_sse41;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
		have[n++] = &obd_isa_avx2;
	if (n == 3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		have[n++] = &obd_isa_avx512;
#endif
	obd_isa_current = have[n - 1];
	for (size_t i = 0; want && i < n; i++)
		if (strcmp(want, have[i]->name) == 0)
			obd_isa_current = have[i];
}

const char *
obd_core_isa(void)
{
	return obd_isa_current->name;
}
