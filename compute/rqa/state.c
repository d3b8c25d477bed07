/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The file of a running count: a header, then the histograms in a fixed order, each as the number
 * of entries up to the last non-zero one, followed by the entries. The file is written under
 * another name, flushed and renamed, so that after a kill either the old or the new one exists.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "compute/rqa/internal.h"

#define MAGIC      0x6f626b7271613032ull
#define BLOB_MAGIC 0x6f626b7271613033ull /* for a run on a device */
#define HISTS      11

struct header {
	uint64_t magic, hash, unit, points, loi_points, t1_sum, t1_count, open_last;
};

/*
 * The contents after the header: histograms, or bytes from a device. Ends with a hash of
 * everything.
 */
struct body {
	bool (*write)(FILE *file, const struct body *body, uint64_t *hash);
	bool (*read)(FILE *file, const struct body *body, uint64_t check);
	struct obk_rqa_counts *counts;
	void *bytes;
	size_t size;
};

static void hists_of(struct obk_rqa_counts *counts, struct obk_rqa_hist *ret[HISTS + OBK_RQA_TOUCH])
{
	unsigned at = 0;

	for (unsigned kind = 0; kind < OBK_RQA_TOUCH; kind++)
		ret[at++] = &counts->diagonal[kind];
	ret[at++] = &counts->loi;
	ret[at++] = &counts->loi_border;
	ret[at++] = &counts->vertical;
	ret[at++] = &counts->white;
	ret[at++] = &counts->white_border;
	ret[at++] = &counts->start;
	ret[at++] = &counts->middle;
	ret[at++] = &counts->profile;
	ret[at++] = &counts->square;
	ret[at++] = &counts->line;
	ret[at] = NULL;
}

static bool hists_write(FILE *file, const struct body *body, uint64_t *hash)
{
	struct obk_rqa_hist *hists[HISTS + OBK_RQA_TOUCH];
	bool good = true;

	hists_of(body->counts, hists);
	for (unsigned h = 0; hists[h] && good; h++) {
		uint64_t used = hists[h]->count ? hists[h]->length + 1 : 0;

		while (used && !obk_rqa_hist_get(hists[h], used - 1))
			used--;
		good = fwrite(&used, 8, 1, file) == 1;
		*hash = ob_hash_words(*hash, &used, 8);
		for (uint64_t l = 0; l < used && good; l++) {
			uint64_t value = obk_rqa_hist_get(hists[h], l);

			good = fwrite(&value, 8, 1, file) == 1;
			*hash = ob_hash_words(*hash, &value, 8);
		}
	}
	return good && fwrite(hash, 8, 1, file) == 1;
}

/* Writes header and body to a temporary file and renames it. */
static int file_write(const char *path, uint64_t hash, struct header header,
	const struct body *body, struct obk_rqa_error *ret_error)
{
	uint64_t check = ob_hash_words(hash, &header, sizeof header);
	size_t size = strlen(path) + 5;
	char *beside = malloc(size);
	FILE *file;
	bool good;

	if (!beside)
		return obk_rqa_fail(
			ret_error, OBK_RQA_NO_MEMORY, 0, 0, "no memory to write %s", path);
	snprintf(beside, size, "%s.new", path);
	file = fopen(beside, "wb");
	good = file && fwrite(&header, sizeof header, 1, file) == 1 &&
		body->write(file, body, &check) && fflush(file) == 0 && fsync(fileno(file)) == 0;
	if (file && fclose(file) != 0)
		good = false;
	good = good && rename(beside, path) == 0;
	if (!good) {
		obk_rqa_fail(ret_error, OBK_RQA_IO, 0, 0,
			"%s cannot be written (%s): name a file in a folder with room that this "
			"user may write to",
			path, strerror(errno));
		unlink(beside);
	}
	free(beside);
	return good ? OBK_RQA_OK : OBK_RQA_IO;
}

static bool hists_read(FILE *file, const struct body *body, uint64_t check)
{
	struct obk_rqa_hist *hists[HISTS + OBK_RQA_TOUCH];
	uint64_t stored;

	hists_of(body->counts, hists);
	for (unsigned h = 0; hists[h]; h++) {
		uint64_t used, value;

		if (fread(&used, 8, 1, file) != 1 ||
			used > (hists[h]->count ? hists[h]->length + 1 : 0))
			return false;
		check = ob_hash_words(check, &used, 8);
		for (uint64_t l = 0; l < used; l++) {
			if (fread(&value, 8, 1, file) != 1)
				return false;
			check = ob_hash_words(check, &value, 8);
			obk_rqa_hist_add(hists[h], l, value);
		}
	}
	return fread(&stored, 8, 1, file) == 1 && stored == check;
}

/* OBK_RQA_OK and ret_header->unit 0: there is no file. */
static int file_read(const char *path, uint64_t hash, uint64_t magic, struct header *ret_header,
	const struct body *body, struct obk_rqa_error *ret_error)
{
	FILE *file = fopen(path, "rb");
	int status = OBK_RQA_OK;

	*ret_header = (struct header){ 0 };
	if (!file)
		return errno == ENOENT ? OBK_RQA_OK
				       : obk_rqa_fail(ret_error, OBK_RQA_IO, 0, 0,
						 "%s cannot be read (%s)", path, strerror(errno));
	if (fread(ret_header, sizeof *ret_header, 1, file) != 1 ||
		(ret_header->magic != MAGIC && ret_header->magic != BLOB_MAGIC))
		status = obk_rqa_fail(ret_error, OBK_RQA_STATE, 0, 0,
			"%s is not the file of a run: remove it, or name another", path);
	else if (ret_header->magic != magic)
		status = obk_rqa_fail(ret_error, OBK_RQA_STATE, 0, 0,
			"%s is of a run on another device: go on with device %s, remove it, or "
			"name another",
			path, magic == MAGIC ? "gpu" : "cpu");
	else if (ret_header->hash != hash)
		status = obk_rqa_fail(ret_error, OBK_RQA_STATE, 0, 0,
			"%s belongs to another series or other options: remove it, or name another",
			path);
	else if (!body->read(file, body, ob_hash_words(hash, ret_header, sizeof *ret_header)))
		status = obk_rqa_fail(ret_error, OBK_RQA_STATE, 0, 0,
			"%s is damaged: remove it to start again", path);
	fclose(file);
	return status;
}

int obk_rqa_state_save(const char *path, uint64_t hash, const struct obk_rqa_counts *counts,
	uint64_t unit, struct obk_rqa_error *ret_error)
{
	struct header header = { MAGIC, hash, unit, counts->points, counts->loi_points,
		counts->t1_sum, counts->t1_count, counts->open_last };
	struct obk_rqa_counts copy = *counts;

	return file_write(path, hash, header,
		&(struct body){ .write = hists_write, .counts = &copy }, ret_error);
}

int obk_rqa_state_load(const char *path, uint64_t hash, struct obk_rqa_counts *counts,
	uint64_t *ret_unit, struct obk_rqa_error *ret_error)
{
	struct header header;
	int status = file_read(path, hash, MAGIC, &header,
		&(struct body){ .read = hists_read, .counts = counts }, ret_error);

	if (status != OBK_RQA_OK || !header.unit)
		return status;
	counts->points = header.points;
	counts->loi_points = header.loi_points;
	counts->t1_sum = header.t1_sum;
	counts->t1_count = header.t1_count;
	counts->open_last = header.open_last;
	*ret_unit = header.unit;
	return OBK_RQA_OK;
}

static bool blob_write(FILE *file, const struct body *body, uint64_t *hash)
{
	*hash = ob_hash_words(*hash, body->bytes, body->size);
	return fwrite(body->bytes, body->size, 1, file) == 1 && fwrite(hash, 8, 1, file) == 1;
}

static bool blob_read(FILE *file, const struct body *body, uint64_t check)
{
	uint64_t stored;

	return fread(body->bytes, body->size, 1, file) == 1 && fread(&stored, 8, 1, file) == 1 &&
		stored == ob_hash_words(check, body->bytes, body->size);
}

int obk_rqa_blob_save(const char *path, uint64_t hash, uint64_t unit, const void *bytes,
	size_t size, struct obk_rqa_error *ret_error)
{
	struct header header = { .magic = BLOB_MAGIC, .hash = hash, .unit = unit };

	return file_write(path, hash, header,
		&(struct body){
			.write = blob_write, .bytes = (void *)(uintptr_t)bytes, .size = size },
		ret_error);
}

int obk_rqa_blob_load(const char *path, uint64_t hash, uint64_t *ret_unit, void *ret_bytes,
	size_t size, struct obk_rqa_error *ret_error)
{
	struct header header;
	int status = file_read(path, hash, BLOB_MAGIC, &header,
		&(struct body){ .read = blob_read, .bytes = ret_bytes, .size = size }, ret_error);

	if (status == OBK_RQA_OK)
		*ret_unit = header.unit;
	return status;
}
