/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/file_format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "loadbalancer/registry/alloc.h"
#include "loadbalancer/registry/entries.h"

#define FORMAT  "outboard registry"
#define VERSION 1

/* ---- loading ---- */

static enum ob_err damaged(const char *path, const char *what, int line, struct ob_cause *ret_cause)
{
	char where[32] = "";

	if (line > 0)
		snprintf(where, sizeof where, "line %d: ", line);
	return ob_cause_set(ret_cause, OB_ERR_IO,
		"the registry's file %s is damaged (%s%s): put back a copy of it, or move it away "
		"to "
		"begin with an empty registry; sessions go on in both cases",
		path, where, what);
}

static enum ob_err load_entry(
	const char *path, const json_t *entry, struct obl_table *table, struct ob_cause *ret_cause)
{
	const char *key = json_string_value(json_object_get(entry, "key"));
	const char *value = json_string_value(json_object_get(entry, "value"));
	json_int_t revision = json_integer_value(json_object_get(entry, "revision"));

	if (!key || !*key || !obl_text_fits(key, OBL_KEY_MAX))
		return damaged(path, "an entry has no valid key", 0, ret_cause);
	if (!value || !obl_text_fits(value, OBL_VALUE_MAX))
		return damaged(path, "an entry has no valid value", 0, ret_cause);
	if (revision < 1 || (uint64_t)revision > table->revision)
		return damaged(path, "an entry has no valid revision", 0, ret_cause);
	if (obl_table_find(table, key))
		return damaged(path, "two entries have the same key", 0, ret_cause);
	obl_table_put(table, key, value, (uint64_t)revision, NULL);
	return OB_ERR_NONE;
}

static enum ob_err load_root(
	const char *path, const json_t *root, struct obl_table *table, struct ob_cause *ret_cause)
{
	const char *format = json_string_value(json_object_get(root, "format"));
	json_int_t version = json_integer_value(json_object_get(root, "version"));
	const json_t *revision = json_object_get(root, "revision");
	const json_t *entries = json_object_get(root, "entries"), *entry;
	size_t i;

	if (!format || strcmp(format, FORMAT) != 0)
		return damaged(path, "it is not a registry's file", 0, ret_cause);
	if (version != VERSION)
		return ob_cause_set(ret_cause, OB_ERR_VERSION,
			"the registry's file %s has version %" JSON_INTEGER_FORMAT
			", this program knows %d: use the version of outboard-balancer that wrote "
			"it",
			path, version, VERSION);
	if (!json_is_integer(revision) || json_integer_value(revision) < 0 ||
		!json_is_array(entries))
		return damaged(path, "its revision or its entries are missing", 0, ret_cause);
	table->revision = (uint64_t)json_integer_value(revision);
	json_array_foreach((json_t *)entries, i, entry)
	{
		enum ob_err err = load_entry(path, entry, table, ret_cause);

		if (err != OB_ERR_NONE)
			return err;
	}
	return OB_ERR_NONE;
}

enum ob_err obl_file_load(const char *path, struct obl_table *table, struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	json_error_t error;
	struct stat stat;
	enum ob_err err;
	json_t *root;

	if (fd < 0 && errno == ENOENT)
		return OB_ERR_NONE;
	if (fd < 0 || fstat(fd, &stat) != 0)
		return ob_cause_set_system(
			ret_cause, OB_ERR_IO, errno, "cannot open the registry's file %s", path);
	if (!S_ISREG(stat.st_mode))
		return ob_cause_set(
			ret_cause, OB_ERR_IO, "the registry's file %s is not a regular file", path);
	if (stat.st_size > OBL_FILE_MAX)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT,
			"the registry's file %s is larger than %u MiB", path, OBL_FILE_MAX >> 20);
	root = json_loadfd(fd, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return damaged(path, error.text, error.line, ret_cause);
	err = load_root(path, root, table, ret_cause);
	json_decref(root);
	return err;
}

/* ---- saving ---- */

static void print_table(FILE *out, const struct obl_table *table)
{
	struct ob_json json;

	ob_json_begin(&json, out, OB_JSON_SPACED);
	ob_json_object(&json, NULL);
	ob_json_text(&json, "format", FORMAT);
	ob_json_uint(&json, "version", VERSION);
	ob_json_uint(&json, "revision", table->revision);
	ob_json_array(&json, "entries");
	for (size_t i = 0; i < table->n; i++) {
		const struct obl_row *row = &table->rows[i];

		if (row->owner)
			continue;
		ob_json_break(&json);
		ob_json_object(&json, NULL);
		ob_json_text(&json, "key", row->key);
		ob_json_uint(&json, "revision", row->revision);
		ob_json_text(&json, "value", row->value);
		ob_json_end(&json);
	}
	ob_json_end(&json);
	ob_json_end(&json);
	fputc('\n', out);
}

static enum ob_err sync_folder(const char *path, struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_freep) char *copy = obl_copy_text(path);
	OB_CLEANUP(ob_closep) int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) != 0)
		return ob_cause_set_system(ret_cause, OB_ERR_IO, errno,
			"cannot synchronize the folder of the registry's file %s", path);
	return OB_ERR_NONE;
}

/* Writes the new file beside the old one. Result: 0, or an errno value. */
static int write_file(const char *path, const struct obl_table *table)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	int system = out ? 0 : errno;

	if (!out) {
		if (fd >= 0)
			close(fd);
		return system;
	}
	errno = EIO;
	print_table(out, table);
	if (fflush(out) != 0 || ferror(out) || fsync(fd) != 0)
		system = errno;
	errno = EIO;
	if (fclose(out) != 0 && !system)
		system = errno;
	return system;
}

enum ob_err obl_file_save(
	const char *path, const struct obl_table *table, struct ob_cause *ret_cause)
{
	size_t size = strlen(path) + sizeof ".new";
	OB_CLEANUP(ob_freep) char *new_path = obl_alloc(size, 1);
	int system;

	snprintf(new_path, size, "%s.new", path);
	system = write_file(new_path, table);
	if (!system && rename(new_path, path) != 0)
		system = errno;
	if (system) {
		unlink(new_path);
		return ob_cause_set_system(ret_cause, OB_ERR_REFUSED, system,
			"cannot write the registry's file %s; transactions are refused until it "
			"can be "
			"written",
			path);
	}
	return sync_folder(path, ret_cause);
}
