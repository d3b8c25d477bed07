/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdlib.h>
#include <string.h>

#include "compute/rqa/internal.h"

struct image {
	const struct obk_rqa_matrix *matrix;
	const struct obk_rqa_ops *ops;
	struct obk_rqa_watch *watch;
	struct obk_rqa_scratch *scratch;
	uint64_t *sums; /* `width` numbers per thread */
	uint32_t width, height;
	int mean;
	uint8_t *pixels;
};

/* Set bits in [from, to). */
static uint64_t bits_between(const uint64_t *words, uint64_t from, uint64_t to)
{
	uint64_t count = 0;

	for (uint64_t at = from; at < to; at += 64) {
		uint64_t bits = obk_rqa_bits_at(words, at);

		if (to - at < 64)
			bits &= ((uint64_t)1 << (to - at)) - 1;
		count += (uint64_t)__builtin_popcountll(bits);
	}
	return count;
}

static void line_draw(void *arg, unsigned thread, uint64_t line)
{
	struct image *image = arg;
	struct obk_rqa_scratch *scratch = &image->scratch[thread];
	uint64_t n1 = image->matrix->n1, n2 = image->matrix->n2, from = line * n2 / image->height,
		 to = (line + 1) * n2 / image->height;
	uint64_t *sums = image->sums + (uint64_t)thread * image->width;
	uint8_t *row = image->pixels + (image->height - 1 - line) * (uint64_t)image->width;

	memset(sums, 0, image->width * sizeof *sums);
	for (uint64_t j = from; j < to; j++) {
		obk_rqa_column_bits(image->matrix, image->ops, scratch, j, scratch->words);
		for (uint64_t p = 0; p < image->width; p++)
			sums[p] += bits_between(
				scratch->words, p * n1 / image->width, (p + 1) * n1 / image->width);
	}
	for (uint64_t p = 0; p < image->width; p++) {
		uint64_t cells =
			(to - from) * ((p + 1) * n1 / image->width - p * n1 / image->width);

		if (image->mean)
			row[p] = (uint8_t)(255 - (sums[p] * 255 + cells / 2) / cells);
		else
			row[p] = sums[p] ? 0 : 255;
	}
	obk_rqa_watch_add(image->watch, (to - from) * n1, 0, 0, 0);
}

static int image_draw(struct image *image, unsigned threads, struct obk_rqa_error *ret_error)
{
	unsigned ready = 0;
	int status = OBK_RQA_OK;

	image->scratch = calloc(threads, sizeof *image->scratch);
	image->sums = calloc((size_t)threads * image->width, sizeof *image->sums);
	while (image->scratch && image->sums && ready < threads &&
		obk_rqa_scratch_init(&image->scratch[ready], image->matrix) == OBK_RQA_OK)
		ready++;
	if (ready)
		obk_rqa_each(image->watch, ready, 0, image->height, line_draw, image);
	else
		status = obk_rqa_fail(ret_error, OBK_RQA_NO_MEMORY, 0, 0, "no memory for the plot");
	if (status == OBK_RQA_OK && obk_rqa_watch_stopped(image->watch))
		status = obk_rqa_fail(ret_error, OBK_RQA_CANCELLED, 0, 0, "cancelled");
	for (unsigned t = 0; t < ready; t++)
		obk_rqa_scratch_fini(&image->scratch[t]);
	free(image->scratch);
	free(image->sums);
	return status;
}

int obk_rqa_plot(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, uint32_t width, uint32_t height, int mean,
	const struct obk_rqa_control *control, uint8_t *ret_pixels, struct obk_rqa_error *ret_error)
{
	const struct obk_rqa_ops *ops;
	struct obk_rqa_matrix matrix;
	struct obk_rqa_watch *watch;
	int status = obk_rqa_control_check(control, &ops, ret_error);

	if (status == OBK_RQA_OK)
		status = obk_rqa_matrix_init(&matrix, x, y, options, ret_error);
	if (status != OBK_RQA_OK)
		return status;
	watch = obk_rqa_watch_new(control);
	if (!ret_pixels || !width || !height || width > matrix.n1 || height > matrix.n2)
		status = obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
			"a plot of %u x %u pixels was asked for: 1 x 1 to %llu x %llu are possible",
			width, height, (unsigned long long)matrix.n1,
			(unsigned long long)matrix.n2);
	else if (width > OBK_RQA_MAX_IMAGE || height > OBK_RQA_MAX_IMAGE)
		status = obk_rqa_fail(ret_error, OBK_RQA_LIMIT, 0, 0,
			"a plot of %u x %u pixels was asked for: at most %u x %u are possible",
			width, height, OBK_RQA_MAX_IMAGE, OBK_RQA_MAX_IMAGE);
	else if (!watch)
		status = obk_rqa_fail(ret_error, OBK_RQA_NO_MEMORY, 0, 0, "no memory");
	if (status == OBK_RQA_OK)
		status = obk_rqa_matrix_radius(&matrix, x, y, options, ops, watch, ret_error);
	if (status == OBK_RQA_OK) {
		struct image image = { &matrix, ops, watch, NULL, NULL, width, height, mean,
			ret_pixels };

		obk_rqa_watch_total(watch, matrix.n1 * matrix.n2, 0);
		status = image_draw(&image, obk_rqa_threads(control), ret_error);
		if (status == OBK_RQA_OK)
			obk_rqa_watch_end(watch);
	}
	obk_rqa_watch_free(watch);
	obk_rqa_matrix_fini(&matrix);
	return status;
}

int obk_rqa_plot_size(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, uint64_t *ret_columns, uint64_t *ret_rows,
	struct obk_rqa_error *ret_error)
{
	struct obk_rqa_matrix matrix;
	int status = obk_rqa_matrix_init(&matrix, x, y, options, ret_error);

	if (status != OBK_RQA_OK)
		return status;
	*ret_columns = matrix.n1;
	*ret_rows = matrix.n2;
	obk_rqa_matrix_fini(&matrix);
	return OBK_RQA_OK;
}
