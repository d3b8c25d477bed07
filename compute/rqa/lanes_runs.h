/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Run lengths without a branch per run. lanes.c includes this file if vectors have 32 bytes or
 * more. A run is the stretch between two edges; an edge is a cell that differs from the one before
 * it. The positions of edges are written first, always four at a time even if there are fewer, and
 * then taken in pairs.
 */
#define RUNS_WORDS 64u /* words processed at a time */

struct edges {
	uint64_t at[RUNS_WORDS * 64 + 16]; /* the first one may be left from the previous words */
	uint64_t count;
};

/* Finds the positions of the edges in up to 64 words; `carry` is the last cell before them. */
static inline uint64_t edges_find(
	struct edges *edges, const uint64_t *words, uint64_t count, uint64_t base, uint64_t carry)
{
	uint64_t bits[RUNS_WORDS + 4], some = 0, *at = edges->at + edges->count;
	__m256i before = _mm256_set_epi64x(0, 0, 0, (long long)carry);

	for (uint64_t w = 0; w < count; w += 4) {
		__m256i now = _mm256_loadu_si256((const __m256i *)(const void *)(words + w)), edge;

		if (w)
			before = _mm256_loadu_si256((const __m256i *)(const void *)(words + w - 1));
		else
			before = _mm256_blend_epi32(_mm256_permute4x64_epi64(now, 0x90), before, 3);
		edge = _mm256_xor_si256(now,
			_mm256_or_si256(_mm256_add_epi64(now, now), _mm256_srli_epi64(before, 63)));
		_mm256_storeu_si256((__m256i *)(void *)(bits + w), edge);
		some |= (uint64_t)(~_mm256_movemask_pd(_mm256_castsi256_pd(
					   _mm256_cmpeq_epi64(edge, _mm256_setzero_si256()))) &
				15)
			<< w;
	}
	if (count < 64)
		some &= ((uint64_t)1 << count) - 1;
	for (; some; some &= some - 1) {
		uint64_t w = (uint64_t)__builtin_ctzll(some), edge = bits[w],
			 number = (uint64_t)__builtin_popcountll(edge), start = base + 64 * w;

		for (uint64_t done = 0; done < number; done += 4)
			for (unsigned i = 0; i < 4; i++) {
				at[done + i] = start + (uint64_t)_tzcnt_u64(edge);
				edge &= edge - 1;
			}
		at += number;
	}
	edges->count = (uint64_t)(at - edges->at);
	return words[count - 1];
}

/* Counts finished runs and removes them; an open run stays. Returns the number of their cells. */
static inline uint64_t edges_take(
	struct edges *edges, struct obk_rqa_short *inner, struct obk_rqa_hist *kinds)
{
	uint64_t points = 0;

	for (uint64_t e = 0; e + 1 < edges->count; e += 2) {
		uint64_t length = edges->at[e + 1] - edges->at[e];

		points += length;
		count_inner(length, inner, kinds);
	}
	if (edges->count & 1)
		edges->at[0] = edges->at[edges->count - 1];
	edges->count &= 1;
	return points;
}

/* Reclassifies a run that was counted as an inner one: it touches the border. */
static void runs_move(
	uint64_t length, int kind, struct obk_rqa_short *inner, struct obk_rqa_hist *kinds)
{
	if (length < OBK_RQA_SHORT)
		inner->count[length]--;
	else
		obk_rqa_hist_add(&kinds[OBK_RQA_INNER], length, (uint64_t)-1);
	obk_rqa_hist_add(&kinds[kind], length, 1);
}

static uint64_t runs(const uint64_t *words, uint64_t cells, struct obk_rqa_short *inner,
	struct obk_rqa_hist *kinds)
{
	struct edges edges;
	uint64_t points = 0, count = (cells + 63) / 64, carry = 0, head = 0, tail = 0, seen = 0;

	edges.count = 0;
	for (uint64_t w = 0; w < count; w += RUNS_WORDS) {
		uint64_t here = count - w < RUNS_WORDS ? count - w : RUNS_WORDS;

		carry = edges_find(&edges, words + w, here, 64 * w, carry);
		if (w + here == count && carry >> 63)
			edges.at[edges.count++] = cells;
		if (!edges.count)
			continue;
		if (!seen && edges.count > 1) {
			head = edges.at[0] == 0 ? edges.at[1] : 0;
			seen = 1;
		}
		if (w + here == count && edges.at[edges.count - 1] == cells)
			tail = cells - edges.at[edges.count - 2];
		points += edges_take(&edges, inner, kinds);
	}
	if (head == cells) {
		runs_move(head, OBK_RQA_FULL, inner, kinds);
		return points;
	}
	if (head)
		runs_move(head, OBK_RQA_SEMI, inner, kinds);
	if (tail)
		runs_move(tail, OBK_RQA_SEMI, inner, kinds);
	return points;
}
