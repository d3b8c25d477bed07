/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/compilers/capability.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY       "libcuda.so.1"
#define COMPILER      "triton/_C/libtriton.so"
/* only Triton's module for the driver defines it */
#define MODULE_SYMBOL "PyInit_cuda_utils"
#define NEWEST        121 /* of Triton 3.9; a later one knows this too */
#define PATH_BYTES    4096

/* of cuda.h and driver_types.h */
#define SUCCESS      0
#define NOT_FOUND    500 /* CUDA_ERROR_NOT_FOUND */
#define UNKNOWN      999 /* cudaErrorUnknown */
#define MAJOR        75
#define MINOR        76
#define MAJOR_OFFSET 360 /* of major, then minor, in cudaDeviceProp of CUDA 11, 12 and 13 */

typedef int attribute_function(int *ret, int attribute, int device);
typedef int properties_function(struct cudaDeviceProp *ret, int device);

/* ---- what Triton can compile for ---- */

/* The newest processor whose name the compiler's file has, as a string of its own. */
static unsigned newest_in(const char *text, size_t n)
{
	static const unsigned newest[] = { NEWEST, 120, 100, 90 };
	char name[16];

	for (size_t i = 0; i < sizeof newest / sizeof *newest; i++) {
		int bytes = snprintf(name + 1, sizeof name - 1, "sm_%ua", newest[i]);

		name[0] = 0;
		if (memmem(text, n, name, (size_t)bytes + 2))
			return newest[i];
	}
	return NEWEST;
}

/* Searches the whole file, once for each name: some 0.1 s in all. 0: there is no such file. */
static unsigned known_to_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned most = NEWEST;
	struct stat about;
	void *text;

	if (fd < 0)
		return 0;
	if (fstat(fd, &about) == 0 && about.st_size > 0) {
		text = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (text != MAP_FAILED) {
			most = newest_in(text, (size_t)about.st_size);
			munmap(text, (size_t)about.st_size);
		}
	}
	close(fd);
	return most;
}

/* For dl_iterate_phdr. */
static int find_compiler(struct dl_phdr_info *library, size_t size, void *ret)
{
	const char *path = library->dlpi_name ? strstr(library->dlpi_name, COMPILER) : NULL;

	(void)size;
	if (!path)
		return 0;
	snprintf(ret, PATH_BYTES, "%s", library->dlpi_name);
	return 1;
}

/*
 * The Triton that is loaded, or the one beside PyTorch, which asks before Triton is loaded:
 * ".../torch/lib/libc10_cuda.so", ".../triton/_C/libtriton.so".
 */
static unsigned known_to_triton(const char *caller)
{
	static _Atomic unsigned known;
	unsigned most = atomic_load_explicit(&known, memory_order_relaxed);
	const char *torch = strstr(caller, "/torch/lib/");
	char path[PATH_BYTES] = "";

	if (most)
		return most;
	if (!dl_iterate_phdr(find_compiler, path) && torch)
		snprintf(path, sizeof path, "%.*s/" COMPILER, (int)(torch - caller), caller);
	most = known_to_file(path);
	if (!most)
		return NEWEST; /* Triton may be loaded later: the next call searches again */
	/* Relaxed: the number stands alone. */
	atomic_store_explicit(&known, most, memory_order_relaxed);
	return most;
}

/* ---- the driver ---- */

static attribute_function *next_attribute(void)
{
	static attribute_function *_Atomic known;
	attribute_function *next = atomic_load_explicit(&known, memory_order_relaxed);
	void *handle, *found;

	if (next)
		return next;
	handle = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
	found = handle ? obc_dlsym(handle, "cuDeviceGetAttribute") : NULL;
	memcpy(&next, &found, sizeof next);
	/* Every thread finds the same function, which the loader has made ready. */
	atomic_store_explicit(&known, next, memory_order_relaxed);
	return next;
}

int cuDeviceGetAttribute(int *ret, int attribute, int device)
{
	const void *caller = __builtin_return_address(0);
	attribute_function *next = next_attribute();
	int major = 0, minor = 0, status;
	const char *path;
	void *library;
	unsigned most;
	bool triton;

	if (!next)
		return NOT_FOUND;
	status = next(ret, attribute, device);
	if (status != SUCCESS || (attribute != MAJOR && attribute != MINOR))
		return status;
	library = obc_library_of(caller, &path);
	triton = library && obc_dlsym(library, MODULE_SYMBOL);
	if (triton && next(&major, MAJOR, device) == SUCCESS &&
		next(&minor, MINOR, device) == SUCCESS) {
		most = known_to_triton(path);
		if ((unsigned)(major * 10 + minor) > most)
			*ret = (int)(attribute == MAJOR ? most / 10 : most % 10);
	}
	if (library)
		dlclose(library);
	return status;
}

/* ---- the runtime library ---- */

static int properties(const char *name, struct cudaDeviceProp *ret, int device, const void *caller)
{
	properties_function *next = NULL;
	const char *path, *file;
	unsigned most;
	void *library = obc_library_of(caller, &path), *found;
	int capability[2], status;

	found = library ? obc_dlsym(library, name) : NULL;
	/* The program itself, or a library that was not linked with the runtime. */
	if (!found)
		found = obc_dlsym(RTLD_NEXT, name);
	memcpy(&next, &found, sizeof next);
	status = next ? next(ret, device) : UNKNOWN;
	file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	if (status == SUCCESS &&
		(strncmp(file, "libtorch", 8) == 0 || strncmp(file, "libc10", 6) == 0)) {
		memcpy(capability, (char *)ret + MAJOR_OFFSET, sizeof capability);
		most = known_to_triton(path);
		if ((unsigned)(capability[0] * 10 + capability[1]) > most) {
			capability[0] = (int)(most / 10);
			capability[1] = (int)(most % 10);
			memcpy((char *)ret + MAJOR_OFFSET, capability, sizeof capability);
		}
	}
	if (library)
		dlclose(library);
	return status;
}

int cudaGetDeviceProperties_v2(struct cudaDeviceProp *ret, int device)
{
	return properties(__func__, ret, device, __builtin_return_address(0));
}

int cudaGetDeviceProperties(struct cudaDeviceProp *ret, int device)
{
	return properties(__func__, ret, device, __builtin_return_address(0));
}
