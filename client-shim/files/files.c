/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * liboutboard-files.so: JAX uses a GPU only if /dev/nvidia0 or /dev/nvidiactl exists. This library,
 * which `outboard run` preloads, answers that they do. It replaces the functions that ask about a
 * file by its name. Each calls the C library's function, and changes the answer only if that says
 * that one of the two names does not exist. Opening such a file still fails.
 *
 * It is a library of its own, because a program that links libcuda.so.1 must not get these
 * functions from it. OUTBOARD_DEVICE_FILES=0 leaves it out. It needs libc only, has no state but the
 * addresses of the real functions, and calls no function that the program could have replaced with
 * one that uses this library. Any thread.
 */
#undef _FILE_OFFSET_BITS /* which would give stat the name stat64 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define EXPORT       __attribute__((visibility("default")))
#define NVIDIA_MAJOR 195u /* Linux: Documentation/admin-guide/devices.txt */

static const struct {
	const char *path;
	unsigned minor;
} devices[] = {
	{ "/dev/nvidia0", 0 },
	{ "/dev/nvidiactl", 255 },
};

/* The device's number; 0: not one of ours, or the call has not said that there is no such file. */
static dev_t device_missing(int result, const char *path)
{
	if (__builtin_expect(result == 0 || errno != ENOENT || !path, 1))
		return 0;
	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
		if (strcmp(path, devices[i].path) == 0)
			return makedev(NVIDIA_MAJOR, devices[i].minor);
	return 0;
}

static int answer_stat(int result, const char *path, struct stat *ret)
{
	dev_t device = device_missing(result, path);

	if (!device)
		return result;
	memset(ret, 0, sizeof *ret);
	ret->st_mode = S_IFCHR | 0666;
	ret->st_nlink = 1;
	ret->st_rdev = device;
	ret->st_blksize = 4096;
	return 0;
}

static int answer_access(int result, const char *path, int mode)
{
	return device_missing(result, path) && !(mode & X_OK) ? 0 : result;
}

/*
 * Defines the replacement `name`, which calls the next function of that name. On this architecture
 * struct stat64 is struct stat. The names with underscores are those of glibc before 2.33, which
 * programs that were built there call.
 */
#define REPLACE(name, parameters, arguments, answer)                      \
	EXPORT int name parameters;                                       \
	EXPORT int name parameters                                        \
	{                                                                 \
		static void *next;                                        \
		void *found = __atomic_load_n(&next, __ATOMIC_RELAXED);   \
		int(*function) parameters, result;                        \
                                                                          \
		if (!found) {                                             \
			found = dlsym(RTLD_NEXT, #name);                  \
			__atomic_store_n(&next, found, __ATOMIC_RELAXED); \
		}                                                         \
		if (!found) {                                             \
			errno = ENOSYS;                                   \
			return -1;                                        \
		}                                                         \
		memcpy(&function, &found, sizeof function);               \
		result = function arguments;                              \
		return answer;                                            \
	}

REPLACE(stat, (const char *path, struct stat *ret), (path, ret), answer_stat(result, path, ret))
REPLACE(lstat, (const char *path, struct stat *ret), (path, ret), answer_stat(result, path, ret))
REPLACE(stat64, (const char *path, struct stat64 *ret), (path, ret),
	answer_stat(result, path, (struct stat *)ret))
REPLACE(lstat64, (const char *path, struct stat64 *ret), (path, ret),
	answer_stat(result, path, (struct stat *)ret))
REPLACE(fstatat, (int fd, const char *path, struct stat *ret, int flags), (fd, path, ret, flags),
	answer_stat(result, path, ret))
REPLACE(fstatat64, (int fd, const char *path, struct stat64 *ret, int flags),
	(fd, path, ret, flags), answer_stat(result, path, (struct stat *)ret))
REPLACE(__xstat, (int version, const char *path, struct stat *ret), (version, path, ret),
	answer_stat(result, path, ret))
REPLACE(__xstat64, (int version, const char *path, struct stat64 *ret), (version, path, ret),
	answer_stat(result, path, (struct stat *)ret))
REPLACE(__fxstatat, (int version, int fd, const char *path, struct stat *ret, int flags),
	(version, fd, path, ret, flags), answer_stat(result, path, ret))
REPLACE(__fxstatat64, (int version, int fd, const char *path, struct stat64 *ret, int flags),
	(version, fd, path, ret, flags), answer_stat(result, path, (struct stat *)ret))
REPLACE(access, (const char *path, int mode), (path, mode), answer_access(result, path, mode))
REPLACE(faccessat, (int fd, const char *path, int mode, int flags), (fd, path, mode, flags),
	answer_access(result, path, mode))

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout");
