/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Distance arithmetic for one floating-point type. lanes.c includes this file twice per instruction
 * set, with REAL, VECTOR, WIDTH, NAMED, MASK_LE, ABS and MAX defined. Coordinates are summed in
 * index order (lag by lag, and channel by channel within a lag) and without contraction, so that
 * every instruction set gives the same bits.
 */

static inline VECTOR NAMED(load)(const REAL *from)
{
	VECTOR value;

	memcpy(&value, from, sizeof value);
	return value;
}

static inline VECTOR NAMED(splat)(REAL value)
{
	return value - (VECTOR){ 0 };
}

static inline VECTOR NAMED(gap)(VECTOR a, VECTOR b, int norm)
{
	VECTOR d = a - b;

	return norm == OBK_RQA_NORM_L2 ? d * d : ABS(d);
}

static inline VECTOR NAMED(joined)(VECTOR a, VECTOR b, int norm)
{
	return norm == OBK_RQA_NORM_MAX ? MAX(a, b) : a + b;
}

static inline __attribute__((always_inline)) void NAMED(gaps_norm)(
	const REAL *x, const REAL *y, uint64_t count, REAL *ret, int norm)
{
	for (uint64_t p = 0; p < count; p += WIDTH) {
		VECTOR g = NAMED(gap)(NAMED(load)(x + p), NAMED(load)(y + p), norm);

		memcpy(ret + p, &g, sizeof g);
	}
}

static void NAMED(gaps_any)(const REAL *x, const REAL *y, uint64_t count, REAL *ret, int norm)
{
	if (norm == OBK_RQA_NORM_L1)
		NAMED(gaps_norm)(x, y, count, ret, OBK_RQA_NORM_L1);
	else if (norm == OBK_RQA_NORM_L2)
		NAMED(gaps_norm)(x, y, count, ret, OBK_RQA_NORM_L2);
	else
		NAMED(gaps_norm)(x, y, count, ret, OBK_RQA_NORM_MAX);
}

/* One cell, with coordinates summed in the same order. */
static inline bool NAMED(cell)(const struct obk_rqa_plot *plot, uint64_t i, uint64_t j)
{
	REAL sum = 0;

	for (uint32_t lag = 0; lag < plot->m; lag++)
		for (uint32_t c = 0; c < plot->channels; c++) {
			REAL d = ((const REAL *)plot->x.channel[c])[i + lag * plot->tau] -
				((const REAL *)plot->y.channel[c])[j + lag * plot->tau];
			REAL g = plot->norm == OBK_RQA_NORM_L2 ? d * d : d < 0 ? -d : d;

			sum = lag + c == 0                       ? g
				: plot->norm == OBK_RQA_NORM_MAX ? (sum > g ? sum : g)
								 : sum + g;
		}
	return sum <= (REAL)plot->limit;
}

/*
 * Words of one block: sums over lags and channels of differences that were stored well before. (A
 * load that overlaps two stores of the previous iterations would wait until both have reached the
 * cache, which takes longer than all other work here.)
 */
static inline __attribute__((always_inline)) void NAMED(block)(const REAL *gaps, uint64_t stride,
	uint32_t channels, uint32_t m, uint64_t tau, int norm, REAL limit, uint64_t words,
	uint64_t *ret)
{
	VECTOR bound = NAMED(splat)(limit);

	for (uint64_t w = 0; w < words; w++) {
		uint64_t bits = 0;

		for (unsigned v = 0; v < 64 / WIDTH; v++) {
			const REAL *at = gaps + 64 * w + v * WIDTH;
			VECTOR sum = NAMED(load)(at);

			for (uint32_t c = 1; c < channels; c++)
				sum = NAMED(joined)(sum, NAMED(load)(at + c * stride), norm);
			for (uint32_t lag = 1; lag < m; lag++)
				for (uint32_t c = 0; c < channels; c++)
					sum = NAMED(joined)(sum,
						NAMED(load)(at + c * stride + lag * tau), norm);
			bits |= (uint64_t)MASK_LE(sum, bound) << (v * WIDTH);
		}
		ret[w] = bits;
	}
}

/* One channel without embedding: differences need not be stored. */
static inline __attribute__((always_inline)) void NAMED(plain)(
	const REAL *x, const REAL *y, int norm, REAL limit, uint64_t words, uint64_t *ret)
{
	VECTOR bound = NAMED(splat)(limit);

	for (uint64_t w = 0; w < words; w++) {
		uint64_t bits = 0;

		for (unsigned v = 0; v < 64 / WIDTH; v++) {
			uint64_t p = 64 * w + v * WIDTH;

			bits |= (uint64_t)MASK_LE(
					NAMED(gap)(NAMED(load)(x + p), NAMED(load)(y + p), norm),
					bound)
				<< (v * WIDTH);
		}
		ret[w] = bits;
	}
}

static inline __attribute__((always_inline)) void NAMED(block_m)(const REAL *gaps,
	const struct obk_rqa_plot *plot, uint64_t stride, int norm, REAL limit, uint64_t words,
	uint64_t *ret)
{
	if (plot->channels == 2 && plot->m == 1)
		NAMED(block)(gaps, stride, 2, 1, plot->tau, norm, limit, words, ret);
	else if (plot->channels != 1)
		NAMED(block)
	(gaps, stride, plot->channels, plot->m, plot->tau, norm, limit, words, ret);
	else if (plot->m == 2) NAMED(block)(gaps, stride, 1, 2, plot->tau, norm, limit, words, ret);
	else if (plot->m == 3) NAMED(block)(gaps, stride, 1, 3, plot->tau, norm, limit, words, ret);
	else if (plot->m == 4) NAMED(block)(gaps, stride, 1, 4, plot->tau, norm, limit, words, ret);
	else NAMED(block)(gaps, stride, 1, plot->m, plot->tau, norm, limit, words, ret);
}

static inline __attribute__((always_inline)) void NAMED(diagonal_norm)(
	const struct obk_rqa_plot *plot, struct obk_rqa_scratch *scratch, uint64_t i, uint64_t j,
	uint64_t cells, uint64_t *ret_words, int norm)
{
	uint64_t span = (plot->m - 1) * plot->tau;
	REAL limit = (REAL)plot->limit;

	if (plot->channels == 1 && plot->m == 1) {
		NAMED(plain)
		((const REAL *)plot->x.channel[0] + i, (const REAL *)plot->y.channel[0] + j, norm,
			limit, (cells + 63) / 64, ret_words);
		return;
	}
	for (uint64_t start = 0; start < cells; start += scratch->block) {
		uint64_t count = cells - start < scratch->block ? cells - start : scratch->block;

		for (uint32_t c = 0; c < plot->channels; c++) {
			REAL *g = (REAL *)scratch->gaps + c * scratch->stride;
			const REAL *x = (const REAL *)plot->x.channel[c] + i + start,
				   *y = (const REAL *)plot->y.channel[c] + j + start;

			if (start == 0) {
				NAMED(gaps_norm)(x, y, span + count, g, norm);
			} else {
				memmove(g, g + scratch->block, span * sizeof(REAL));
				NAMED(gaps_norm)(x + span, y + span, count, g + span, norm);
			}
		}
		NAMED(block_m)
		(scratch->gaps, plot, scratch->stride, norm, limit, (count + 63) / 64,
			ret_words + start / 64);
	}
}

static void NAMED(diagonal)(const struct obk_rqa_plot *plot, struct obk_rqa_scratch *scratch,
	uint64_t i, uint64_t j, uint64_t cells, uint64_t *ret_words)
{
	if (plot->norm == OBK_RQA_NORM_L1)
		NAMED(diagonal_norm)(plot, scratch, i, j, cells, ret_words, OBK_RQA_NORM_L1);
	else if (plot->norm == OBK_RQA_NORM_L2)
		NAMED(diagonal_norm)(plot, scratch, i, j, cells, ret_words, OBK_RQA_NORM_L2);
	else
		NAMED(diagonal_norm)(plot, scratch, i, j, cells, ret_words, OBK_RQA_NORM_MAX);
}

/*
 * Several diagonals at once, one per SIMD lane, from their far ends to their starts. A difference
 * is computed once and kept in a window of the most recent positions; it is used again one or more
 * delays later, always as a whole vector. A cell costs its arithmetic and the shift of one bit into
 * the word of its SIMD lane. The two series are read once per strip.
 */
static inline __attribute__((always_inline)) void NAMED(strip_block)(
	const struct obk_rqa_plot *plot, VECTOR *ring, uint64_t ring_stride, uint64_t k,
	uint64_t base, uint64_t words, uint64_t first_word, uint64_t *ret_words, uint64_t stride,
	uint32_t channels, uint32_t m, int norm)
{
	VECTOR bound = NAMED(splat)((REAL)plot->limit);
	uint64_t tau = plot->tau;

	for (uint64_t w = words; w-- > 0;) {
		uint64_t halves[64 / BITS][VECTORS * WIDTH];

		for (unsigned half = 64 / BITS; half-- > 0;) {
			INTEGERS bits[VECTORS] = { { 0 } };

			for (unsigned p = BITS; p-- > 0;) {
				uint64_t at = 64 * w + half * BITS + p;

				for (unsigned v = 0; v < VECTORS; v++) {
					VECTOR sum = { 0 };

					for (uint32_t c = 0; c < channels; c++) {
						const REAL *x = (const REAL *)plot->x.channel[c] +
							base + at,
							   *y = (const REAL *)plot->y.channel[c] +
							base + at + k;
						VECTOR g = NAMED(gap)(NAMED(splat)(*x),
							NAMED(load)(y + v * WIDTH), norm);

						sum = c ? NAMED(joined)(sum, g, norm) : g;
						if (m > 1)
							ring[(c * ring_stride + at) * VECTORS + v] =
								g;
					}
					for (uint32_t lag = 1; lag < m; lag++)
						for (uint32_t c = 0; c < channels; c++)
							sum = NAMED(joined)(sum,
								ring[(c * ring_stride + at +
									     lag * tau) *
										VECTORS +
									v],
								norm);
					bits[v] = SHIFT_IN(bits[v], sum, bound);
				}
			}
			for (unsigned lane = 0; lane < VECTORS * WIDTH; lane++)
				halves[half][lane] = UNSIGNED(bits[lane / WIDTH][lane % WIDTH]);
		}
		for (unsigned lane = 0; lane < VECTORS * WIDTH; lane++)
			ret_words[lane * stride + first_word + w] = BITS == 64
				? halves[0][lane]
				: halves[0][lane] | halves[64 / BITS - 1][lane] << 32;
	}
}

static ALWAYS void NAMED(strip_norm)(const struct obk_rqa_plot *plot,
	struct obk_rqa_scratch *scratch, uint64_t k, uint64_t cells, uint64_t *ret_words,
	uint64_t stride, uint32_t channels, uint32_t m, int norm)
{
	uint64_t span = (m - 1) * plot->tau, words = (cells + 63) / 64,
		 ring_stride = OBK_RQA_STRIP + span;
	VECTOR *ring = scratch->ring;
	uint64_t size = words * 64 < OBK_RQA_STRIP ? words * 64 : OBK_RQA_STRIP,
		 base = words * 64 - size;

	for (uint32_t c = 0; c < channels; c++)
		for (uint64_t q = 0; q < span; q++)
			for (unsigned v = 0; v < VECTORS; v++) {
				const REAL *x = (const REAL *)plot->x.channel[c] + base + size + q,
					   *y = (const REAL *)plot->y.channel[c] + base + size + q +
					k;

				ring[(c * ring_stride + size + q) * VECTORS + v] = NAMED(gap)(
					NAMED(splat)(*x), NAMED(load)(y + v * WIDTH), norm);
			}
	for (;;) {
		NAMED(strip_block)
		(plot, ring, ring_stride, k, base, size / 64, base / 64, ret_words, stride,
			channels, m, norm);
		if (!base)
			return;
		size = base < OBK_RQA_STRIP ? base : OBK_RQA_STRIP;
		base -= size;
		for (uint32_t c = 0; c < channels; c++)
			memmove(ring + (c * ring_stride + size) * VECTORS,
				ring + c * ring_stride * VECTORS, span * VECTORS * sizeof(VECTOR));
	}
}

static inline __attribute__((always_inline)) void NAMED(strip_m)(const struct obk_rqa_plot *plot,
	struct obk_rqa_scratch *scratch, uint64_t k, uint64_t cells, uint64_t *ret_words,
	uint64_t stride, int norm)
{
	if (plot->channels == 1 && plot->m == 1)
		NAMED(strip_norm)(plot, scratch, k, cells, ret_words, stride, 1, 1, norm);
	else if (plot->channels == 1 && plot->m == 2)
		NAMED(strip_norm)(plot, scratch, k, cells, ret_words, stride, 1, 2, norm);
	else if (plot->channels == 1 && plot->m == 3)
		NAMED(strip_norm)(plot, scratch, k, cells, ret_words, stride, 1, 3, norm);
	else if (plot->channels == 2 && plot->m == 1)
		NAMED(strip_norm)(plot, scratch, k, cells, ret_words, stride, 2, 1, norm);
	else if (plot->channels == 1)
		NAMED(strip_norm)(plot, scratch, k, cells, ret_words, stride, 1, plot->m, norm);
	else
		NAMED(strip_norm)
	(plot, scratch, k, cells, ret_words, stride, plot->channels, plot->m, norm);
}

static void NAMED(strip)(const struct obk_rqa_plot *plot, struct obk_rqa_scratch *scratch,
	uint64_t k, uint64_t cells, uint64_t *ret_words, uint64_t stride)
{
	if (plot->norm == OBK_RQA_NORM_L1)
		NAMED(strip_m)(plot, scratch, k, cells, ret_words, stride, OBK_RQA_NORM_L1);
	else if (plot->norm == OBK_RQA_NORM_L2)
		NAMED(strip_m)(plot, scratch, k, cells, ret_words, stride, OBK_RQA_NORM_L2);
	else
		NAMED(strip_m)(plot, scratch, k, cells, ret_words, stride, OBK_RQA_NORM_MAX);
}

/*
 * One vector of distances (i + p, j). The coordinates of y_j are broadcast to the SIMD lanes when
 * they are needed.
 */
static inline __attribute__((always_inline)) VECTOR NAMED(reach)(const struct obk_rqa_plot *plot,
	const REAL *point, uint64_t p, uint32_t channels, uint32_t m, int norm)
{
	VECTOR sum = NAMED(gap)(
		NAMED(load)((const REAL *)plot->x.channel[0] + p), NAMED(splat)(point[0]), norm);

	for (uint32_t lag = 0; lag < m; lag++)
		for (uint32_t c = lag == 0; c < channels; c++)
			sum = NAMED(joined)(sum,
				NAMED(gap)(NAMED(load)((const REAL *)plot->x.channel[c] + p +
						   lag * plot->tau),
					NAMED(splat)(point[lag * channels + c]), norm),
				norm);
	return sum;
}

static inline __attribute__((always_inline)) void NAMED(column_norm)(
	const struct obk_rqa_plot *plot, uint64_t j, uint64_t *ret_words, REAL *ret_distance,
	uint32_t channels, uint32_t m, int norm)
{
	REAL point[POINT_MAX];
	VECTOR bound = NAMED(splat)((REAL)plot->limit);
	uint64_t n = plot->x.n;

	for (uint32_t lag = 0; lag < m; lag++)
		for (uint32_t c = 0; c < channels; c++)
			point[lag * channels + c] =
				((const REAL *)plot->y.channel[c])[j + lag * plot->tau];
	if (ret_distance) {
		for (uint64_t p = 0; p < n; p += WIDTH) {
			VECTOR d = NAMED(reach)(plot, point, p, channels, m, norm);

			memcpy(ret_distance + p, &d, sizeof d);
		}
		return;
	}
	for (uint64_t p = 0; p < n; p += 64) {
		uint64_t bits = 0;

		for (unsigned v = 0; v < 64 / WIDTH; v++)
			bits |= (uint64_t)MASK_LE(
					NAMED(reach)(plot, point, p + v * WIDTH, channels, m, norm),
					bound)
				<< (v * WIDTH);
		ret_words[p / 64] = bits;
	}
}

static ALWAYS void NAMED(column_m)(const struct obk_rqa_plot *plot, uint64_t j, uint64_t *ret_words,
	REAL *ret_distance, int norm)
{
	if (plot->channels == 1 && plot->m == 1)
		NAMED(column_norm)(plot, j, ret_words, ret_distance, 1, 1, norm);
	else if (plot->channels == 1 && plot->m == 2)
		NAMED(column_norm)(plot, j, ret_words, ret_distance, 1, 2, norm);
	else if (plot->channels == 1 && plot->m == 3)
		NAMED(column_norm)(plot, j, ret_words, ret_distance, 1, 3, norm);
	else
		NAMED(column_norm)(plot, j, ret_words, ret_distance, plot->channels, plot->m, norm);
}

static void NAMED(column)(
	const struct obk_rqa_plot *plot, uint64_t j, uint64_t *ret_words, REAL *ret_distance)
{
	if (plot->norm == OBK_RQA_NORM_L1)
		NAMED(column_m)(plot, j, ret_words, ret_distance, OBK_RQA_NORM_L1);
	else if (plot->norm == OBK_RQA_NORM_L2)
		NAMED(column_m)(plot, j, ret_words, ret_distance, OBK_RQA_NORM_L2);
	else
		NAMED(column_m)(plot, j, ret_words, ret_distance, OBK_RQA_NORM_MAX);
}

/* Adds one lag: the differences of all channels in order. */
static ALWAYS void NAMED(step_norm)(const struct obk_rqa_plot *plot, uint64_t j, uint32_t lag,
	uint64_t n, REAL *distance, uint32_t channels, int norm)
{
	uint64_t ahead = lag * plot->tau;

	for (uint64_t p = 0; p < n; p += WIDTH) {
		VECTOR sum = NAMED(load)(distance + p);

		for (uint32_t c = 0; c < channels; c++)
			sum = NAMED(joined)(sum,
				NAMED(gap)(
					NAMED(load)((const REAL *)plot->x.channel[c] + p + ahead),
					NAMED(splat)(((const REAL *)plot->y.channel[c])[j + ahead]),
					norm),
				norm);
		memcpy(distance + p, &sum, sizeof sum);
	}
}

static ALWAYS void NAMED(step_channels)(const struct obk_rqa_plot *plot, uint64_t j, uint32_t lag,
	uint64_t n, REAL *distance, int norm)
{
	if (plot->channels == 1)
		NAMED(step_norm)(plot, j, lag, n, distance, 1, norm);
	else if (plot->channels == 2)
		NAMED(step_norm)(plot, j, lag, n, distance, 2, norm);
	else
		NAMED(step_norm)(plot, j, lag, n, distance, plot->channels, norm);
}

static void NAMED(column_step)(
	const struct obk_rqa_plot *plot, uint64_t j, uint32_t lag, uint64_t n, REAL *distance)
{
	if (plot->norm == OBK_RQA_NORM_L1)
		NAMED(step_channels)(plot, j, lag, n, distance, OBK_RQA_NORM_L1);
	else if (plot->norm == OBK_RQA_NORM_L2)
		NAMED(step_channels)(plot, j, lag, n, distance, OBK_RQA_NORM_L2);
	else
		NAMED(step_channels)(plot, j, lag, n, distance, OBK_RQA_NORM_MAX);
}

static void NAMED(compare)(const REAL *distance, uint64_t cells, REAL limit, uint64_t *ret_words)
{
	VECTOR bound = NAMED(splat)(limit);

	for (uint64_t p = 0; p < cells; p += 64) {
		uint64_t bits = 0;

		for (unsigned v = 0; v < 64 / WIDTH; v++)
			bits |= (uint64_t)MASK_LE(NAMED(load)(distance + p + v * WIDTH), bound)
				<< (v * WIDTH);
		ret_words[p / 64] = bits;
	}
	if (cells & 63)
		ret_words[cells / 64] &= ((uint64_t)1 << (cells & 63)) - 1;
}

static void NAMED(join)(REAL *into, const REAL *gap, uint64_t count, int norm)
{
	for (uint64_t p = 0; p < count; p += WIDTH) {
		VECTOR sum = NAMED(joined)(NAMED(load)(into + p), NAMED(load)(gap + p), norm);

		memcpy(into + p, &sum, sizeof sum);
	}
}

/*
 * The first level whose limit is not below d. The table leads to a level at most a step or two
 * before it.
 */
static inline uint32_t NAMED(level)(const struct obk_rqa_levels *levels, const REAL *limit, REAL d)
{
	uint32_t level =
		levels->look[(uint32_t)(((double)d - levels->look_base) * levels->look_scale)];

	while (d > limit[level])
		level++;
	return level;
}

/*
 * Counts lines at every level in one walk. A maximal run at some level is an interval whose largest
 * level is below the levels of both neighbours. A stack of descending levels yields each such
 * interval once: it exists from its own largest level up to the smaller of its neighbours' levels.
 * A cell above the last limit ends all runs. A stretch within the first limit is one step. Nothing
 * is stored per cell, and the cost of a level is only its share of the final sum.
 */
static void NAMED(levels)(const REAL *distance, uint64_t cells, const struct obk_rqa_levels *levels,
	const REAL *limit, struct obk_rqa_delta *delta)
{
	VECTOR first = NAMED(splat)(limit[0]), last = NAMED(splat)(limit[levels->count - 1]);
	uint32_t none = levels->count, depth = 0;
	uint32_t *stack_level = delta->stack_level;
	uint64_t *stack_start = delta->stack_start;

	stack_level[0] = none;
	stack_start[0] = 0;
	for (uint64_t base = 0; base < cells; base += 64) {
		uint64_t near = 0, within = 0, left = cells - base < 64 ? cells - base : 64, at = 0;

		for (unsigned v = 0; v < 64 / WIDTH; v++) {
			VECTOR d = NAMED(load)(distance + base + v * WIDTH);

			near |= (uint64_t)MASK_LE(d, last) << (v * WIDTH);
			within |= (uint64_t)MASK_LE(d, first) << (v * WIDTH);
		}
		if (left < 64)
			near &= ((uint64_t)1 << left) - 1;
		if (!near && !depth)
			continue;
		while (at < left) {
			uint64_t rest = near >> at;
			uint32_t level;
			uint64_t steps, start;

			if (!(rest & 1)) {
				if (depth)
					stack_pop(delta, &depth, none, base + at);
				if (!rest)
					break;
				at += (uint64_t)__builtin_ctzll(rest);
				continue;
			}
			if (within >> at & 1) {
				level = 0;
				steps = ~(within >> at) ? (uint64_t)__builtin_ctzll(~(within >> at))
							: 64;
				if (steps > left - at)
					steps = left - at;
			} else {
				level = NAMED(level)(levels, limit, distance[base + at]);
				steps = 1;
			}
			start = base + at;
			if (stack_level[depth] < level)
				start = stack_pop(delta, &depth, level, base + at);
			if (stack_level[depth] != level) {
				depth++;
				stack_level[depth] = level;
				stack_start[depth] = start;
			}
			at += steps;
		}
	}
	if (depth)
		stack_pop(delta, &depth, none, cells);
}
