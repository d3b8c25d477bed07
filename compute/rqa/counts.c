/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Memory for a count: its histograms, and the scratch of each thread. */
#include <stdlib.h>
#include <string.h>

#include "compute/rqa/internal.h"

static void hist_fini(struct obk_rqa_hist *hist)
{
	free(hist->count);
	hist->count = NULL;
}

static bool hist_init(struct obk_rqa_hist *hist, uint64_t length)
{
	hist->length = length;
	hist->count = calloc(length + 1, sizeof *hist->count);
	return hist->count != NULL;
}

int obk_rqa_counts_init(
	struct obk_rqa_counts *counts, const struct obk_rqa_matrix *matrix, uint32_t want)
{
	uint64_t shorter = matrix->n1 < matrix->n2 ? matrix->n1 : matrix->n2;
	bool good = true;

	memset(counts, 0, sizeof *counts);
	counts->n1 = matrix->n1;
	counts->n2 = matrix->n2;
	counts->symmetric = matrix->symmetric;
	for (unsigned kind = 0; kind < OBK_RQA_TOUCH; kind++)
		good = good && hist_init(&counts->diagonal[kind], shorter);
	if (matrix->symmetric)
		good = good && hist_init(&counts->loi, shorter) &&
			hist_init(&counts->loi_border, shorter);
	if (want & OBK_RQA_WANT_VERTICAL)
		good = good && hist_init(&counts->vertical, matrix->n1);
	if (want & (OBK_RQA_WANT_WHITE | OBK_RQA_WANT_TIMES))
		good = good && hist_init(&counts->white, matrix->n1) &&
			hist_init(&counts->white_border, matrix->n1);
	if (want & OBK_RQA_WANT_TIMES)
		good = good && hist_init(&counts->start, matrix->n1) &&
			hist_init(&counts->middle, matrix->n1);
	if (want & OBK_RQA_WANT_TREND)
		good = good &&
			hist_init(&counts->profile,
				matrix->symmetric ? matrix->n1 - 1 : matrix->n1 + matrix->n2 - 2);
	if (want & OBK_RQA_WANT_TREND && !matrix->symmetric)
		good = good && hist_init(&counts->square, shorter - 1);
	if (good)
		return OBK_RQA_OK;
	obk_rqa_counts_fini(counts);
	return OBK_RQA_NO_MEMORY;
}

void obk_rqa_counts_fini(struct obk_rqa_counts *counts)
{
	for (unsigned kind = 0; kind < OBK_RQA_TOUCH; kind++)
		hist_fini(&counts->diagonal[kind]);
	hist_fini(&counts->loi);
	hist_fini(&counts->loi_border);
	hist_fini(&counts->vertical);
	hist_fini(&counts->white);
	hist_fini(&counts->white_border);
	hist_fini(&counts->start);
	hist_fini(&counts->middle);
	hist_fini(&counts->profile);
	hist_fini(&counts->square);
	hist_fini(&counts->line);
}

void obk_rqa_scratch_fini(struct obk_rqa_scratch *scratch)
{
	free(scratch->gaps);
	free(scratch->ring);
	free(scratch->strips);
	free(scratch->words);
	free(scratch->words_b);
	free(scratch->words_c);
	free(scratch->columns);
	scratch->columns = NULL;
	scratch->gaps = scratch->ring = NULL;
	scratch->strips = NULL;
	scratch->words = scratch->words_b = scratch->words_c = NULL;
}

int obk_rqa_scratch_init(struct obk_rqa_scratch *scratch, const struct obk_rqa_matrix *matrix)
{
	uint64_t span = 0, channels = 1,
		 words = (matrix->n1 > matrix->n2 ? matrix->n1 : matrix->n2) / 64 + 6;

	memset(scratch, 0, sizeof *scratch);
	for (uint32_t p = 0; p < matrix->plots; p++) {
		uint64_t own = (matrix->plot[p].m - 1) * matrix->plot[p].tau;

		span = own > span ? own : span;
		channels =
			matrix->plot[p].channels > channels ? matrix->plot[p].channels : channels;
	}
	scratch->block = span <= OBK_RQA_BLOCK ? OBK_RQA_BLOCK : (span + 63) / 64 * 64;
	scratch->stride = scratch->block + span + OBK_RQA_PAD;
	scratch->gaps = calloc(scratch->stride * channels, sizeof(double));
	scratch->words = calloc(words, 8);
	scratch->words_b = calloc(words, 8);
	scratch->words_c = calloc(words, 8);
	scratch->strip_words = words;
	if (matrix->symmetric && span <= OBK_RQA_SPAN) {
		/* 64 bytes: a vector; a position of the widest strip is twice that. */
		scratch->ring = aligned_alloc(64, (OBK_RQA_STRIP + span) * channels * 128);
		scratch->strips = calloc(words * OBK_RQA_LANES * matrix->plots, 8);
		if (!scratch->ring || !scratch->strips) {
			obk_rqa_scratch_fini(scratch);
			return OBK_RQA_NO_MEMORY;
		}
	}
	if (scratch->gaps && scratch->words && scratch->words_b && scratch->words_c)
		return OBK_RQA_OK;
	obk_rqa_scratch_fini(scratch);
	return OBK_RQA_NO_MEMORY;
}
