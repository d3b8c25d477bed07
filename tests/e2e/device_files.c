/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Asks about files by name in each way that liboutboard-files.so answers. Prints for each file one
 * character for each way: + exists, - does not.
 */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void answer(int result)
{
	putchar(result == 0 ? '+' : errno == ENOENT ? '-' : '?');
}

int main(int argc, char **argv)
{
	int (*xstat)(int, const char *, struct stat *) =
		(int (*)(int, const char *, struct stat *))dlsym(RTLD_DEFAULT, "__xstat");
	int (*fxstatat)(int, int, const char *, struct stat *, int) = (int (*)(
		int, int, const char *, struct stat *, int))dlsym(RTLD_DEFAULT, "__fxstatat");
	struct stat64 large;
	struct stat one;

	for (int i = 1; i < argc; i++) {
		const char *path = argv[i];

		printf("%s ", path);
		answer(stat(path, &one));
		answer(lstat(path, &one));
		answer(stat64(path, &large));
		answer(lstat64(path, &large));
		answer(fstatat(AT_FDCWD, path, &one, 0));
		answer(fstatat64(AT_FDCWD, path, &large, 0));
		answer(xstat ? xstat(1, path, &one) : -1);
		answer(fxstatat ? fxstatat(1, AT_FDCWD, path, &one, 0) : -1);
		answer(access(path, F_OK));
		answer(faccessat(AT_FDCWD, path, R_OK | W_OK, 0));
		if (stat(path, &one) == 0)
			printf(" %s",
				S_ISCHR(one.st_mode)           ? "device"
					: S_ISDIR(one.st_mode) ? "folder"
							       : "other");
		printf(" open %s\n", open(path, O_RDONLY | O_CLOEXEC) >= 0 ? "works" : "fails");
	}
	return 0;
}
