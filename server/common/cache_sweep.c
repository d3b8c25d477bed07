/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/cache_inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define FILES_MAX     (1u << 22) /* files in one sweep */
#define LOCK_MS       2000
#define LOCK_PAUSE_MS 60000

struct entry {
	uint64_t used_ns; /* when it was used last */
	uint64_t size;
	char tenant[OBS_TENANT_DIGITS + 1], file[OBS_CACHE_FILE_NAME];
};

struct sweep {
	struct entry *list;
	size_t n, capacity;
	uint64_t bytes;
	uid_t owner;
};

static DIR *dir_open(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static bool entry_add(
	struct sweep *sweep, const char *tenant, const char *file, const struct stat *st)
{
	struct entry *larger;

	if (sweep->n == sweep->capacity) {
		size_t capacity = sweep->capacity ? 2 * sweep->capacity : 1024;

		larger = capacity <= FILES_MAX ? realloc(sweep->list, capacity * sizeof *larger)
					       : NULL;
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
		return true; /* removed meanwhile */
	while (ok && (found = readdir(dir)) != NULL) {
		if (fstatat(dirfd(dir), found->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
			!S_ISREG(st.st_mode))
			continue;
		if (st.st_uid != sweep->owner && geteuid() == 0) {
			/* of another user that workers had before; unreadable for them now */
			unlinkat(dirfd(dir), found->d_name, 0);
			continue;
		}
		if (strlen(found->d_name) < OBS_CACHE_FILE_NAME - 1) {
			/* Half written: its worker was killed, or it would hold the lock. */
			unlinkat(dirfd(dir), found->d_name, 0);
			continue;
		}
		ok = strlen(found->d_name) > OBS_CACHE_FILE_NAME - 1 ||
			entry_add(sweep, tenant, found->d_name, &st);
	}
	closedir(dir);
	return ok;
}

static bool tenant_held(int top, const char *tenant)
{
	OB_CLEANUP(ob_closep)
	int fd = openat(top, tenant, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;
}

static bool all_look(struct sweep *sweep, int top)
{
	DIR *dir = dir_open(top, ".");
	struct dirent *found;
	bool ok = dir != NULL;

	while (ok && (found = readdir(dir)) != NULL)
		if (strlen(found->d_name) == OBS_TENANT_DIGITS) {
			/* Removed only if empty and not locked by a session. */
			if (tenant_held(top, found->d_name) ||
				unlinkat(top, found->d_name, AT_REMOVEDIR) != 0)
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

static bool entry_remove(const struct entry *entry, int top)
{
	char path[sizeof entry->tenant + sizeof entry->file];

	snprintf(path, sizeof path, "%s/%s", entry->tenant, entry->file);
	return unlinkat(top, path, 0) == 0 || errno == ENOENT;
}

static int by_tenant(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->tenant, y->tenant);

	return order ? order : by_use(a, b);
}

/* One tenant's entries and their bytes. */
struct part {
	size_t first, n;
	uint64_t held;
};

static struct part part_at(const struct sweep *sweep, size_t first)
{
	struct part part = { .first = first };

	for (size_t i = first;
		i < sweep->n && strcmp(sweep->list[i].tenant, sweep->list[first].tenant) == 0;
		i++, part.n++)
		part.held += sweep->list[i].size;
	return part;
}

/* Evicts the oldest entries, at least `bytes` of them. */
static uint64_t part_shrink(struct sweep *sweep, const struct part *part, uint64_t bytes, int top)
{
	uint64_t evicted = 0;

	for (size_t i = 0; i < part->n && bytes > 0; i++) {
		const struct entry *entry = &sweep->list[part->first + i];

		if (!entry_remove(entry, top))
			continue;
		sweep->bytes -= entry->size;
		bytes -= ob_min(bytes, entry->size);
		evicted++;
	}
	return evicted;
}

/*
 * The equal share of each tenant, as far as it can be known: whether the tenants of empty folders
 * will come back is unknown.
 */
static uint64_t fair_part(const struct sweep *sweep, uint64_t target)
{
	uint64_t tenants = 0;
	struct part part;

	for (size_t i = 0; i < sweep->n; i += part.n, tenants++)
		part = part_at(sweep, i);
	return tenants ? target / tenants : target;
}

/*
 * Evicts until `target` bytes are left. Only tenants with more than an equal share give up files,
 * each its oldest and in proportion to its excess: a tenant that fills the cache evicts its own
 * files, not those of others. The number of files removed.
 */
static uint64_t evict(struct sweep *sweep, int top, uint64_t target)
{
	uint64_t evicted = 0, fair = fair_part(sweep, target), over = 0,
		 excess = sweep->bytes - target;
	struct part part;

	for (size_t i = 0; i < sweep->n; i += part.n) {
		part = part_at(sweep, i);
		over += part.held > fair ? part.held - fair : 0;
	}
	for (size_t i = 0; i < sweep->n; i += part.n) {
		part = part_at(sweep, i);
		if (part.held > fair)
			evicted += part_shrink(sweep, &part,
				over == excess ? part.held - fair
					       : (uint64_t)((double)(part.held - fair) *
							 ((double)excess / (double)over)) +
						1,
				top);
	}
	return evicted;
}

/*
 * Under the exclusive lock, in a sandbox, where one tenant's folder is visible: evicts an eighth of
 * the limit from that, but only what exceeds its equal share. A tenant below its share evicts
 * nothing for others that fill the cache: the supervisor makes room, and this upload is not cached.
 */
static void own_make_room(struct obs_cache *cache)
{
	struct sweep sweep = { .owner = cache->owner };
	uint64_t before, evicted = 0, fair = atomic_load(&cache->usage->fair);
	struct part part;

	if (cache->dir >= 0 && tenant_look(&sweep, cache->top, cache->tenant) && sweep.n > 0) {
		qsort(sweep.list, sweep.n, sizeof *sweep.list, by_tenant);
		part = part_at(&sweep, 0);
		before = sweep.bytes;
		if (part.held > fair)
			evicted = part_shrink(&sweep, &part,
				ob_min(cache->limit / 8, part.held - fair), cache->top);
		atomic_fetch_sub(&cache->usage->bytes, before - sweep.bytes);
		atomic_fetch_add(&cache->usage->evicted, evicted);
		atomic_store(&cache->usage->wanted, 1);
	}
	free(sweep.list);
}

/*
 * A sweep usually takes milliseconds, and what is not cached meanwhile is lost: so wait for the
 * lock. A process that never releases it costs others LOCK_MS once in LOCK_PAUSE_MS.
 */
bool obs_cache_lock(struct obs_cache *cache, int how)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	uint64_t now = ob_clock_ns(), deadline = now + LOCK_MS * OB_MS;

	while (flock(cache->top, how | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK || now < cache->no_wait_until)
			return false;
		if (ob_clock_ns() > deadline) {
			cache->no_wait_until = deadline + LOCK_PAUSE_MS * OB_MS;
			return false;
		}
		nanosleep(&moment, NULL);
	}
	return true;
}

void obs_cache_unlock(struct obs_cache *cache)
{
	flock(cache->top, LOCK_UN);
}

void obs_cache_make_room(struct obs_cache *cache)
{
	struct sweep sweep = { .owner = cache->owner };
	uint64_t evicted = 0, target = cache->limit - cache->limit / 8;

	if (!obs_cache_lock(cache, LOCK_EX))
		return;
	if (all_look(&sweep, cache->top)) {
		if (sweep.n)
			qsort(sweep.list, sweep.n, sizeof *sweep.list, by_tenant);
		atomic_store(&cache->usage->fair, fair_part(&sweep, target));
		if (sweep.bytes > cache->limit - cache->limit / 16) {
			evicted = evict(&sweep, cache->top, target);
			ob_debug("upload cache: %llu files evicted, %llu bytes left",
				(unsigned long long)evicted, (unsigned long long)sweep.bytes);
		}
		/* Not a difference to the old count: nothing is reserved under this lock. */
		atomic_store(&cache->usage->bytes, sweep.bytes);
		atomic_fetch_add(&cache->usage->evicted, evicted);
		atomic_store(&cache->usage->wanted, 0); /* all tenants were visible */
	} else {
		own_make_room(cache);
	}
	obs_cache_unlock(cache);
	free(sweep.list);
}
