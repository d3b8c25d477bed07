/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Uses copies of NVRTC (fake_nvrtc.c) in each way in which programs reach one, and prints what each
 * returns. It is linked with copy a; b and c are opened.
 *
 *     compilers LIBRARY_B LIBRARY_C
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct program;
typedef int create_function(struct program **ret);
typedef int compile_function(struct program *program, int n, const char *const *options);
typedef int size_function(struct program *program, size_t *ret);
typedef int bytes_function(struct program *program, char *ret);

extern create_function fake_create;
extern compile_function nvrtcCompileProgram;
extern size_function nvrtcGetCUBINSize;
extern bytes_function nvrtcGetCUBIN;
extern const char *shadowed_next(void);
extern __attribute__((visibility("default"))) const char *shadowed(void);

const char *shadowed(void)
{
	return "program";
}

static void show(const char *way, create_function *create, compile_function *compile,
	size_function *size, bytes_function *bytes, const char *option)
{
	struct program *program;
	char text[80] = "";
	size_t n = 0;
	int results[4];

	results[0] = create(&program);
	results[1] = compile(program, 1, &option);
	results[2] = size(program, &n);
	results[3] = n && n <= sizeof text ? bytes(program, text) : 0;
	printf("%s: %d%d%d%d %zu %s\n", way, results[0], results[1], results[2], results[3], n,
		text);
}

static void look_up(void *handle, const char *name, void *ret, size_t size)
{
	void *found = dlsym(handle, name);

	if (!found)
		printf("%s: %s\n", name, dlerror());
	memcpy(ret, &found, size);
}

static void open_and_show(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	create_function *create;
	compile_function *compile;
	size_function *size;
	bytes_function *bytes;

	look_up(handle, "fake_create", &create, sizeof create);
	look_up(handle, "nvrtcCompileProgram", &compile, sizeof compile);
	look_up(handle, "nvrtcGetCUBINSize", &size, sizeof size);
	look_up(handle, "nvrtcGetCUBIN", &bytes, sizeof bytes);
	show("opened", create, compile, size, bytes, "-arch=sm_80");
	show("opened", create, compile, size, bytes, "--gpu-architecture=sm_121a");
}

int main(int argc, char **argv)
{
	const char *(*next)(void);
	bytes_function *usual;

	if (argc != 3)
		return 2;
	show("linked", fake_create, nvrtcCompileProgram, nvrtcGetCUBINSize, nvrtcGetCUBIN,
		"-arch=sm_80");
	show("linked", fake_create, nvrtcCompileProgram, nvrtcGetCUBINSize, nvrtcGetCUBIN,
		"-arch=sm_130");
	show("linked", fake_create, nvrtcCompileProgram, nvrtcGetCUBINSize, nvrtcGetCUBIN,
		"-arch=compute_90");
	open_and_show(argv[1]);
	open_and_show(argv[2]);
	look_up(RTLD_DEFAULT, "nvrtcGetCUBIN", &usual, sizeof usual);
	show("default", fake_create, nvrtcCompileProgram, nvrtcGetCUBINSize, usual, "-arch=sm_80");
	look_up(RTLD_NEXT, "shadowed", &next, sizeof next);
	printf("next of the program: %s, of the library: %s\n", next ? next() : "none",
		shadowed_next());
	printf("nvJitLink: %s\n", dlsym(RTLD_DEFAULT, "nvJitLinkCreate") ? "there" : "none");
	return 0;
}
