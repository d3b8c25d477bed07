/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A stand-in for NVRTC, built as several libraries (COPY is the letter of each): it compiles a text to
 * "PTX <letter> <option>" and "CUBIN <letter> <option>", and refuses another copy's programs. It
 * knows the capabilities 8.0 and 9.0.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define API __attribute__((visibility("default")))

struct program {
	char text[64];
};

API int fake_create(struct program **ret);
API int nvrtcCompileProgram(struct program *program, int n, const char *const *options);
API int nvrtcGetCUBINSize(struct program *program, size_t *ret);
API int nvrtcGetCUBIN(struct program *program, char *ret);
API int nvrtcGetPTXSize(struct program *program, size_t *ret);
API int nvrtcGetPTX(struct program *program, char *ret);
API int nvrtcGetNumSupportedArchs(int *ret);
API int nvrtcGetSupportedArchs(int *ret);
API const char *shadowed(void);
API const char *shadowed_next(void);

static struct program own;

int fake_create(struct program **ret)
{
	*ret = &own;
	return 0;
}

int nvrtcCompileProgram(struct program *program, int n, const char *const *options)
{
	if (program != &own)
		return 4;
	snprintf(own.text, sizeof own.text, COPY " %s", n ? options[n - 1] : "plain");
	return 0;
}

static int text(const struct program *program, const char *kind, char *ret, size_t *ret_size)
{
	char all[80];
	int n = snprintf(all, sizeof all, "%s %s", kind, own.text);

	if (program != &own)
		return 4;
	if (ret)
		memcpy(ret, all, (size_t)n + 1);
	if (ret_size)
		*ret_size = (size_t)n + 1;
	return 0;
}

int nvrtcGetCUBINSize(struct program *program, size_t *ret)
{
	*ret = 0;
	return strstr(own.text, "compute_") ? 0 : text(program, "CUBIN", NULL, ret);
}

int nvrtcGetCUBIN(struct program *program, char *ret)
{
	return text(program, "CUBIN", ret, NULL);
}

int nvrtcGetPTXSize(struct program *program, size_t *ret)
{
	return text(program, "PTX", NULL, ret);
}

int nvrtcGetPTX(struct program *program, char *ret)
{
	return text(program, "PTX", ret, NULL);
}

int nvrtcGetNumSupportedArchs(int *ret)
{
	*ret = 2;
	return 0;
}

int nvrtcGetSupportedArchs(int *ret)
{
	ret[0] = 80;
	ret[1] = 90;
	return 0;
}

/* What the C library's dlsym finds depends on its caller. */
const char *shadowed(void)
{
	return COPY;
}

const char *shadowed_next(void)
{
	const char *(*next)(void);
	void *found = dlsym(RTLD_NEXT, "shadowed");

	memcpy(&next, &found, sizeof next);
	return found ? next() : "none";
}
