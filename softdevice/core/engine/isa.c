/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Selects the instruction set that runs: the best one that the processor supports, a lower one with
 * OUTBOARD_SOFT_ISA, or the lowest with OUTBOARD_OPT=-simd.
 */
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/opt.h"
#include "softdevice/core/engine/exec.h"

#if defined(OBD_HAVE_BASELINE)
#define FIRST obd_isa_baseline
#else
#define FIRST obd_isa_sse41
#endif

const struct obd_isa *obd_isa_current = &FIRST;
bool obd_fullmask = true;

#if defined(OBD_HAVE_AVX2)
/* older compilers have no name for this feature in __builtin_cpu_supports */
static bool has_f16c(void)
{
	unsigned a, b, c = 0, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

__attribute__((constructor)) static void choose(void)
{
	const struct obd_isa *have[3] = { &FIRST };
	size_t n = 1;
	const char *want = getenv("OUTBOARD_SOFT_ISA");

#if defined(OBD_HAVE_AVX2)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
		__builtin_cpu_supports("bmi2") && has_f16c())
		have[n++] = &obd_isa_avx2;
#endif
#if defined(OBD_HAVE_AVX512)
	if (n == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		have[n++] = &obd_isa_avx512;
#endif
	obd_fullmask = ob_opt_on(OB_OPT_FULLMASK);
	obd_isa_current = have[ob_opt_on(OB_OPT_SIMD) ? n - 1 : 0];
	for (size_t i = 0; want && i < n; i++)
		if (strcmp(want, have[i]->name) == 0)
			obd_isa_current = have[i];
}

const char *obd_core_isa(void)
{
	return obd_isa_current->name;
}
