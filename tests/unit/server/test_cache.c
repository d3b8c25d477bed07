/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Unit tests of the upload cache: an entry is found only by its tenant, completely or not at all,
 * and the total stays within the limit.
 */
#include "server/common/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "server/common/sandbox_landlock.h"
#include "tests/test.h"
#include "tests/waiting.h"
#include "transport/tree.h"

#define CHUNK   (256u << 10)
#define LIMIT   (16ull << 20)
#define WRITERS 3u

/*
 * The linker passes the server's calls of renameat here. before_rename, if set, runs while a file
 * is written completely but not yet visible under its name.
 */
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);

static void (*before_rename)(void);

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	if (before_rename)
		before_rename();
	return __real_renameat(from_dir, from, to_dir, to);
}

/* Its calls of flock fail with this error, as on a file system without locks. */
static int flock_error;

int __wrap_flock(int fd, int how);
int __real_flock(int fd, int how);

int __wrap_flock(int fd, int how)
{
	if (!flock_error)
		return __real_flock(fd, how);
	errno = flock_error;
	return -1;
}

static char top[] = "/tmp/outboard-cache-test-XXXXXX";
static uint8_t data[CHUNK], back[CHUNK];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

static void folder(void)
{
	CHECK(mkdtemp(top));
}

static void folder_remove(void)
{
	CHECK_INT(nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/*
 * Waits until a newly touched file is younger than one touched at the call: file systems' clocks
 * are coarse.
 */
static void file_clock_moves(void)
{
	FILE *file = tmpfile();
	struct stat before, now;

	CHECK(file && futimens(fileno(file), NULL) == 0 && fstat(fileno(file), &before) == 0);
	UNTIL(futimens(fileno(file), NULL) == 0 && fstat(fileno(file), &now) == 0 &&
		(now.st_mtim.tv_sec != before.st_mtim.tv_sec ||
			now.st_mtim.tv_nsec != before.st_mtim.tv_nsec));
	fclose(file);
}

static void chunk_make(uint32_t number, uint8_t name[32])
{
	memset(data, (int)number, sizeof data);
	memcpy(data, &number, sizeof number);
	obt_tree_digest(data, sizeof data, name);
}

static uint64_t bytes_of(const struct obs_cache *cache)
{
	uint64_t bytes, evicted;

	obs_cache_count(cache, &bytes, &evicted);
	return bytes;
}

TEST(kept_and_found_by_content)
{
	struct obs_cache cache, other;
	uint8_t name[32], image[32];

	folder();
	obs_cache_open(&cache, top, LIMIT);
	chunk_make(1, name);
	obs_cache_put(&cache, OBS_CACHE_CHUNK, name, data, sizeof data);
	CHECK_INT(obs_cache_find(&cache, OBS_CACHE_CHUNK, name), 0); /* of no tenant */
	obs_cache_enter(&cache, "token 0123 alice");
	CHECK_INT(obs_cache_find(&cache, OBS_CACHE_CHUNK, name), 0);
	obs_cache_put(&cache, OBS_CACHE_CHUNK, name, data, sizeof data);
	obs_cache_put(&cache, OBS_CACHE_CHUNK, name, data, sizeof data);
	CHECK_INT(obs_cache_find(&cache, OBS_CACHE_CHUNK, name), sizeof data);
	CHECK_INT(bytes_of(&cache), sizeof data);
	CHECK(obs_cache_read(&cache, OBS_CACHE_CHUNK, name, back, sizeof back) &&
		!memcmp(back, data, sizeof data));
	/* An image is a different kind of entry, even with the same name. */
	CHECK_INT(obs_cache_find(&cache, OBS_CACHE_IMAGE, name), 0);
	obt_digest_sha256(data, 100000, image);
	obs_cache_put(&cache, OBS_CACHE_IMAGE, image, data, 100000);
	CHECK(obs_cache_read(&cache, OBS_CACHE_IMAGE, image, back, 100000));
	/* Too small to be worth a file. */
	obt_tree_digest(data, OBS_CACHE_MIN - 1, image);
	obs_cache_put(&cache, OBS_CACHE_CHUNK, image, data, OBS_CACHE_MIN - 1);
	CHECK_INT(obs_cache_find(&cache, OBS_CACHE_CHUNK, image), 0);
	/* Another process of the same tenant finds it, another tenant does not. */
	obs_cache_open(&other, top, LIMIT);
	obs_cache_enter(&other, "token 0123 alice");
	CHECK(obs_cache_read(&other, OBS_CACHE_CHUNK, name, back, sizeof back));
	obs_cache_close(&other);
	obs_cache_open(&other, top, LIMIT);
	obs_cache_enter(&other, "token 0124 alice");
	CHECK_INT(obs_cache_find(&other, OBS_CACHE_CHUNK, name), 0);
	CHECK(!obs_cache_read(&other, OBS_CACHE_CHUNK, name, back, sizeof back));
	obs_cache_close(&other);
	obs_cache_close(&cache);
	folder_remove();
}

TEST(a_damaged_file_is_removed)
{
	struct obs_cache cache;
	uint8_t name[32];
	char path[300];
	int fd;

	folder();
	obs_cache_open(&cache, top, LIMIT);
	obs_cache_enter(&cache, "uid 1000");
	chunk_make(1, name);
	obs_cache_put(&cache, OBS_CACHE_CHUNK, name, data, sizeof data);
	snprintf(path, sizeof path, "%s/%s/c", top, cache.tenant);
	for (unsigned i = 0; i < 32; i++)
		snprintf(path + strlen(path), 3, "%02x", name[i]);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0 && pwrite(fd, "!", 1, 70000) == 1);
	close(fd);
	/* its content is only checked when it is used */
	CHECK_INT(obs_cache_find(&cache, OBS_CACHE_CHUNK, name), sizeof data);
	CHECK(!obs_cache_read(&cache, OBS_CACHE_CHUNK, name, back, sizeof back));
	CHECK_INT(obs_cache_find(&cache, OBS_CACHE_CHUNK, name), 0);
	CHECK_INT(bytes_of(&cache), 0);
	/* A link in the folder is not followed. */
	CHECK_INT(symlink("/etc/passwd", path), 0);
	CHECK_INT(obs_cache_find(&cache, OBS_CACHE_CHUNK, name), 0);
	CHECK(!obs_cache_read(&cache, OBS_CACHE_CHUNK, name, back, sizeof back));
	obs_cache_close(&cache);
	folder_remove();
}

TEST(the_longest_unused_goes_first)
{
	struct obs_cache caches[2];
	uint8_t names[200][32];
	uint64_t bytes, evicted;
	unsigned left = 0;

	folder();
	for (unsigned i = 0; i < 2; i++) {
		obs_cache_open(&caches[i], top, LIMIT);
		obs_cache_enter(&caches[i], i ? "bob" : "alice");
	}
	for (unsigned i = 0; i < 200; i++) {
		chunk_make(i, names[i]);
		obs_cache_put(&caches[i % 2], OBS_CACHE_CHUNK, names[i], data, sizeof data);
		/* used all the time */
		CHECK(obs_cache_find(&caches[0], OBS_CACHE_CHUNK, names[0]));
		obs_cache_count(&caches[0], &bytes, &evicted);
		CHECK(bytes <= LIMIT);
		file_clock_moves();
	}
	CHECK(evicted >= 200 - LIMIT / CHUNK);
	for (unsigned i = 0; i < 200; i++)
		left += obs_cache_find(&caches[i % 2], OBS_CACHE_CHUNK, names[i]) != 0;
	CHECK_INT(left, bytes / CHUNK);
	CHECK(left > LIMIT / CHUNK / 2);
	for (unsigned i = 199; i > 200 - left; i--)
		CHECK(obs_cache_find(&caches[i % 2], OBS_CACHE_CHUNK, names[i]));
	/* An entry larger than the limit is not kept and evicts nothing. */
	static uint8_t large[9 << 20];
	obt_digest_sha256(large, sizeof large, names[0]);
	obs_cache_put(&caches[0], OBS_CACHE_IMAGE, names[0], large, sizeof large);
	CHECK_INT(obs_cache_find(&caches[0], OBS_CACHE_IMAGE, names[0]), 0);
	CHECK_INT(bytes_of(&caches[0]), bytes);
	obs_cache_close(&caches[0]);
	obs_cache_close(&caches[1]);
	folder_remove();
}

TEST(the_count_is_made_anew)
{
	struct obs_cache cache;
	uint8_t name[32];

	folder();
	obs_cache_open(&cache, top, LIMIT);
	obs_cache_enter(&cache, "alice");
	for (unsigned i = 0; i < 20; i++) {
		chunk_make(i, name);
		obs_cache_put(&cache, OBS_CACHE_CHUNK, name, data, sizeof data);
	}
	obs_cache_enter(&cache, "bob"); /* and an empty folder */
	obs_cache_close(&cache);
	/* As after a crash that lost the count, and with a lower limit. */
	char path[300];
	snprintf(path, sizeof path, "%s/usage", top);
	CHECK_INT(unlink(path), 0);
	obs_cache_open(&cache, top, 2 << 20);
	CHECK_INT(bytes_of(&cache), 0);
	obs_cache_sweep(&cache);
	CHECK_INT(bytes_of(&cache), 7 * CHUNK);
	/* Bob's folder was removed; his open session makes it again. */
	obs_cache_enter(&cache, "bob");
	obs_cache_sweep(&cache);
	chunk_make(50, name);
	obs_cache_put(&cache, OBS_CACHE_CHUNK, name, data, sizeof data);
	CHECK_INT(obs_cache_find(&cache, OBS_CACHE_CHUNK, name), sizeof data);
	obs_cache_close(&cache);
	folder_remove();
}

static void sweep_now(void)
{
	struct obs_cache other;

	obs_cache_open(&other, top, LIMIT);
	other.no_wait_until = UINT64_MAX; /* the writer waits for this function */
	obs_cache_sweep(&other);
	obs_cache_close(&other);
}

/*
 * A sweep sees the file of an upload that is being written, or it does not. Its bytes are counted
 * exactly once in both cases.
 */
TEST(a_sweep_does_not_forget_what_is_being_written)
{
	struct obs_cache cache;
	uint8_t name[32];
	int fd;

	folder();
	obs_cache_open(&cache, top, LIMIT);
	obs_cache_enter(&cache, "alice");
	for (unsigned i = 0; i < 3; i++) {
		chunk_make(i, name);
		before_rename = i == 1 ? sweep_now : NULL;
		obs_cache_put(&cache, OBS_CACHE_CHUNK, name, data, sizeof data);
		CHECK_INT(obs_cache_find(&cache, OBS_CACHE_CHUNK, name), sizeof data);
		CHECK_INT(bytes_of(&cache), (i + 1) * CHUNK);
	}
	before_rename = NULL;
	sweep_now();
	CHECK_INT(bytes_of(&cache), 3 * CHUNK);
	/* What a killed worker left half written is removed. */
	fd = openat(cache.dir, "n1", O_WRONLY | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && write(fd, data, sizeof data) == sizeof data);
	close(fd);
	sweep_now();
	CHECK_INT(faccessat(cache.dir, "n1", F_OK, 0), -1);
	CHECK_INT(bytes_of(&cache), 3 * CHUNK);
	obs_cache_close(&cache);
	folder_remove();
}

static uint64_t bytes_found;

static int bytes_add(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	if (type == FTW_F && strcmp(path + walk->base, "usage") != 0)
		bytes_found += (uint64_t)st->st_size;
	return 0;
}

/* Acts as the supervisor while workers write. The directory's bytes never exceed the limit. */
TEST(the_limit_holds_while_many_write_and_sweep)
{
	struct obs_cache cache;
	uint8_t name[32];
	pid_t pid;

	folder();
	for (unsigned w = 0; w < WRITERS; w++) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid > 0)
			continue;
		obs_cache_open(&cache, top, LIMIT);
		obs_cache_enter(&cache, w ? "alice" : "bob");
		for (unsigned i = 0; i < 200; i++) {
			chunk_make(w << 16 | i, name);
			obs_cache_put(&cache, OBS_CACHE_CHUNK, name, data, sizeof data);
		}
		_exit(0);
	}
	obs_cache_open(&cache, top, LIMIT);
	for (unsigned left = WRITERS; left > 0; left -= waitpid(-1, NULL, WNOHANG) > 0) {
		obs_cache_sweep(&cache);
		CHECK(bytes_of(&cache) <= LIMIT);
		/* No writer is at work under this lock: what lies there has been counted. */
		CHECK_INT(flock(cache.top, LOCK_EX), 0);
		bytes_found = 0;
		CHECK_INT(nftw(top, bytes_add, 8, FTW_PHYS), 0);
		CHECK_INT(bytes_found, bytes_of(&cache));
		CHECK_INT(flock(cache.top, LOCK_UN), 0);
	}
	obs_cache_close(&cache);
	folder_remove();
}

static void *lock_end(void *fd)
{
	let_pass(50000,
		"the other thread may wait for the lock or find it free: the upload is kept in "
		"both cases");
	close((int)(intptr_t)fd);
	return NULL;
}

TEST(what_comes_while_room_is_made_is_kept)
{
	struct obs_cache cache;
	uint8_t name[32];
	pthread_t thread;
	int fd;

	folder();
	obs_cache_open(&cache, top, LIMIT);
	obs_cache_enter(&cache, "alice");
	for (unsigned i = 0; i < LIMIT / CHUNK; i++) {
		chunk_make(i, name);
		obs_cache_put(&cache, OBS_CACHE_CHUNK, name, data, sizeof data);
	}
	CHECK_INT(bytes_of(&cache), LIMIT);
	/* Acts as another process that scans the folders. */
	fd = open(top, O_RDONLY | O_DIRECTORY);
	CHECK_INT(flock(fd, LOCK_EX), 0);
	CHECK_INT(pthread_create(&thread, NULL, lock_end, (void *)(intptr_t)fd), 0);
	chunk_make(1000, name);
	obs_cache_put(&cache, OBS_CACHE_CHUNK, name, data, sizeof data);
	CHECK_INT(obs_cache_find(&cache, OBS_CACHE_CHUNK, name), sizeof data);
	pthread_join(thread, NULL);
	obs_cache_close(&cache);
	folder_remove();
}

/*
 * Each runs in a separate process that sees one folder, as workers do. The parent takes the
 * supervisor's part.
 */
static void as_worker(const char *who, unsigned first, unsigned n)
{
	pid_t pid = fork();
	struct obs_cache cache;
	uint8_t name[32];
	int status;

	if (pid == 0) {
		obs_cache_open(&cache, top, LIMIT);
		obs_cache_enter(&cache, who);
		CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
		CHECK(obs_landlock_enforce(obs_landlock_new(NULL, cache.dir, false)));
		for (unsigned i = first; i < first + n; i++) {
			chunk_make(i, name);
			obs_cache_put(&cache, OBS_CACHE_CHUNK, name, data, sizeof data);
		}
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

static unsigned kept(struct obs_cache *cache, const char *who, unsigned first, unsigned n)
{
	unsigned found = 0;
	uint8_t name[32];

	obs_cache_enter(cache, who);
	for (unsigned i = first; i < first + n; i++) {
		chunk_make(i, name);
		found += obs_cache_find(cache, OBS_CACHE_CHUNK, name) != 0;
	}
	return found;
}

TEST(who_has_little_loses_nothing_to_who_fills_the_cache)
{
	struct obs_cache cache;

	if (!obs_landlock_version()) {
		printf("this kernel has no Landlock: a worker sees all folders here\n");
		return;
	}
	folder();
	obs_cache_open(&cache, top, LIMIT);
	obs_cache_sweep(&cache);
	as_worker("bob", 0, 6);
	as_worker("alice", 1000, 200);
	CHECK_INT(kept(&cache, "bob", 0, 6), 6);
	/* now it is full */
	as_worker("alice", 2000, (unsigned)((LIMIT - bytes_of(&cache)) / CHUNK));
	/*
	 * Bob's upload exceeds the limit: none of his entries is evicted; the supervisor evicts
	 * alice's.
	 */
	as_worker("bob", 100, 1);
	CHECK_INT(kept(&cache, "bob", 0, 6), 6);
	CHECK(obs_cache_crowded(&cache));
	obs_cache_sweep(&cache);
	CHECK_INT(kept(&cache, "bob", 0, 6), 6);
	as_worker("bob", 100, 4);
	CHECK_INT(kept(&cache, "bob", 100, 4), 4);
	CHECK_INT(kept(&cache, "bob", 0, 6), 6);
	CHECK(bytes_of(&cache) <= LIMIT);
	obs_cache_close(&cache);
	folder_remove();
}

TEST(where_there_is_no_place)
{
	struct obs_cache cache;
	uint8_t name[32] = { 0 };

	folder();
	obs_cache_open(&cache, "/proc/nowhere", LIMIT);
	CHECK_INT(cache.top, -1);
	obs_cache_enter(&cache, "alice");
	obs_cache_put(&cache, OBS_CACHE_CHUNK, name, data, sizeof data);
	CHECK_INT(obs_cache_find(&cache, OBS_CACHE_CHUNK, name), 0);
	obs_cache_sweep(&cache);
	obs_cache_close(&cache);
	obs_cache_open(&cache, top, 0);
	CHECK_INT(cache.top, -1);
	/* A folder that others can write to. */
	CHECK_INT(chmod(top, 0777), 0);
	obs_cache_open(&cache, top, LIMIT);
	CHECK_INT(cache.top, -1);
	CHECK_INT(chmod(top, 0755), 0);
	/* A file system without locks, on which the limit could not be enforced. */
	flock_error = EBADF;
	obs_cache_open(&cache, top, LIMIT);
	flock_error = 0;
	CHECK_INT(cache.top, -1);
	obs_cache_open(&cache, top, LIMIT);
	CHECK(cache.top >= 0);
	obs_cache_close(&cache);
	folder_remove();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
