/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/loader.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

#define PATH_BYTES 4096

bool obx_loader_takes(const char *path)
{
	return !path[strcspn(path, " \t\n:;$")];
}

/*
 * Makes a folder that only this user can write to, or uses the existing one. It is readable by
 * everyone, because a program may give up its user's rights.
 */
static bool own_folder(const char *path)
{
	struct stat st;

	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		return false;
	if (lstat(path, &st) != 0)
		return false;
	errno = EPERM;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}

static bool links_to(const char *path, const char *target)
{
	char there[PATH_BYTES];
	ssize_t n = readlink(path, there, sizeof there);

	return n > 0 && (size_t)n == strlen(target) && memcmp(there, target, (size_t)n) == 0;
}

/* Makes a link at `path` to the target. An existing file is replaced atomically. */
static bool link_to(const char *target, const char *path)
{
	char fresh[PATH_BYTES];

	if (links_to(path, target))
		return true;
	if (snprintf(fresh, sizeof fresh, "%s.%d", path, (int)getpid()) >= (int)sizeof fresh) {
		errno = ENAMETOOLONG;
		return false;
	}
	unlink(fresh);
	if (symlink(target, fresh) == 0 && rename(fresh, path) == 0)
		return true;
	/*
	 * A process with the same id in another container that shares the folder may have made it
	 * first.
	 */
	for (int tries = 0; tries < 50; tries++) {
		if (links_to(path, target))
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
	unlink(fresh);
	return false;
}

bool obx_loader_folder(const char *target, const char *name, char *ret_folder, size_t size)
{
	const char *bases[] = { getenv("XDG_RUNTIME_DIR"), "/tmp" };
	char folder[PATH_BYTES], path[PATH_BYTES];
	/* each installation has its own folder, as several may be in use at once */
	uint64_t hash = ob_hash(OB_HASH_START, target, strlen(target));

	folder[0] = 0;
	for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
		if (!bases[i] || bases[i][0] != '/' || strlen(bases[i]) > PATH_BYTES / 2 ||
			!obx_loader_takes(bases[i]))
			continue;
		snprintf(
			folder, sizeof folder, "%s/outboard-run-%u", bases[i], (unsigned)geteuid());
		if (!own_folder(folder))
			continue;
		snprintf(folder + strlen(folder), sizeof folder - strlen(folder), "/%016llx",
			(unsigned long long)hash);
		if (!own_folder(folder) || strlen(folder) >= size)
			continue;
		if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
			link_to(target, path)) {
			strcpy(ret_folder, folder);
			return true;
		}
	}
	snprintf(ret_folder, size, "%s", folder);
	return false;
}
