/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/msm/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

bool obk_profile_path(
	const struct obk_profile_kind *kind, const char *key, char *ret_path, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool have_cache = cache && cache[0] == '/';
	int n;

	if (!have_cache && (!home || home[0] != '/'))
		return false;
	n = snprintf(ret_path, size, "%s%s/outboard/%s-%016llx.profile", have_cache ? cache : home,
		have_cache ? "" : "/.cache", kind->prefix,
		(unsigned long long)ob_hash(OB_HASH_START, key, strlen(key)));
	return n > 0 && (size_t)n < size;
}

enum ob_err obk_profile_damaged(
	const struct obk_profile_kind *kind, const char *path, struct obk_fault *fault)
{
	return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
		"the profile %.100s is damaged: make it again with '%s'", path, kind->remedy);
}

const char *obk_profile_next(const char *text)
{
	const char *end = text ? strchr(text, '\n') : NULL;

	return end ? end + 1 : NULL;
}

static enum ob_err parse(const struct obk_profile_kind *kind, const char *key, const char *path,
	char *text, char *ret_lines, struct obk_fault *fault)
{
	char *check = strstr(text, "\ncheck "), want[OBK_PROFILE_MAX_KEY + 8];
	size_t title = strlen(kind->title);
	const char *line;

	if (!check ||
		strtoull(check + 7, NULL, 16) !=
			ob_hash(OB_HASH_START, text, (size_t)(check + 1 - text)) ||
		strncmp(text, kind->title, title) != 0 || text[title] != ' ')
		return obk_profile_damaged(kind, path, fault);
	if (strtoul(text + title, NULL, 10) != kind->version)
		return obk_fault_set(fault, OB_ERR_UNSUPPORTED, OBK_FAULT_NO_ITEM,
			"the profile %.100s is of another version", path);
	snprintf(want, sizeof(want), "for %s\n", key);
	line = obk_profile_next(text);
	if (strncmp(line, want, strlen(want)) != 0)
		return obk_fault_set(fault, OB_ERR_UNSUPPORTED, OBK_FAULT_NO_ITEM,
			"the profile %.100s is of another processor or device", path);
	check[1] = 0;
	strcpy(ret_lines, line + strlen(want));
	return OB_ERR_NONE;
}

enum ob_err obk_profile_read(const struct obk_profile_kind *kind, const char *key, const char *path,
	char ret_lines[OBK_PROFILE_MAX_BYTES + 1], struct obk_fault *fault)
{
	char text[OBK_PROFILE_MAX_BYTES + 1];
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return obk_fault_set(
			fault, OB_ERR_IO, OBK_FAULT_NO_ITEM, "%.100s: %s", path, strerror(errno));
	n = fread(text, 1, OBK_PROFILE_MAX_BYTES, f);
	fclose(f);
	text[n] = 0;
	if (n == 0 || n == OBK_PROFILE_MAX_BYTES || strlen(text) != n)
		return obk_profile_damaged(kind, path, fault);
	return parse(kind, key, path, text, ret_lines, fault);
}

FILE *obk_profile_beside(const char *path, char *ret_other, size_t size)
{
	int n = snprintf(ret_other, size, "%s.XXXXXX", path), fd;
	FILE *f;

	if (n < 0 || (size_t)n >= size) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	fd = mkostemp(ret_other, O_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd >= 0 && !f) {
		close(fd);
		unlink(ret_other);
	}
	return f;
}

size_t obk_profile_append(char *text, size_t at, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text + at, OBK_PROFILE_MAX_BYTES - at, format, args);
	va_end(args);
	if (n < 0)
		return at;
	return (size_t)n < OBK_PROFILE_MAX_BYTES - at ? at + (size_t)n : OBK_PROFILE_MAX_BYTES - 1;
}

enum ob_err obk_profile_write(const struct obk_profile_kind *kind, const char *key,
	const char *path, const char *lines, struct obk_fault *fault)
{
	char text[OBK_PROFILE_MAX_BYTES + OBK_PROFILE_MAX_KEY], other[OBK_PROFILE_MAX_PATH + 32];
	int n = snprintf(
		text, sizeof(text), "%s %u\nfor %s\n%s", kind->title, kind->version, key, lines);
	bool written;
	FILE *f;

	snprintf(other, sizeof(other), "%s", path);
	for (char *at = strchr(other + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		/* errors are ignored here: if a folder is missing, opening the file fails */
		mkdir(other, 0700);
		*at = '/';
	}
	f = obk_profile_beside(path, other, sizeof(other));
	written = f &&
		fprintf(f, "%scheck %016llx\n", text,
			(unsigned long long)ob_hash(OB_HASH_START, text, (size_t)n)) > 0;
	if (f && fclose(f) != 0)
		written = false;
	if (!written || rename(other, path) != 0) {
		enum ob_err err = obk_fault_set(fault, OB_ERR_IO, OBK_FAULT_NO_ITEM,
			"the profile cannot be written to %.100s: %s", path, strerror(errno));

		if (f)
			unlink(other);
		return err;
	}
	return OB_ERR_NONE;
}
