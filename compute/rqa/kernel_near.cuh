/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * An approximate test for the cells of a tile with the Euclidean norm; included by
 * kernel_tiles.cuh. limit - |x|^2 - |y|^2 + 2 x y takes one fused operation per cell, delay and
 * channel. It is computed in single precision, whatever the type of the samples, from samples
 * shifted to be centred at 0. A cell whose result is within `slack` of zero is computed again
 * exactly; gpu_near.c derives the bound.
 */

/*
 * `cells`: mask of the cells of 8 rows of 4 diagonals from (i, j) on that must be computed exactly;
 * cell (row r, diagonal d) is bit r + 8 d. Returns those of them that are not recurrent.
 */
template <typename T>
static __device__ __forceinline__ unsigned exact_cells(
	const obk_rqa_gpu_plot &plot, unsigned i, unsigned j, unsigned cells)
{
	unsigned far = 0;

#pragma unroll 1
	for (; cells; cells &= cells - 1) {
		unsigned cell = (unsigned)__ffs((int)cells) - 1, row = cell % ROWS;
		const T *x = (const T *)plot.x + i + row,
			*y = (const T *)plot.y + j + row + cell / ROWS;
		T sum = 0;

#pragma unroll 1
		for (uint32_t c = 0, l = 0; l < plot.m;) {
			sum = join<L2>(
				sum, gap<L2>(minus(x[c * plot.x_stride], y[c * plot.y_stride])));
			if (++c == plot.channels) {
				c = 0;
				l++;
				x += plot.tau;
				y += plot.tau;
			}
		}
		far |= (sign_in(0u, sum, (T)plot.limit) & 1) << cell;
	}
	return far;
}

/* Plane 0: limit - |x|^2 and |y|^2. Then one plane per (delay, channel), doubled for x. */
static __device__ void near_load(tile_room<float> &room, const obk_rqa_gpu_plot &plot, unsigned i0,
	unsigned k0, uint32_t from, uint32_t count)
{
	unsigned t = threadIdx.x;
	uint32_t channel = from ? (from - 1) % plot.channels : 0;
	const float *x = (const float *)plot.near + i0 + t, *y;
	float *xs = &room.xs[0][t], *ys = &room.ys[0][t];
	int64_t back = (int64_t)plot.tau - (int64_t)(plot.channels * plot.near_stride);

	if (from == 0) {
		const float *lengths = x + plot.channels * plot.near_stride;

		xs[0] = (float)plot.limit - *lengths;
		ys[0] = lengths[k0];
		ys[TILE] = lengths[k0 + TILE];
		xs += TILE;
		ys += 2 * TILE;
		count--;
	} else {
		x += channel * plot.near_stride + (from - 1) / plot.channels * plot.tau;
	}
	y = x + k0;
#pragma unroll 1
	for (; count; count--, xs += TILE, ys += 2 * TILE) {
		*xs = *x + *x;
		ys[0] = y[0];
		ys[TILE] = y[TILE];
		x += plot.near_stride;
		y += plot.near_stride;
		if (++channel == plot.channels) {
			channel = 0;
			x += back;
			y += back;
		}
	}
}

/* As block_join, for the planes that near_load has loaded. */
template <bool FIRST>
static __device__ __forceinline__ void near_join(
	const float *x, const float *y, float (&sum)[ROWS][ACROSS])
{
	float xs[ROWS], ys[ROWS + ACROSS];

#pragma unroll
	for (int at = 0; at < ROWS; at += 4)
		four(x + at, xs + at);
#pragma unroll
	for (int at = 0; at < ROWS + ACROSS; at += 4)
		four(y + at, ys + at);
#pragma unroll
	for (int r = 0; r < ROWS; r++)
#pragma unroll
		for (int d = 0; d < ACROSS; d++)
			sum[r][d] = FIRST ? __fsub_rn(xs[r], ys[r + d])
					  : __fmaf_rn(xs[r], ys[r + d], sum[r][d]);
}

/* The approximate test first, then exactly where necessary. */
template <typename T>
static __device__ __forceinline__ void tile_near(
	tile_room<float> &room, const obk_rqa_gpu_args &a, uint32_t p, unsigned i0, unsigned k0)
{
	const obk_rqa_gpu_plot &plot = a.plot[p];

	tile_words(
		room, a, p, i0, k0, plot.m * plot.channels + 1,
		[&](uint32_t from, uint32_t count) { near_load(room, plot, i0, k0, from, count); },
		[&](bool first, uint32_t count, const float *x, const float *y,
			float(&sum)[ROWS][ACROSS]) {
			if (first) {
				near_join<true>(x, y, sum);
				x += TILE;
				y += 2 * TILE;
				count--;
			}
#pragma unroll 1
			for (; count; count--, x += TILE, y += 2 * TILE)
				near_join<false>(x, y, sum);
		},
		[&](unsigned i, unsigned k, const float(&sum)[ROWS][ACROSS],
			unsigned(&word)[ACROSS]) {
			float least = fabsf(sum[0][0]);

#pragma unroll
			for (int r = 0; r < ROWS; r++)
#pragma unroll
				for (int d = 0; d < ACROSS; d++)
					least = fminf(least, fabsf(sum[r][d]));
#pragma unroll
			for (int d = 0; d < ACROSS; d++)
#pragma unroll
				for (int r = ROWS - 1; r >= 0; r--)
					word[d] = __funnelshift_l(
						__float_as_uint(sum[r][d]), word[d], 1);
			if (least <= plot.slack) {
				unsigned sure = 0, far;

#pragma unroll
				for (int d = ACROSS - 1; d >= 0; d--)
#pragma unroll
					for (int r = ROWS - 1; r >= 0; r--)
						sure = sign_in(sure, fabsf(sum[r][d]), plot.slack);
				far = exact_cells<T>(plot, i, i + k, ~sure);
#pragma unroll
				for (int d = 0; d < ACROSS; d++)
					word[d] = (word[d] & (sure >> d * ROWS | ~0u << ROWS)) |
						(far >> d * ROWS & ((1u << ROWS) - 1));
			}
		});
}
