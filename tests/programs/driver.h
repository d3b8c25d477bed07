/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by the programs that use the driver API, in addition to check.h: looks up calls by name
 * and reads the device code that the build writes to the folder of the program.
 */
#ifndef TESTS_PROGRAMS_DRIVER_H
#define TESTS_PROGRAMS_DRIVER_H

#include <dlfcn.h>
#include <unistd.h>

#include "check.h"

/* Returns the driver's function with exactly this exported name. */
static inline void *driver_entry(const char *name)
{
	static void *driver;
	void *at;

	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	at = driver ? dlsym(driver, name) : NULL;
	if (!at) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return at;
}

/* Returns the path of a file in this program's folder; valid until the next call. */
static inline const char *beside(const char *file)
{
	static char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 256);

	if (length < 0)
		exit(1);
	path[length] = 0;
	snprintf(strrchr(path, '/') + 1, 255, "%s", file);
	return path;
}

/* Reads the whole file and appends a zero byte; the caller frees it. */
static inline void *read_beside(const char *file)
{
	FILE *in = fopen(beside(file), "rb");
	char *data = (char *)malloc(1 << 20);
	size_t length;

	if (!in || !data) {
		fprintf(stderr, "cannot read %s\n", beside(file));
		exit(1);
	}
	length = fread(data, 1, (1 << 20) - 1, in);
	data[length] = 0;
	fclose(in);
	return data;
}

#endif
