/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/link_memory.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"

#define TITLE      "outboard-link 1\n"
#define PREFIX     "link-"
#define NAME_CHARS (sizeof PREFIX - 1 + 16) /* of a file; that of a temporary one is longer */
#define NAME_ROOM  64u
/* entries of the folder that are looked at, files that are removed, after a new file was made */
#define LOOKED_MAX 4096u
#define REMOVE_MAX 8u
#define LEFT_S     3600 /* age of a temporary file whose writer must have ended */

/* ---- the key ---- */

bool obt_link_key(
	const struct obt_url *url, const struct obt_stream *stream, char ret_key[OBT_LINK_KEY_MAX])
{
	struct sockaddr_storage own = { .ss_family = AF_UNSPEC };
	char network[INET6_ADDRSTRLEN];
	socklen_t size = sizeof own;
	void *address;
	int n;

	if (url->scheme == OBT_UNIX || obt_path_local(stream) ||
		getsockname(stream->fd, (struct sockaddr *)&own, &size) != 0)
		return false;
	if (own.ss_family == AF_INET) {
		address = &((struct sockaddr_in *)&own)->sin_addr;
		((uint8_t *)address)[3] = 0;
	} else {
		address = &((struct sockaddr_in6 *)&own)->sin6_addr;
		memset((uint8_t *)address + 8, 0, 8);
	}
	if (!inet_ntop(own.ss_family, address, network, sizeof network))
		return false;
	n = snprintf(ret_key, OBT_LINK_KEY_MAX, "%s %s %s %s",
		url->scheme == OBT_TLS ? "tls" : "tcp", url->host, url->port, network);
	return n > 0 && (unsigned)n < OBT_LINK_KEY_MAX && !strchr(ret_key, '\n');
}

/* ---- the folder ---- */

/* Makes the folders that are missing; an error shows when the folder is opened. */
static void folders_make(char *path, size_t parent)
{
	path[parent] = '\0';
	mkdir(path, 0700);
	path[parent] = '/';
	mkdir(path, 0700);
}

/* Returns a descriptor, or -1 with the cause. */
static int folder_open(bool make, struct ob_cause *ret_cause)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	/* The XDG Base Directory Specification: a relative path is ignored. */
	bool xdg = cache && cache[0] == '/';
	char path[PATH_MAX];
	struct stat st;
	int n, fd;

	if (getauxval(AT_SECURE) || (!xdg && (!home || home[0] != '/'))) {
		ob_cause_set(ret_cause, OB_ERR_UNSUPPORTED,
			"no folder for what is remembered of links: set XDG_CACHE_HOME or HOME");
		return -1;
	}
	n = snprintf(path, sizeof path, "%s%s/outboard", xdg ? cache : home, xdg ? "" : "/.cache");
	if (n < 0 || (size_t)n >= sizeof path) {
		ob_cause_set(ret_cause, OB_ERR_UNSUPPORTED, "the cache folder's name is too long");
		return -1;
	}
	if (make)
		folders_make(path, (size_t)n - strlen("/outboard"));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		ob_cause_set_system(ret_cause, OB_ERR_UNSUPPORTED, errno, "%s", path);
		return -1;
	}
	if (fstat(fd, &st) != 0 || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH)) {
		ob_cause_set(ret_cause, OB_ERR_UNSUPPORTED,
			"%s is not used: it belongs to another user, or other users may write to "
			"it",
			path);
		close(fd);
		return -1;
	}
	return fd;
}

static void name_of(const char *key, char ret_name[NAME_ROOM])
{
	snprintf(ret_name, NAME_ROOM, PREFIX "%016llx",
		(unsigned long long)ob_hash(OB_HASH_START, key, strlen(key)));
}

/* ---- the text ---- */

struct text {
	char bytes[OBT_LINK_FILE_MAX + 1];
	size_t size;
};

static __attribute__((format(printf, 2, 3))) void text_add(
	struct text *text, const char *format, ...)
{
	size_t room = sizeof text->bytes - text->size;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->bytes + text->size, room, format, args);
	va_end(args);
	text->size += n > 0 && (size_t)n < room ? (size_t)n : 0;
}

static void text_fill(struct text *text, const char *key, const struct obt_link_memory *memory)
{
	text->size = 0;
	text_add(text, TITLE "key %s\n", key);
#define X(member, name, min, max)                               \
	if (memory->member >= (min) && memory->member <= (max)) \
		text_add(text, name " %llu\n", (unsigned long long)memory->member);
	OBT_LINK_LIST(X)
#undef X
	text_add(text, "check %016llx\n",
		(unsigned long long)ob_hash(OB_HASH_START, text->bytes, text->size));
}

/* Takes one line "name number"; false: the number is damaged or out of its limits. */
static bool line_take(const char *line, struct obt_link_memory *memory)
{
	const char *number = strchr(line, ' ');
	size_t n = number ? (size_t)(number - line) : 0;

	if (!number)
		return false;
#define X(member, name, min, max)                                \
	if (n == sizeof name - 1 && strncmp(line, name, n) == 0) \
		return ob_text_parse_number(number + 1, (min), (max), &memory->member);
	OBT_LINK_LIST(X)
#undef X
	return false;
}

/* Changes the text. */
static bool text_parse(struct text *text, const char *key, struct obt_link_memory *ret)
{
	struct obt_link_memory memory = { 0 };
	char *check, *line, *end, expected[OBT_LINK_KEY_MAX + 32], sum[32];
	size_t n;

	text->bytes[text->size] = '\0';
	check = strstr(text->bytes, "\ncheck ");
	if (strlen(text->bytes) != text->size || !check)
		return false;
	check++;
	snprintf(sum, sizeof sum, "check %016llx\n",
		(unsigned long long)ob_hash(
			OB_HASH_START, text->bytes, (size_t)(check - text->bytes)));
	n = (size_t)snprintf(expected, sizeof expected, TITLE "key %s\n", key);
	if (strcmp(check, sum) != 0 || strncmp(text->bytes, expected, n) != 0)
		return false;
	for (line = text->bytes + n; line < check; line = end + 1) {
		end = strchr(line, '\n');
		*end = '\0';
		if (!line_take(line, &memory))
			return false;
	}
	*ret = memory;
	return true;
}

/* ---- reading ---- */

enum ob_err obt_link_read(const char *key, struct obt_link_memory *ret, struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_closep) int folder = folder_open(false, ret_cause), fd = -1;
	char name[NAME_ROOM];
	struct text text;
	struct stat st;
	ssize_t n;

	if (folder < 0)
		return OB_ERR_UNSUPPORTED;
	name_of(key, name);
	/* NONBLOCK: opening a FIFO must not wait */
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return ob_cause_set_system(ret_cause, OB_ERR_UNSUPPORTED, errno, "%s", name);
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		st.st_size > (off_t)OBT_LINK_FILE_MAX)
		return ob_cause_set(ret_cause, OB_ERR_UNSUPPORTED,
			"%s is not used: it is not a small file of this user", name);
	n = read(fd, text.bytes, OBT_LINK_FILE_MAX);
	if (n < 0)
		return ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "cannot read %s", name);
	text.size = (size_t)n;
	if (!text_parse(&text, key, ret))
		return ob_cause_set(ret_cause, OB_ERR_UNSUPPORTED,
			"%s is not used: it is damaged, of another version or of another link",
			name);
	return OB_ERR_NONE;
}

/* ---- writing ---- */

/* What a walk over the folder finds. */
struct walk {
	unsigned count, looked;
	time_t now, oldest_since;
	char oldest[NAME_ROOM];
};

/* Looks at one entry; removes a temporary file that was left behind. */
static void entry_look(int folder, const char *name, struct walk *walk)
{
	size_t n = strlen(name);
	struct stat st;

	walk->looked++;
	if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0 || n < NAME_CHARS || n >= NAME_ROOM ||
		fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	if (n > NAME_CHARS) {
		if (st.st_mtime < walk->now - LEFT_S)
			unlinkat(folder, name, 0);
		return;
	}
	if (walk->count++ == 0 || st.st_mtime < walk->oldest_since) {
		walk->oldest_since = st.st_mtime;
		memcpy(walk->oldest, name, n + 1);
	}
}

/*
 * Removes the oldest file if there are too many. True: there still are. Without opendir, which
 * allocates memory: a signal handler that interrupted malloc may have called exit.
 */
static bool oldest_remove(int folder)
{
	OB_CLEANUP(ob_closep) int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(struct dirent64) char buffer[4096];
	struct walk walk = { .now = time(NULL) };
	ssize_t n;

	if (fd < 0)
		return false;
	while (walk.looked < LOOKED_MAX && (n = getdents64(fd, buffer, sizeof buffer)) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const void *)(buffer + at);

			entry_look(folder, entry->d_name, &walk);
			at += entry->d_reclen;
		}
	return walk.count > OBT_LINKS_MAX && unlinkat(folder, walk.oldest, 0) == 0 &&
		walk.count > OBT_LINKS_MAX + 1;
}

static enum ob_err write_failed(
	int folder, const char *temporary, int error, struct ob_cause *ret_cause)
{
	unlinkat(folder, temporary, 0);
	return ob_cause_set_system(ret_cause, OB_ERR_IO, error, "cannot write %s", temporary);
}

enum ob_err obt_link_write(
	const char *key, const struct obt_link_memory *memory, struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_closep) int folder = folder_open(true, ret_cause), fd = -1;
	char name[NAME_ROOM], temporary[NAME_ROOM];
	struct text text;
	struct stat st;
	ssize_t n;
	bool new;

	if (folder < 0)
		return OB_ERR_UNSUPPORTED;
	name_of(key, name);
	snprintf(temporary, sizeof temporary, "%.21s.%x.%llx", name, (unsigned)getpid(),
		(unsigned long long)ob_clock_ns());
	text_fill(&text, key, memory);
	fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return ob_cause_set_system(
			ret_cause, OB_ERR_IO, errno, "cannot create %s", temporary);
	n = write(fd, text.bytes, text.size);
	if (n != (ssize_t)text.size)
		return write_failed(folder, temporary, n < 0 ? errno : ENOSPC, ret_cause);
	new = fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0;
	if (renameat(folder, temporary, folder, name) != 0)
		return write_failed(folder, temporary, errno, ret_cause);
	for (unsigned i = 0; new &&i < REMOVE_MAX &&oldest_remove(folder); i++)
		;
	return OB_ERR_NONE;
}
