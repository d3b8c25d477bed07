/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The file of a run in progress: a header, then the histograms in a fixed order, each as its number of entries up to the last one that
 * is not 0, and the entries.
 * It is written beside its place, flushed and renamed, so a kill leaves the old one or the new one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/rqa/internal.h"

#define MAGIC 0x6f626b7271613032ull
#define HISTS 11

struct header {
	uint64_t magic, hash, unit, points, loi_points, t1_sum, t1_count, open_last;
};

uint64_t obk_rqa_hash(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;

	/* FNV-1a over 8 bytes at a time, the rest singly. */
	for (; size >= 8; size -= 8, at += 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		hash = (hash ^ word) * 0x100000001b3ull;
		hash ^= hash >> 29;
	}
	for (; size; size--, at++)
		hash = (hash ^ *at) * 0x100000001b3ull;
	return hash;
}

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

static bool hists_write(FILE *file, struct obk_rqa_counts *counts, uint64_t *hash)
{
	struct obk_rqa_hist *hists[HISTS + OBK_RQA_TOUCH];
	bool good = true;

	hists_of(counts, hists);
	for (unsigned h = 0; hists[h] && good; h++) {
		uint64_t used = hists[h]->count ? hists[h]->length + 1 : 0;

		while (used && !obk_rqa_hist_get(hists[h], used - 1))
			used--;
		good = fwrite(&used, 8, 1, file) == 1;
		*hash = obk_rqa_hash(*hash, &used, 8);
		for (uint64_t l = 0; l < used && good; l++) {
			uint64_t value = obk_rqa_hist_get(hists[h], l);

			good = fwrite(&value, 8, 1, file) == 1;
			*hash = obk_rqa_hash(*hash, &value, 8);
		}
	}
	return good && fwrite(hash, 8, 1, file) == 1;
}

int obk_rqa_state_save(const char *path, uint64_t hash, const struct obk_rqa_counts *counts, uint64_t unit, struct obk_rqa_error *ret_error)
{
	struct header header = { MAGIC, hash, unit, counts->points, counts->loi_points, counts->t1_sum, counts->t1_count, counts->open_last };
	struct obk_rqa_counts copy = *counts;
	uint64_t check = obk_rqa_hash(hash, &header, sizeof header);
	size_t size = strlen(path) + 5;
	char *beside = malloc(size);
	FILE *file;
	bool good;

	if (!beside)
		return obk_rqa_fail(ret_error, OBK_RQA_NO_MEMORY, 0, 0, "no memory to write %s", path);
	snprintf(beside, size, "%s.new", path);
	file = fopen(beside, "wb");
	good = file && fwrite(&header, sizeof header, 1, file) == 1 && hists_write(file, &copy, &check) && fflush(file) == 0 && fsync(fileno(file)) == 0;
	if (file && fclose(file) != 0)
		good = false;
	good = good && rename(beside, path) == 0;
	if (!good) {
		obk_rqa_fail(ret_error, OBK_RQA_IO, 0, 0, "%s cannot be written (%s): name a file in a folder with room that this user may write to", path,
			     strerror(errno));
		unlink(beside);
	}
	free(beside);
	return good ? OBK_RQA_OK : OBK_RQA_IO;
}

static bool hists_read(FILE *file, struct obk_rqa_counts *counts, uint64_t check)
{
	struct obk_rqa_hist *hists[HISTS + OBK_RQA_TOUCH];
	uint64_t stored;

	hists_of(counts, hists);
	for (unsigned h = 0; hists[h]; h++) {
		uint64_t used, value;

		if (fread(&used, 8, 1, file) != 1 || used > (hists[h]->count ? hists[h]->length + 1 : 0))
			return false;
		check = obk_rqa_hash(check, &used, 8);
		for (uint64_t l = 0; l < used; l++) {
			if (fread(&value, 8, 1, file) != 1)
				return false;
			check = obk_rqa_hash(check, &value, 8);
			obk_rqa_hist_add(hists[h], l, value);
		}
	}
	return fread(&stored, 8, 1, file) == 1 && stored == check;
}

int obk_rqa_state_load(const char *path, uint64_t hash, struct obk_rqa_counts *counts, uint64_t *ret_unit, struct obk_rqa_error *ret_error)
{
	struct header header;
	FILE *file = fopen(path, "rb");
	int status = OBK_RQA_OK;

	if (!file)
		return errno == ENOENT ? OBK_RQA_OK :
					 obk_rqa_fail(ret_error, OBK_RQA_IO, 0, 0, "%s cannot be read (%s)", path, strerror(errno));
	if (fread(&header, sizeof header, 1, file) != 1 || header.magic != MAGIC)
		status = obk_rqa_fail(ret_error, OBK_RQA_STATE, 0, 0, "%s is not the file of a run: remove it, or name another", path);
	else if (header.hash != hash)
		status = obk_rqa_fail(ret_error, OBK_RQA_STATE, 0, 0, "%s belongs to another series or other options: remove it, or name another", path);
	else if (!hists_read(file, counts, obk_rqa_hash(hash, &header, sizeof header)))
		status = obk_rqa_fail(ret_error, OBK_RQA_STATE, 0, 0, "%s is damaged: remove it to start again", path);
	fclose(file);
	if (status != OBK_RQA_OK)
		return status;
	counts->points = header.points;
	counts->loi_points = header.loi_points;
	counts->t1_sum = header.t1_sum;
	counts->t1_count = header.t1_count;
	counts->open_last = header.open_last;
	*ret_unit = header.unit;
	return OBK_RQA_OK;
}
