/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Bit-reversal permutation. Done element by element, every access would miss the cache, and strides
 * of powers of two would compete for the few lines of a cache set. Therefore squares of 16 rows and
 * 16 neighbours are copied out, transposed and copied back. An index is (high | middle | low) with
 * 4 bits at both ends; the square `middle` is exchanged with the square of the reversed middle.
 */
#include <string.h>

#include "compute/ntt/reverse.h"

#define SIDE_LOG 4
#define SIDE     (1 << SIDE_LOG)

static const unsigned char turned[SIDE] = { 0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15 };

struct reversal {
	struct obk_fr *data;
	unsigned log_n;
};

static void fetch(struct obk_fr square[SIDE][SIDE], const struct obk_fr *from, size_t step)
{
	for (size_t a = 0; a < SIDE; a++)
		memcpy(square[a], from + a * step, sizeof(square[a]));
}

/* The element in row a, column c of the square goes to row (c reversed), column (a reversed). */
static void put_turned(struct obk_fr *to, size_t step, struct obk_fr square[SIDE][SIDE])
{
	for (size_t a = 0; a < SIDE; a++) {
		struct obk_fr *row = to + a * step;

		for (size_t c = 0; c < SIDE; c++)
			row[c] = square[turned[c]][turned[a]];
	}
}

static void square_body(void *arg, size_t item, unsigned thread)
{
	const struct reversal *r = arg;
	unsigned middle = r->log_n - 2 * SIDE_LOG;
	size_t m = item & (((size_t)1 << middle) - 1),
	       other = obk_ntt_reverse_bits((uint32_t)m, middle),
	       step = (size_t)1 << (r->log_n - SIDE_LOG);
	struct obk_fr *data = r->data + ((item >> middle) << r->log_n), mine[SIDE][SIDE],
		      theirs[SIDE][SIDE];

	(void)thread;
	if (m > other)
		return;
	fetch(mine, data + (m << SIDE_LOG), step);
	if (m < other) {
		fetch(theirs, data + (other << SIDE_LOG), step);
		put_turned(data + (m << SIDE_LOG), step, theirs);
	}
	put_turned(data + (other << SIDE_LOG), step, mine);
}

static void small_body(void *arg, size_t item, unsigned thread)
{
	const struct reversal *r = arg;
	struct obk_fr *data = r->data + (item << r->log_n);

	(void)thread;
	for (size_t i = 0; i < (size_t)1 << r->log_n; i++) {
		size_t j = obk_ntt_reverse_bits((uint32_t)i, r->log_n);

		if (i < j) {
			struct obk_fr t = data[i];

			data[i] = data[j];
			data[j] = t;
		}
	}
}

bool obk_ntt_reverse_batch(struct obk_fr *data, unsigned log_n, size_t batch, struct obk_pool *pool,
	const struct obk_stop *stop)
{
	struct reversal r = { .data = data, .log_n = log_n };

	if (log_n < 2 * SIDE_LOG)
		return obk_pool_run_until(pool, stop, batch, small_body, &r);
	return obk_pool_run_until(pool, stop, batch << (log_n - 2 * SIDE_LOG), square_body, &r);
}

void obk_ntt_reverse(struct obk_fr *data, unsigned log_n)
{
	static const struct obk_stop never;

	obk_ntt_reverse_batch(data, log_n, 1, NULL, &never);
}
