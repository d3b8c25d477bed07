/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/cache_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define FILES_MAX (1u << 22)     /* that one sweep looks at */

struct entry {
	uint64_t used_ns;        /* when it was used last */
	uint64_t size;
	char tenant[OBS_TENANT_DIGITS + 1], file[OBS_CACHE_FILE_NAME];
};

struct sweep {
	struct entry *list;
	size_t n, capacity;
	uint64_t bytes;
};

static DIR *dir_open(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static bool entry_add(struct sweep *sweep, const char *tenant, const char *file, const struct stat *st)
{
	struct entry *larger;

	if (sweep->n == sweep->capacity) {
		size_t capacity = sweep->capacity ? 2 * sweep->capacity : 1024;

		larger = capacity <= FILES_MAX ? realloc(sweep->list, capacity * sizeof *larger) : NULL;
		if (!larger)
			return false;
		sweep->list = larger;
		sweep->capacity = capacity;
	}
	struct entry *entry = &sweep->list[sweep->n++];

	entry->used_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
	entry->size = obs_cache_charge((uint64_t)st->st_size);
	snprintf(entry->tenant, sizeof entry->tenant, "%s", tenant);
	snprintf(entry->file, sizeof entry->file, "%s", file);
	sweep->bytes += entry->size;
	return true;
}

static bool tenant_look(struct sweep *sweep, int top, const char *tenant)
{
	DIR *dir = dir_open(top, tenant);
	struct dirent *found;
	struct stat st;
	bool ok = true;

	if (!dir)
		return true; /* gone meanwhile */
	while (ok && (found = readdir(dir)) != NULL) {
		if (fstatat(dirfd(dir), found->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
			continue;
		if (strlen(found->d_name) < OBS_CACHE_FILE_NAME - 1) {
			/* Half-written. Its worker may be at it, or may have been killed. */
			if (st.st_mtim.tv_sec + OBS_CACHE_STALE_S < time(NULL))
				unlinkat(dirfd(dir), found->d_name, 0);
			continue;
		}
		ok = strlen(found->d_name) > OBS_CACHE_FILE_NAME - 1 || entry_add(sweep, tenant, found->d_name, &st);
	}
	closedir(dir);
	return ok;
}

static bool all_look(struct sweep *sweep, int top)
{
	DIR *dir = dir_open(top, ".");
	struct dirent *found;
	bool ok = dir != NULL;

	while (ok && (found = readdir(dir)) != NULL)
		if (strlen(found->d_name) == OBS_TENANT_DIGITS) {
			/* Only an empty one goes. A worker whose folder it was makes it again. */
			if (unlinkat(top, found->d_name, AT_REMOVEDIR) != 0)
				ok = tenant_look(sweep, top, found->d_name);
		}
	if (dir)
		closedir(dir);
	return ok;
}

static int by_use(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

static void entry_remove(const struct entry *entry, int top)
{
	char path[sizeof entry->tenant + sizeof entry->file];

	snprintf(path, sizeof path, "%s/%s", entry->tenant, entry->file);
	unlinkat(top, path, 0);
}

bool obs_cache_make_room(struct obs_cache *cache)
{
	struct sweep sweep = { .n = 0 };
	uint64_t evicted = 0;
	bool ok;

	if (flock(cache->top, LOCK_EX | LOCK_NB) != 0)
		return false;
	ok = all_look(&sweep, cache->top);
	if (ok && sweep.bytes > cache->limit - cache->limit / 16) {
		qsort(sweep.list, sweep.n, sizeof *sweep.list, by_use);
		for (; evicted < sweep.n && sweep.bytes > cache->limit - cache->limit / 8; evicted++) {
			entry_remove(&sweep.list[evicted], cache->top);
			sweep.bytes -= sweep.list[evicted].size;
		}
		ob_debug("%llu kept uploads were thrown away, %llu bytes are left", (unsigned long long)evicted, (unsigned long long)sweep.bytes);
	}
	/* What others are writing in this moment is missing from the sum until the next time. */
	if (ok)
		atomic_store(&cache->usage->bytes, sweep.bytes);
	atomic_fetch_add(&cache->usage->evicted, evicted);
	flock(cache->top, LOCK_UN);
	free(sweep.list);
	return ok;
}
