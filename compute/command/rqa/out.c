/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/out.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE_BUFFER (1u << 20)

bool obx_out_open(struct obx_out *out, const char *path, struct obx_error *error)
{
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash - path) + 1 : 0;
	struct stat st;

	memset(out, 0, sizeof *out);
	if (strcmp(path, "-") == 0) {
		out->file = stdout;
		return true;
	}
	if (strlen(path) + sizeof ".part." >= sizeof out->part)
		return obx_error_set(
			error, "%.200s...: the path is too long; write to a shorter one", path);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return obx_error_set(error, "%s is a folder; name a file in it", path);
	strcpy(out->path, path);
	/* write to a device or a pipe directly; it must not be replaced */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		strcpy(out->part, path);
	else
		snprintf(out->part, sizeof out->part, "%.*s.%s.part", folder, path, path + folder);
	out->file = fopen(out->part, "we");
	if (!out->file)
		return obx_error_set(error,
			"%s cannot be written: %s; check the folder and its rights, or name "
			"another place",
			path, strerror(errno));
	setvbuf(out->file, NULL, _IOFBF, WRITE_BUFFER);
	return true;
}

bool obx_out_commit(struct obx_out *out, struct obx_error *error)
{
	bool good = fflush(out->file) == 0 && !ferror(out->file);
	int saved = errno;

	if (out->file == stdout) {
		out->file = NULL;
		return good ? true
			    : obx_error_set(error, "standard output cannot be written: %s",
				      strerror(saved));
	}
	if (good && !out->quick && fsync(fileno(out->file)) != 0 && errno != EINVAL) {
		good = false;
		saved = errno;
	}
	if (fclose(out->file) != 0 && good) {
		good = false;
		saved = errno;
	}
	out->file = NULL;
	if (good && strcmp(out->part, out->path) != 0 && rename(out->part, out->path) != 0) {
		good = false;
		saved = errno;
	}
	if (good)
		return true;
	if (strcmp(out->part, out->path) != 0)
		unlink(out->part);
	return obx_error_set(error,
		"%s cannot be written: %s; make room or name another place, then run the same "
		"command again",
		out->path, strerror(saved));
}

void obx_out_abort(struct obx_out *out)
{
	if (!out->file)
		return;
	if (out->file != stdout) {
		fclose(out->file);
		if (strcmp(out->part, out->path) != 0)
			unlink(out->part);
	}
	out->file = NULL;
}

bool obx_out_folder(const char *path, struct obx_error *error)
{
	char copy[PATH_MAX];
	struct stat st;

	if (!*path || strlen(path) >= sizeof copy)
		return obx_error_set(error, "the name of the output folder is empty or too long");
	strcpy(copy, path);
	for (char *p = copy + 1;; p++) {
		char at = *p;

		if (at != '/' && at != 0)
			continue;
		*p = 0;
		if (mkdir(copy, 0777) != 0 && errno != EEXIST)
			return obx_error_set(error,
				"the folder %s cannot be made: %s; name another place with --out",
				path, strerror(errno));
		if (!at)
			break;
		*p = at;
	}
	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return obx_error_set(
			error, "%s is not a folder; name another place with --out", path);
	if (access(path, W_OK) != 0)
		return obx_error_set(error,
			"the folder %s cannot be written: %s; name another place with --out", path,
			strerror(errno));
	return true;
}
