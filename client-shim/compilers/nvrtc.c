/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * NVRTC makes PTX on its way to machine code and keeps both. Where the program asks for the machine
 * code it gets the PTX, which every function of the driver that loads code accepts.
 *
 * The software device's capability may be newer than all that an NVRTC knows. The newest that it
 * knows is then compiled for, because PTX runs on later devices as well.
 *
 * Source: nvrtc.h of CUDA 13.0. Any thread, as far as NVRTC allows.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-shim/compilers/copies.h"

#define NVRTC_SUCCESS        0
#define NVRTC_INTERNAL_ERROR 11

#define OPTIONS_MAX 1024u
#define ARCHS_MAX   256
#define OPTION_MAX  64u

typedef int size_function(void *program, size_t *ret);
typedef int bytes_function(void *program, char *ret);
typedef int compile_function(void *program, int n, const char *const *options);
typedef int numbers_function(int *ret);

static void *function(const struct obc_copy *copy, const char *name, void *ret, size_t size)
{
	void *found = obc_copy_function(copy, name);

	memcpy(ret, &found, size);
	return found;
}

/* ---- the capability ---- */

/* The newest capability that this copy compiles for, 90 for 9.0; 0: it does not say. */
static int newest(const struct obc_copy *copy)
{
	numbers_function *count, *list;
	int archs[ARCHS_MAX], n = 0, most = 0;

	if (!function(copy, "nvrtcGetNumSupportedArchs", &count, sizeof count) ||
		!function(copy, "nvrtcGetSupportedArchs", &list, sizeof list) || count(&n) ||
		n < 1 || n > ARCHS_MAX || list(archs))
		return 0;
	for (int i = 0; i < n; i++)
		most = archs[i] > most ? archs[i] : most;
	return most;
}

/* Where the capability stands in an option "-arch=sm_90" or its value "sm_90"; NULL: nowhere. */
static const char *capability_in(const char *option)
{
	static const char *const heads[] = { "sm_", "compute_" };
	const char *value = option;

	if (strncmp(option, "-arch=", 6) == 0)
		value = option + 6;
	else if (strncmp(option, "--gpu-architecture=", 19) == 0)
		value = option + 19;
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		size_t n = strlen(heads[i]);

		if (strncmp(value, heads[i], n) == 0 && value[n] >= '1' && value[n] <= '9')
			return value + n;
	}
	return NULL;
}

static int number_at(const char *text)
{
	int number = 0;

	for (; *text >= '0' && *text <= '9' && number < 10000; text++)
		number = number * 10 + (*text - '0');
	return number;
}

static int nvrtcCompileProgram_on(
	const struct obc_copy *copy, void *program, int n, const char *const *options)
{
	int most = newest(copy);
	const char *changed[OPTIONS_MAX];
	char text[OPTION_MAX];
	compile_function *compile;

	if (!function(copy, "nvrtcCompileProgram", &compile, sizeof compile))
		return NVRTC_INTERNAL_ERROR;
	if (!options || n < 1 || (unsigned)n > OPTIONS_MAX || !most)
		return compile(program, n, options);
	for (int i = 0; i < n; i++) {
		const char *number = options[i] ? capability_in(options[i]) : NULL;

		changed[i] = options[i];
		/* NVRTC refuses a second option of this kind, so one text is enough. */
		if (number && number_at(number) > most &&
			number - options[i] < (ptrdiff_t)OPTION_MAX - 8) {
			snprintf(text, sizeof text, "%.*s%d", (int)(number - options[i]),
				options[i], most);
			changed[i] = text;
		}
	}
	return compile(program, n, changed);
}

/* ---- PTX instead of machine code ---- */

/* Whether the program was compiled to machine code, and there is the PTX of it. Its size. */
static bool has_both(const struct obc_copy *copy, void *program, size_t *ret)
{
	size_function *cubin_size, *ptx_size;
	size_t cubin = 0;

	return function(copy, "nvrtcGetCUBINSize", &cubin_size, sizeof cubin_size) &&
		function(copy, "nvrtcGetPTXSize", &ptx_size, sizeof ptx_size) &&
		cubin_size(program, &cubin) == NVRTC_SUCCESS && cubin > 0 &&
		ptx_size(program, ret) == NVRTC_SUCCESS && *ret > 1;
}

static int nvrtcGetCUBINSize_on(const struct obc_copy *copy, void *program, size_t *ret)
{
	size_function *size;
	size_t ptx;

	if (ret && has_both(copy, program, &ptx)) {
		*ret = ptx;
		return NVRTC_SUCCESS;
	}
	return function(copy, "nvrtcGetCUBINSize", &size, sizeof size) ? size(program, ret)
								       : NVRTC_INTERNAL_ERROR;
}

static int nvrtcGetCUBIN_on(const struct obc_copy *copy, void *program, char *ret)
{
	bytes_function *bytes;
	size_t ptx;
	bool both = has_both(copy, program, &ptx);

	return function(copy, both ? "nvrtcGetPTX" : "nvrtcGetCUBIN", &bytes, sizeof bytes)
		? bytes(program, ret)
		: NVRTC_INTERNAL_ERROR;
}

OBC_WRAP(nvrtcCompileProgram, NVRTC_INTERNAL_ERROR,
	(void *program, int n, const char *const *options), (program, n, options))
OBC_WRAP(nvrtcGetCUBINSize, NVRTC_INTERNAL_ERROR, (void *program, size_t *ret), (program, ret))
OBC_WRAP(nvrtcGetCUBIN, NVRTC_INTERNAL_ERROR, (void *program, char *ret), (program, ret))

const struct obc_wrapped obc_nvrtc_wrapped[] = {
	OBC_ENTRY(nvrtcCompileProgram),
	OBC_ENTRY(nvrtcGetCUBINSize),
	OBC_ENTRY(nvrtcGetCUBIN),
	{ 0 },
};
