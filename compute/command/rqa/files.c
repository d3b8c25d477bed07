/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/hash.h"

struct walk {
	struct obx_files *files;
	uint64_t capacity;
	const char *pattern;
	struct stat leave_out;
	bool leaves_out;
	struct obx_error *error;
};

static bool add(struct walk *w, const char *name)
{
	struct obx_files *files = w->files;

	if (files->count == OBK_RQA_MAX_SERIES)
		return obx_error_set(w->error,
			"%s holds more than %u files; sweep its folders one by one", files->folder,
			OBK_RQA_MAX_SERIES);
	if (files->count == w->capacity) {
		uint64_t capacity = w->capacity ? w->capacity * 2 : 64;
		struct obx_file *list = realloc(files->list, capacity * sizeof *list);

		if (!list)
			return obx_error_set(w->error, "out of memory for the list of files");
		files->list = list;
		w->capacity = capacity;
	}
	files->list[files->count] = (struct obx_file){ .name = strdup(name) };
	if (!files->list[files->count].name)
		return obx_error_set(w->error, "out of memory for the list of files");
	files->count++;
	return true;
}

static void close_folder(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static bool walk(struct walk *w, const char *below, unsigned depth)
{
	char path[PATH_MAX];
	OB_CLEANUP(close_folder) DIR *dir = NULL;
	struct dirent *entry;

	snprintf(path, sizeof path, "%s/%s", w->files->folder, below);
	dir = opendir(path);
	if (!dir)
		return obx_error_set(w->error, "the folder %s cannot be read: %s",
			*below ? path : w->files->folder, strerror(errno));
	while ((entry = readdir(dir))) {
		char name[PATH_MAX], full[PATH_MAX];
		struct stat st;

		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(name, sizeof name, "%s%s%s", below, *below ? "/" : "",
			    entry->d_name) >= (int)sizeof name ||
			snprintf(full, sizeof full, "%s/%s", w->files->folder, name) >=
				(int)sizeof full ||
			stat(full, &st) != 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			if (depth == OBX_FILES_DEPTH_MAX ||
				(w->leaves_out && st.st_dev == w->leave_out.st_dev &&
					st.st_ino == w->leave_out.st_ino))
				continue;
			if (!walk(w, name, depth + 1))
				return false;
		} else if (S_ISREG(st.st_mode) &&
			fnmatch(w->pattern, entry->d_name, FNM_CASEFOLD) == 0 && !add(w, name)) {
			return false;
		}
	}
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct obx_file *)a)->name, ((const struct obx_file *)b)->name);
}

bool obx_files_list(struct obx_files *files, const char *folder, const char *pattern,
	const char *leave_out, struct obx_error *error)
{
	struct walk w = { .files = files, .pattern = pattern, .error = error };
	size_t length = strlen(folder);
	struct stat st;

	memset(files, 0, sizeof *files);
	if (stat(folder, &st) != 0)
		return obx_error_set(
			error, "the folder %s cannot be opened: %s", folder, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return obx_error_set(
			error, "%s is not a folder; for one file use 'outboard rqa run'", folder);
	while (length > 1 && folder[length - 1] == '/')
		length--;
	files->folder = strndup(folder, length);
	if (!files->folder)
		return obx_error_set(error, "out of memory for the list of files");
	w.leaves_out = leave_out && stat(leave_out, &w.leave_out) == 0 &&
		(w.leave_out.st_ino != st.st_ino || w.leave_out.st_dev != st.st_dev);
	if (!walk(&w, "", 0)) {
		obx_files_fini(files);
		return false;
	}
	if (!files->count) {
		obx_error_set(error,
			"%s has no file that fits %s; name another folder, or the files with "
			"--pattern",
			folder, pattern);
		obx_files_fini(files);
		return false;
	}
	qsort(files->list, files->count, sizeof *files->list, by_name);
	return true;
}

bool obx_files_path(const struct obx_files *files, uint64_t index, char *ret_path, size_t size)
{
	return snprintf(ret_path, size, "%s/%s", files->folder, files->list[index].name) <
		(int)size;
}

bool obx_files_survey(struct obx_files *files, const struct obx_table_spec *spec,
	const obk_rqa_flag *cancel, void (*on_file)(void *arg, uint64_t index), void *arg,
	struct obx_error *error)
{
	files->wrong_count = 0;
	for (uint64_t i = 0; i < files->count; i++) {
		struct obx_file *file = &files->list[i];
		struct obx_error wrong;
		struct obx_table table;
		char path[PATH_MAX];

		if (cancel && *cancel)
			return obx_error_set(error, "stopped");
		if (obx_files_path(files, i, path, sizeof path) &&
			obx_table_read(path, spec, &table, &wrong)) {
			file->rows = table.rows;
			file->first_line = table.first_line;
			file->last_line = table.last_line;
			file->hash = table.hash;
			file->dropped = table.dropped;
			file->channels = table.channels;
			memcpy(file->constant, table.constant, sizeof file->constant);
			obx_table_fini(&table);
		} else {
			file->wrong = strdup(wrong.text);
			file->hash = ob_hash(OB_HASH_START, wrong.text, strlen(wrong.text));
			files->wrong_count++;
			if (!file->wrong)
				return obx_error_set(error, "out of memory for the list of files");
		}
		if (on_file)
			on_file(arg, i);
	}
	return true;
}

bool obx_files_read(const struct obx_files *files, uint64_t index,
	const struct obx_table_spec *spec, struct obx_table *ret_table, struct obx_error *error)
{
	const struct obx_file *file = &files->list[index];
	char path[PATH_MAX];

	if (!obx_files_path(files, index, path, sizeof path) ||
		!obx_table_read(path, spec, ret_table, error))
		return false;
	if (ret_table->hash == file->hash && ret_table->rows == file->rows &&
		ret_table->channels == file->channels)
		return true;
	obx_table_fini(ret_table);
	return obx_error_set(
		error, "%s was changed while the sweep ran; run the same command again", path);
}

void obx_files_names(const struct obx_files *files, uint64_t index, struct obx_file_names *ret)
{
	const char *name = files->list[index].name, *slash = strrchr(name, '/'),
		   *first = strchr(name, '/');
	size_t length;

	memset(ret, 0, sizeof *ret);
	ret->file = slash ? slash + 1 : name;
	snprintf(ret->group, sizeof ret->group, "%.*s", first ? (int)(first - name) : 3,
		first ? name : "all");
	if (slash) {
		const char *start = slash;

		while (start > name && start[-1] != '/')
			start--;
		snprintf(ret->folder, sizeof ret->folder, "%.*s", (int)(slash - start), start);
	} else {
		const char *last = strrchr(files->folder, '/');

		snprintf(ret->folder, sizeof ret->folder, "%s",
			last && last[1] ? last + 1 : files->folder);
	}
	for (const char *p = ret->file; *p; p++) {
		if ((*p != 'q' && *p != 'Q') || !isdigit((unsigned char)p[1]))
			continue;
		length = strspn(p + 1, "0123456789");
		if (length < sizeof ret->q)
			snprintf(ret->q, sizeof ret->q, "%.*s", (int)length, p + 1);
	}
}

void obx_files_fini(struct obx_files *files)
{
	for (uint64_t i = 0; i < files->count; i++) {
		free(files->list[i].name);
		free(files->list[i].wrong);
	}
	free(files->list);
	free(files->folder);
	memset(files, 0, sizeof *files);
}
