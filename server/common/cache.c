/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "server/common/cache_inside.h"
#include "transport/tree.h"

#define USAGE_NAME "usage"

static void file_name(enum obs_cache_kind kind, const uint8_t *name, char ret[OBS_CACHE_FILE_NAME])
{
	ret[0] = kind == OBS_CACHE_IMAGE ? 'i' : 'c';
	ob_text_hex(name, OBS_CACHE_NAME_BYTES, ret + 1);
}

/* As root the folder may still belong to the user that workers had before. */
static bool owner_right(const struct obs_cache *cache, uid_t found)
{
	return found == geteuid() ||
		(geteuid() == 0 &&
			(found == cache->owner ||
				(found >= OBS_USER_FIRST && found <= OBS_USER_LAST)));
}

/* Makes the workers' user the owner of the folder and of the usage file. */
static bool owner_set(const struct obs_cache *cache, int fd, uid_t found)
{
	return found == cache->owner || fchown(fd, cache->owner, (gid_t)-1) == 0;
}

static bool usage_map(struct obs_cache *cache)
{
	OB_CLEANUP(ob_closep)
	int fd = openat(cache->top, USAGE_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) != 0 || ftruncate(fd, OBS_CACHE_USAGE_BYTES) != 0 ||
		!owner_set(cache, fd, st.st_uid))
		return false;
	p = mmap(NULL, OBS_CACHE_USAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return false;
	cache->usage = p;
	return true;
}

/* Network file systems may refuse to lock a directory. */
static bool lock_works(int dir)
{
	if (flock(dir, LOCK_SH | LOCK_NB) != 0)
		return errno == EWOULDBLOCK;
	flock(dir, LOCK_UN);
	return true;
}

void obs_cache_open(struct obs_cache *cache, const char *path, uint64_t limit)
{
	obs_cache_open_for(cache, path, limit, 0);
}

void obs_cache_open_for(struct obs_cache *cache, const char *path, uint64_t limit, uid_t owner)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char chosen[OBS_CACHE_PATH_MAX];
	struct stat st;

	*cache = (struct obs_cache){
		.top = -1, .dir = -1, .limit = limit, .owner = owner ? owner : geteuid()
	};
	if (!limit)
		return;
	if (path)
		snprintf(chosen, sizeof chosen, "%s", path);
	else if (runtime && runtime[0] == '/')
		snprintf(chosen, sizeof chosen, "%.400s/outboard-cache", runtime);
	else
		snprintf(chosen, sizeof chosen, "/tmp/outboard-cache-%u", (unsigned)cache->owner);
	if (mkdir(chosen, 0700) != 0 && errno != EEXIST) {
		ob_warn("uploads are not kept: %s: %s", chosen, strerror(errno));
		return;
	}
	cache->top = open(chosen, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/*
	 * If others could write there they could not forge contents, which are checked, but they
	 * could fill or empty the folder. Tenants' folders are private anyway.
	 */
	if (cache->top < 0 || fstat(cache->top, &st) != 0 || !owner_right(cache, st.st_uid) ||
		(st.st_mode & 022) != 0)
		ob_warn("uploads are not kept: %s is not a directory that only this user can write "
			"to",
			chosen);
	else if (!lock_works(cache->top))
		ob_warn("uploads are not kept: %s cannot be locked: %s; name a directory on a "
			"local file system with --cache",
			chosen, strerror(errno));
	else if (owner_set(cache, cache->top, st.st_uid) && usage_map(cache))
		return;
	else
		ob_warn("uploads are not kept: %s: no file can be made: %s", chosen,
			strerror(errno));
	obs_cache_close(cache);
}

void obs_cache_close(struct obs_cache *cache)
{
	if (cache->usage)
		munmap(cache->usage, OBS_CACHE_USAGE_BYTES);
	if (cache->dir >= 0)
		close(cache->dir);
	if (cache->top >= 0)
		close(cache->top);
	*cache = (struct obs_cache){ .top = -1, .dir = -1 };
}

/* Opens the tenant's folder, and creates it if need be: a sweep removes it when it is empty. */
static bool tenant_open(struct obs_cache *cache)
{
	if (cache->dir >= 0)
		close(cache->dir);
	if (mkdirat(cache->top, cache->tenant, 0700) != 0 && errno != EEXIST)
		ob_warn("uploads of this session are not kept: %s", strerror(errno));
	cache->dir =
		openat(cache->top, cache->tenant, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/*
	 * Locked for the session's life: a sweep leaves a locked folder alone. A worker in its
	 * sandbox could not create it again.
	 */
	return cache->dir >= 0 && flock(cache->dir, LOCK_SH | LOCK_NB) == 0;
}

void obs_cache_enter(struct obs_cache *cache, const char *who)
{
	uint8_t digest[OBT_SHA256_BYTES];

	if (cache->top < 0)
		return;
	/*
	 * A hash, not the name itself: certificates' subjects contain slashes and can be longer
	 * than a file name.
	 */
	obt_digest_sha256(who, strlen(who), digest);
	ob_text_hex(digest, OBS_TENANT_DIGITS / 2, cache->tenant);
	tenant_open(cache);
}

uint64_t obs_cache_find(
	struct obs_cache *cache, enum obs_cache_kind kind, const uint8_t name[OBS_CACHE_NAME_BYTES])
{
	char file[OBS_CACHE_FILE_NAME];
	struct stat st;

	if (cache->dir < 0)
		return 0;
	file_name(kind, name, file);
	if (fstatat(cache->dir, file, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
		st.st_size <= 0)
		return 0;
	utimensat(cache->dir, file, NULL, 0); /* marks it as used now */
	return (uint64_t)st.st_size;
}

static bool read_all(int fd, uint8_t *data, uint64_t size)
{
	while (size > 0) {
		ssize_t n = read(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		size -= (uint64_t)n;
	}
	return true;
}

static bool write_all(int fd, const uint8_t *data, uint64_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		size -= (uint64_t)n;
	}
	return true;
}

static bool is_named(enum obs_cache_kind kind, const void *data, uint64_t size, const uint8_t *name)
{
	uint8_t digest[OBT_SHA256_BYTES];

	if (kind == OBS_CACHE_IMAGE)
		obt_digest_sha256(data, size, digest);
	else
		obt_tree_digest(data, size, digest);
	return memcmp(digest, name, sizeof digest) == 0;
}

/*
 * Removes a file that should have `size` bytes. Under the lock, so that no sweep leaves the file
 * out of its count and has its bytes subtracted once more. Without the lock, and if the file has
 * another size now, too many bytes stay counted until the next sweep.
 */
static void damaged_remove(struct obs_cache *cache, const char *file, uint64_t size)
{
	bool locked = obs_cache_lock(cache, LOCK_EX);
	struct stat st;

	if (fstatat(cache->dir, file, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		unlinkat(cache->dir, file, 0) == 0 && locked)
		atomic_fetch_sub(
			&cache->usage->bytes, obs_cache_charge(ob_min((uint64_t)st.st_size, size)));
	if (locked)
		obs_cache_unlock(cache);
}

bool obs_cache_read(struct obs_cache *cache, enum obs_cache_kind kind,
	const uint8_t name[OBS_CACHE_NAME_BYTES], void *dst, uint64_t size)
{
	OB_CLEANUP(ob_closep) int fd = -1;
	char file[OBS_CACHE_FILE_NAME];
	struct stat st;

	if (cache->dir < 0)
		return false;
	file_name(kind, name, file);
	fd = openat(cache->dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	/* The copy in this process's memory is checked: the file may change at any time. */
	if ((uint64_t)st.st_size == size && read_all(fd, dst, size) &&
		is_named(kind, dst, size, name)) {
		futimens(fd, NULL);
		return true;
	}
	ob_warn("upload %s in the cache is damaged and is removed", file);
	damaged_remove(cache, file, size);
	return false;
}

/* Reserves `bytes`, under the shared lock. The count never exceeds the limit, not even briefly. */
static bool reserve(struct obs_cache *cache, uint64_t bytes)
{
	uint64_t counted = atomic_load(&cache->usage->bytes);

	do {
		if (bytes > cache->limit || counted > cache->limit - bytes)
			return false;
	} while (!atomic_compare_exchange_weak(&cache->usage->bytes, &counted, counted + bytes));
	return true;
}

/* True: the shared lock is held and `bytes` are reserved. */
static bool lock_and_reserve(struct obs_cache *cache, uint64_t bytes)
{
	if (!obs_cache_lock(cache, LOCK_SH))
		return false;
	if (reserve(cache, bytes))
		return true;
	obs_cache_unlock(cache);
	return false;
}

/*
 * The same; makes room if there is none. It tries again even if it could evict nothing itself:
 * while it waited for the lock, another process may have made room.
 */
static bool room_take(struct obs_cache *cache, uint64_t bytes)
{
	if (bytes > cache->limit / 2)
		return false;
	if (lock_and_reserve(cache, bytes))
		return true;
	obs_cache_make_room(cache);
	if (lock_and_reserve(cache, bytes))
		return true;
	atomic_store_explicit(&cache->usage->wanted, 1, memory_order_relaxed);
	return false;
}

/* Written under a temporary name first, so that nobody reads half a file. */
static bool file_write(struct obs_cache *cache, const char *file, const void *data, uint64_t size)
{
	char temporary[32];
	bool written;
	int fd;

	snprintf(temporary, sizeof temporary, "n%d", (int)getpid());
	unlinkat(cache->dir, temporary, 0);
	fd = openat(
		cache->dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* the folder was empty, and a sweep removed it */
	if (fd < 0 && errno == ENOENT && tenant_open(cache))
		fd = openat(cache->dir, temporary,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	written = write_all(fd, data, size);
	close(fd);
	if (written && renameat(cache->dir, temporary, cache->dir, file) == 0)
		return true;
	unlinkat(cache->dir, temporary, 0);
	return false;
}

void obs_cache_put(struct obs_cache *cache, enum obs_cache_kind kind,
	const uint8_t name[OBS_CACHE_NAME_BYTES], const void *data, uint64_t size)
{
	uint64_t charge = obs_cache_charge(size);
	char file[OBS_CACHE_FILE_NAME];

	if (cache->dir < 0 || size < OBS_CACHE_MIN || obs_cache_find(cache, kind, name) == size ||
		!room_take(cache, charge))
		return;
	file_name(kind, name, file);
	if (!file_write(cache, file, data, size))
		atomic_fetch_sub(&cache->usage->bytes, charge);
	obs_cache_unlock(cache);
}

void obs_cache_sweep(struct obs_cache *cache)
{
	if (cache->top >= 0)
		obs_cache_make_room(cache);
}

bool obs_cache_crowded(const struct obs_cache *cache)
{
	return cache->usage &&
		atomic_load_explicit(&cache->usage->wanted, memory_order_relaxed) != 0;
}

void obs_cache_count(const struct obs_cache *cache, uint64_t *ret_bytes, uint64_t *ret_evicted)
{
	*ret_bytes =
		cache->usage ? atomic_load_explicit(&cache->usage->bytes, memory_order_relaxed) : 0;
	*ret_evicted = cache->usage
		? atomic_load_explicit(&cache->usage->evicted, memory_order_relaxed)
		: 0;
}
