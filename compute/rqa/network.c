/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The recurrence network: vectors are nodes; recurrent cells outside the LOI and the Theiler window
 * are edges. Its adjacency matrix is the only matrix that is stored, with one bit per cell.
 */
#include <math.h>
#include <stdlib.h>

#include "compute/rqa/internal.h"

struct network {
	const struct obk_rqa_matrix *matrix;
	const struct obk_rqa_options *options;
	const struct obk_rqa_ops *ops;
	struct obk_rqa_scratch *scratch;
	uint64_t n, words, *rows, *degree, *closed; /* closed[i]: number of walks i - j - k - i */
};

static void row_make(void *arg, unsigned thread, uint64_t j)
{
	struct network *net = arg;
	uint64_t *row = net->rows + j * net->words, degree = 0;

	obk_rqa_column_bits(net->matrix, net->ops, &net->scratch[thread], j, row);
	obk_rqa_column_mask(
		row, net->n, j, net->options->theiler_vert > 1 ? net->options->theiler_vert : 1);
	for (uint64_t w = 0; w < net->words; w++)
		degree += (uint64_t)__builtin_popcountll(row[w]);
	net->degree[j] = degree;
}

static void row_close(void *arg, unsigned thread, uint64_t i)
{
	struct network *net = arg;
	const uint64_t *row = net->rows + i * net->words;
	uint64_t closed = 0;

	(void)thread;
	for (uint64_t w = 0; w < net->words; w++)
		for (uint64_t bits = row[w]; bits; bits &= bits - 1) {
			const uint64_t *other =
				net->rows + (64 * w + (uint64_t)__builtin_ctzll(bits)) * net->words;

			for (uint64_t v = 0; v < net->words; v++)
				closed += (uint64_t)__builtin_popcountll(row[v] & other[v]);
		}
	net->closed[i] = closed;
}

static void network_sum(const struct network *net, struct obk_rqa_counts *counts)
{
	double closed = 0, triples = 0, paths = 0, clustering = 0, nodes = 0;

	for (uint64_t i = 0; i < net->n; i++) {
		double degree = (double)net->degree[i], own = degree * (degree - 1);

		closed += (double)net->closed[i];
		triples += own;
		paths += degree * degree;
		if (net->degree[i] > 1) {
			clustering += (double)net->closed[i] / own;
			nodes++;
		}
	}
	counts->has_network = true;
	counts->transitivity[OBK_RQA_TRIPLES] = triples > 0 ? closed / triples : NAN;
	counts->transitivity[OBK_RQA_PATHS] = paths > 0 ? closed / paths : NAN;
	counts->clustering = nodes > 0 ? clustering / nodes : NAN;
}

int obk_rqa_network(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options,
	const struct obk_rqa_ops *ops, struct obk_rqa_watch *watch, unsigned threads,
	struct obk_rqa_counts *counts)
{
	struct network net = { .matrix = matrix,
		.options = options,
		.ops = ops,
		.n = matrix->n1,
		.words = (matrix->n1 + 63) / 64 };
	unsigned ready = 0;
	int status = OBK_RQA_NO_MEMORY;

	if (!matrix->symmetric || net.n > OBK_RQA_MAX_NETWORK)
		return OBK_RQA_OK;
	net.scratch = calloc(threads, sizeof *net.scratch);
	net.rows = calloc(net.n * net.words + 1, 8);
	net.degree = calloc(net.n, 8);
	net.closed = calloc(net.n, 8);
	while (net.scratch && ready < threads &&
		obk_rqa_scratch_init(&net.scratch[ready], matrix) == OBK_RQA_OK)
		ready++;
	if (ready && net.rows && net.degree && net.closed) {
		obk_rqa_each(watch, ready, 0, net.n, row_make, &net);
		obk_rqa_each(watch, ready, 0, net.n, row_close, &net);
		status = obk_rqa_watch_stopped(watch) ? OBK_RQA_CANCELLED : OBK_RQA_OK;
		if (status == OBK_RQA_OK)
			network_sum(&net, counts);
	}
	for (unsigned t = 0; t < ready; t++)
		obk_rqa_scratch_fini(&net.scratch[t]);
	free(net.scratch);
	free(net.rows);
	free(net.degree);
	free(net.closed);
	return status;
}
