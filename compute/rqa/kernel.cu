/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Counts lines of a recurrence matrix that is never stored as a whole.
 *
 * One matrix (rqa_bits_*, rqa_diagonals, rqa_columns) is processed in bands of rows. A band
 * consists of slabs of 32 rows. A slab is stored skewed, so that a word has 32 consecutive cells of
 * one diagonal:
 *
 *     word q of the slab with the rows i0 .. i0 + 31, 0 <= q < n2 + 32:
 *     bit s is the cell (i0 + s, q - 32 + s)
 *
 * 1. Bits: a block computes 128 words of a slab, a thread 8 rows of 4 neighbouring diagonals. Their
 *    32 distances stay in registers while the samples of each (delay, channel) are read from shared
 *    memory: 8 + 11 numbers for 32 cells. A difference, its square and a sum are three operations
 *    per cell. The comparison is two: limit - distance, and a shift of its sign into the word.
 *    Operations are not contracted and sums are formed in index order, so that ties are decided as
 *    on the CPU. A joint plot is a second pass that is ANDed with the first.
 * 2. Diagonals: a thread walks one diagonal through the band, a word at a time; the ends of runs
 *    are found by counting zeros. Runs that are open at the end of the band are kept
 *    (diagonal_state) and continue in the next one.
 * 3. Columns: a warp processes 32 of them. The words of 32 neighbouring diagonals are rotated by
 *    their SIMD lane's number and transposed in five shuffles; then SIMD lane l has 32 cells of
 *    column l.
 *
 * So the duration of a launch is limited by the band, whatever the size of the matrix. Memory grows
 * with n1 + n2. Between two bands a run can be stopped, or saved and resumed.
 *
 * kernel_tiles.cuh handles symmetric matrices if only diagonal and vertical lines are wanted,
 * kernel_sweep.cuh many combinations of short series.
 */
#include "compute/rqa/gpu_args.h"

typedef unsigned long long counter;

enum norm { L1, L2, LARGEST };

static __device__ __forceinline__ void bump(uint64_t at, uint64_t index)
{
	atomicAdd((counter *)at + index, 1ull);
}

static __device__ __forceinline__ float minus(float a, float b)
{
	return __fsub_rn(a, b);
}

static __device__ __forceinline__ double minus(double a, double b)
{
	return __dsub_rn(a, b);
}

template <int NORM> static __device__ __forceinline__ float gap(float d)
{
	return NORM == L2 ? __fmul_rn(d, d) : fabsf(d);
}

template <int NORM> static __device__ __forceinline__ double gap(double d)
{
	return NORM == L2 ? __dmul_rn(d, d) : fabs(d);
}

template <int NORM> static __device__ __forceinline__ float join(float sum, float g)
{
	return NORM == LARGEST ? fmaxf(sum, g) : __fadd_rn(sum, g);
}

template <int NORM> static __device__ __forceinline__ double join(double sum, double g)
{
	return NORM == LARGEST ? fmax(sum, g) : __dadd_rn(sum, g);
}

/* Shifts in a bit from below: 0 for a distance up to the limit, else 1. */
static __device__ __forceinline__ unsigned sign_in(unsigned word, float distance, float limit)
{
	return __funnelshift_l(__float_as_uint(__fsub_rn(limit, distance)), word, 1);
}

static __device__ __forceinline__ unsigned sign_in(unsigned word, double distance, double limit)
{
	return __funnelshift_l((unsigned)__double2hiint(__dsub_rn(limit, distance)), word, 1);
}

/* Copies four consecutive numbers, starting at a multiple of four. */
static __device__ __forceinline__ void four(const float *from, float *to)
{
	float4 v = *(const float4 *)from;

	to[0] = v.x;
	to[1] = v.y;
	to[2] = v.z;
	to[3] = v.w;
}

static __device__ __forceinline__ void four(const double *from, double *to)
{
	double2 low = *(const double2 *)from, high = *(const double2 *)(from + 2);

	to[0] = low.x;
	to[1] = low.y;
	to[2] = high.x;
	to[3] = high.y;
}

/* The low `count` bits, 0 to 32. */
template <typename N> static __device__ __forceinline__ unsigned low_bits(N count)
{
	return count >= 32 ? ~0u : count < 1 ? 0u : (1u << count) - 1;
}

/* ---- the bits ---- */

#define ROWS   8 /* rows per thread */
#define ACROSS 4 /* neighbouring diagonals per thread */
#define PLANES 8 /* (delay, channel) planes that are in shared memory at the same time */
#define Y_SPAN (OBK_RQA_GPU_BLOCK + OBK_RQA_GPU_SLAB)

/* Bits of vectors without gaps, from position `at` on, which may be negative. */
static __device__ unsigned valid_bits(uint64_t bits, int64_t at, uint64_t n)
{
	const uint64_t *words = (const uint64_t *)bits;
	uint64_t from = at < 0 ? 0 : (uint64_t)at, word = from >> 6, both;

	if (from >= n || at <= -32)
		return 0;
	both = words[word] >> (from & 63);
	if ((from & 63) && word + 1 <= n / 64)
		both |= words[word + 1] << (64 - (from & 63));
	return at < 0 ? (unsigned)both << -at : (unsigned)both;
}

/* Adds one (delay, channel) for a thread. */
template <int NORM, bool FIRST, typename T>
static __device__ __forceinline__ void block_join(const T *x, const T *y, T (&sum)[ROWS][ACROSS])
{
	T xs[ROWS], ys[ROWS + ACROSS];

#pragma unroll
	for (int at = 0; at < ROWS; at += 4)
		four(x + at, xs + at);
#pragma unroll
	for (int at = 0; at < ROWS + ACROSS; at += 4)
		four(y + at, ys + at);
#pragma unroll
	for (int r = 0; r < ROWS; r++)
#pragma unroll
		for (int d = 0; d < ACROSS; d++) {
			T g = gap<NORM>(minus(xs[r], ys[r + d]));

			sum[r][d] = FIRST ? g : join<NORM>(sum[r][d], g);
		}
}

template <typename T, int NORM>
static __device__ __forceinline__ void bits_make(
	const obk_rqa_gpu_args &a, uint32_t p, uint64_t first, uint64_t slab)
{
	__shared__ __align__(16) T xs[PLANES][OBK_RQA_GPU_SLAB], ys[PLANES][Y_SPAN];
	__shared__ unsigned part[OBK_RQA_GPU_SLAB / ROWS][OBK_RQA_GPU_BLOCK / ACROSS];
	const obk_rqa_gpu_plot &plot = a.plot[p];
	unsigned t = threadIdx.x, lane = t & 31, rows = t / 32 * ROWS, quad = 0, word = 0;
	uint64_t i0 = slab * OBK_RQA_GPU_SLAB, q0 = (uint64_t)blockIdx.x * OBK_RQA_GPU_BLOCK,
		 to = (slab - first) * a.stride + q0 + t;
	int64_t j0 = (int64_t)q0 - 32, start, stop;
	uint32_t planes = plot.m * plot.channels, channel = 0;
	uint64_t lag = 0, x_at = 0, y_at = 0;
	/*
	 * The zeros before and behind the samples may be read: OBK_RQA_GPU_BEFORE and
	 * OBK_RQA_GPU_BEHIND.
	 */
	const T *x = (const T *)plot.x + i0 + lane, *y = (const T *)plot.y + (j0 + (int64_t)t);
	T limit = (T)plot.limit, sum[ROWS][ACROSS];

	for (uint32_t from = 0; from < planes; from += PLANES) {
		uint32_t count = planes - from < PLANES ? planes - from : PLANES;

		__syncthreads();
		for (uint32_t k = 0; k < count; k++) {
			ys[k][t] = y[y_at];
			if (t < OBK_RQA_GPU_SLAB)
				ys[k][OBK_RQA_GPU_BLOCK + t] = y[y_at + OBK_RQA_GPU_BLOCK];
			else if (t < 2 * OBK_RQA_GPU_SLAB)
				xs[k][lane] = x[x_at];
			x_at += plot.x_stride;
			y_at += plot.y_stride;
			if (++channel == plot.channels) {
				channel = 0;
				lag += plot.tau;
				x_at = y_at = lag;
			}
		}
		__syncthreads();
		if (from == 0)
			block_join<NORM, true>(&xs[0][rows], &ys[0][lane * ACROSS + rows], sum);
		for (uint32_t k = from == 0; k < count; k++)
			block_join<NORM, false>(&xs[k][rows], &ys[k][lane * ACROSS + rows], sum);
	}
#pragma unroll
	for (int d = ACROSS - 1; d >= 0; d--)
#pragma unroll
		for (int r = ROWS - 1; r >= 0; r--)
			quad = sign_in(quad, sum[r][d], limit);
	part[t / 32][lane] = ~quad;
	__syncthreads();
#pragma unroll
	for (unsigned w = 0; w < OBK_RQA_GPU_SLAB / ROWS; w++)
		word |= (part[w][t / ACROSS] >> (t % ACROSS * ROWS) & ((1u << ROWS) - 1))
			<< w * ROWS;
	if (q0 + t >= a.stride)
		return;
	j0 += t;
	start = j0 < 0 ? -j0 : 0;
	stop = (int64_t)(a.n1 - i0) < (int64_t)a.n2 - j0 ? (int64_t)(a.n1 - i0)
							 : (int64_t)a.n2 - j0;
	word &= low_bits(stop) & ~low_bits(start);
	if (plot.x_valid)
		word &= valid_bits(plot.x_valid, (int64_t)i0, a.n1);
	if (plot.y_valid)
		word &= valid_bits(plot.y_valid, j0, a.n2);
	((unsigned *)a.words)[to] = p ? ((unsigned *)a.words)[to] & word : word;
}

#define BITS(name, type, norm)                                                  \
	extern "C" __global__ void __launch_bounds__(OBK_RQA_GPU_BLOCK)         \
		rqa_bits_##name(obk_rqa_gpu_args a, uint32_t p, uint64_t first) \
	{                                                                       \
		bits_make<type, norm>(a, p, first, first + blockIdx.y);         \
	}

BITS(l1_f32, float, L1)
BITS(l2_f32, float, L2)
BITS(max_f32, float, LARGEST)
BITS(l1_f64, double, L1)
BITS(l2_f64, double, L2)
BITS(max_f64, double, LARGEST)

/* ---- runs ---- */

/*
 * Extends a line by `count` cells, 1 to 32; the bits above them are 0. open: on entry the run that
 * reaches the first of them, on return the run that reaches the last. ended(length, at): called for
 * a run of that length that ended before cell number `at`.
 */
template <typename F>
static __device__ __forceinline__ void runs_walk(
	unsigned bits, unsigned count, unsigned &open, F ended)
{
	unsigned at;

	if (bits == low_bits(count)) {
		open += count;
		return;
	}
	at = __ffs((int)~bits) - 1;
	open += at;
	if (open)
		ended(open, at);
	open = 0;
	bits >>= at;
	while (bits) {
		unsigned gone = __ffs((int)bits) - 1, length;

		bits >>= gone;
		length = __ffs((int)~bits) - 1;
		at += gone + length;
		if (at == count)
			open = length;
		else
			ended(length, at);
		bits >>= length;
	}
}

/* Counts of a block's short runs: cleared first, added to the histogram at the end. */
static __device__ void little_clear(unsigned *little, unsigned count)
{
	for (unsigned l = threadIdx.x; l < count; l += blockDim.x)
		little[l] = 0;
	__syncthreads();
}

static __device__ void little_flush(const unsigned *little, uint64_t hist)
{
	for (unsigned l = threadIdx.x; hist && l < OBK_RQA_GPU_SHORT; l += blockDim.x)
		if (little[l])
			atomicAdd((counter *)hist + l, (counter)little[l]);
}

static __device__ __forceinline__ void run_add(unsigned *little, uint64_t hist, uint64_t length)
{
	if (length < OBK_RQA_GPU_SHORT)
		atomicAdd(&little[length], 1u);
	else
		bump(hist, length);
}

/*
 * Walks the slabs `first` to `last` of diagonal d; the band begins with `first`. Returns its
 * recurrent cells, including those of the LOI.
 */
static __device__ unsigned diagonal(
	const obk_rqa_gpu_args &a, uint64_t d, uint64_t first, uint64_t last, unsigned *little)
{
	int64_t k = a.symmetric ? (int64_t)d : (int64_t)d - (int64_t)(a.n1 - 1);
	uint64_t off = (uint64_t)(k < 0 ? -k : k), begin = k < 0 ? off : 0,
		 end = (int64_t)a.n1 < (int64_t)a.n2 - k ? a.n1 : (uint64_t)((int64_t)a.n2 - k);
	uint64_t from = first > begin / 32 ? first : begin / 32,
		 to = last < (end + 31) / 32 ? last : (end + 31) / 32;
	bool loi = a.symmetric && d == 0, lines = loi || off >= a.theiler_diag;
	unsigned *state = (unsigned *)a.diagonal_state + d, open, points = 0, inside = 0;

	if (from >= to || (a.triangle == 1 && k < 0) || (a.triangle == 2 && k > 0 && !a.symmetric))
		return 0;
	open = *state;
	for (uint64_t slab = from; slab < to; slab++) {
		uint64_t i0 = slab * 32, at0 = begin > i0 ? begin : i0;
		unsigned word = ((const unsigned *)a.words)[(slab - first) * a.stride +
					(uint64_t)(k + (int64_t)i0 + 32)] >>
			(at0 - i0);
		auto ended = [&](unsigned length, unsigned at) {
			bool border = at0 + at - length == begin;

			if (loi)
				bump(border ? a.loi_border : a.loi, length);
			else if (lines && border)
				bump(a.kinds[1], length);
			else if (lines)
				run_add(little, a.kinds[0], length);
		};

		points += (unsigned)__popc((int)word);
		if (a.square && off <= a.square_length)
			inside += (unsigned)__popc((int)(word &
				low_bits((int64_t)(a.square_length + 1 - off) -
					(int64_t)(at0 - begin))));
		runs_walk(word, (unsigned)((end < i0 + 32 ? end : i0 + 32) - at0), open, ended);
	}
	if (to == (end + 31) / 32 && open && lines)
		bump(loi ? a.loi_border : open == end - begin ? a.kinds[2] : a.kinds[1], open);
	*state = open;
	if (a.profile)
		((counter *)a.profile)[d] += points;
	if (a.square && off <= a.square_length)
		atomicAdd((counter *)a.square + off, (counter)inside);
	return loi || off >= a.theiler_rr ? points : 0;
}

extern "C" __global__ void __launch_bounds__(OBK_RQA_GPU_BLOCK, 8)
	rqa_diagonals(obk_rqa_gpu_args a, uint64_t first, uint64_t last, uint64_t from, uint64_t to)
{
	__shared__ unsigned little[OBK_RQA_GPU_SHORT];
	__shared__ counter points;
	uint64_t d = from + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
	unsigned own = 0;

	if (threadIdx.x == 0)
		points = 0;
	little_clear(little, OBK_RQA_GPU_SHORT);
	if (d < to)
		own = diagonal(a, d, first, last, little);
	if (own && a.symmetric && d == 0)
		atomicAdd((counter *)a.sums + OBK_RQA_GPU_LOI, (counter)own);
	else if (own)
		atomicAdd(&points, (counter)own);
	__syncthreads();
	little_flush(little, a.kinds[0]);
	if (threadIdx.x == 0 && points)
		atomicAdd((counter *)a.sums + OBK_RQA_GPU_POINTS, points);
}

/* ---- the columns ---- */

/*
 * Transposes 32 words of a warp: bit b of SIMD lane l becomes bit l of SIMD lane b. There are five
 * steps, with lanes 16, 8, 4, 2 and 1 apart. For each step: the mask of the bits that a lane keeps
 * of its own word, and the rotation of the other lane's word, whose remaining bits replace the
 * others.
 */
struct transposer {
	unsigned keep[5], turn[5];

	__device__ __forceinline__ transposer()
	{
		unsigned lane = threadIdx.x & 31, low = 0xffff;

#pragma unroll
		for (int s = 0; s < 5; s++, low ^= low << (16 >> s)) {
			keep[s] = lane & 16 >> s ? ~low : low;
			turn[s] = s && lane & 16 >> s ? 32 - (16 >> s) : 16 >> s;
			/* Prevents the compiler from computing this again in each step. */
			asm volatile("" : "+r"(keep[s]), "+r"(turn[s]));
		}
	}

	__device__ __forceinline__ unsigned operator()(unsigned word) const
	{
#pragma unroll
		for (int s = 0; s < 5; s++) {
			unsigned other = __shfl_xor_sync(~0u, word, 16 >> s);

			word = (word & keep[s]) |
				(__funnelshift_l(other, other, turn[s]) & ~keep[s]);
		}
		return word;
	}
};

/*
 * Starts, ends and distances of the lines of one column: the contents of the planes of
 * column_state.
 */
struct column {
	unsigned open, white, start, end, first, count, points;
};

static __device__ __forceinline__ void line_ended(const obk_rqa_gpu_args &a, struct column &c,
	unsigned length, unsigned stop, unsigned *little)
{
	unsigned at = stop - length;

	if (a.vertical)
		run_add(little, a.vertical, length);
	if (!a.start)
		return;
	if (c.count) {
		run_add(little + 2 * OBK_RQA_GPU_SHORT, a.start, at - c.start);
		run_add(little + 3 * OBK_RQA_GPU_SHORT, a.middle,
			at - c.end + (c.end - c.start) / 2 + (stop - at) / 2);
	} else {
		c.first = at;
	}
	c.count++;
	c.points += length;
	c.start = at;
	c.end = stop;
}

/*
 * Mask of the cells of rows i0 .. whose distance from the diagonal cell of column j is less than
 * `width`.
 */
static __device__ __forceinline__ unsigned window(uint64_t i0, uint64_t j, uint64_t width)
{
	return width ? low_bits((int64_t)(j + width) - (int64_t)i0) &
			~low_bits((int64_t)(j - width + 1) - (int64_t)i0)
		     : 0;
}

static __device__ __forceinline__ void column_walk(const obk_rqa_gpu_args &a, struct column &c,
	unsigned word, uint64_t i0, uint64_t j, unsigned *little)
{
	unsigned count = a.n1 - i0 < 32 ? (unsigned)(a.n1 - i0) : 32;

	if (a.white)
		runs_walk(~(word & ~window(i0, j, a.theiler_white)) & low_bits(count), count,
			c.white, [&](unsigned length, unsigned at) {
				if (i0 + at == length)
					bump(a.white_border, length);
				else
					run_add(little + OBK_RQA_GPU_SHORT, a.white, length);
			});
	runs_walk(word & ~window(i0, j, a.theiler_vert), count, c.open,
		[&](unsigned length, unsigned at) {
			line_ended(a, c, length, (unsigned)i0 + at, little);
		});
}

/* Counts what is open at the end of a column. */
static __device__ void column_end(
	const obk_rqa_gpu_args &a, struct column &c, uint64_t j, unsigned *little)
{
	if (c.open) {
		line_ended(a, c, c.open, (unsigned)a.n1, little);
		if (j == a.n2 - 1)
			((counter *)a.sums)[OBK_RQA_GPU_OPEN] = c.open;
	}
	if (c.white && a.white)
		bump(a.white_border, c.white);
	if (a.start && c.count) {
		atomicAdd((counter *)a.sums + OBK_RQA_GPU_T1_SUM, (counter)(c.end - 1 - c.first));
		atomicAdd((counter *)a.sums + OBK_RQA_GPU_T1_COUNT, (counter)(c.points - 1));
	}
}

static __device__ void column_load(const obk_rqa_gpu_args &a, struct column &c, uint64_t j)
{
	const unsigned *state = (const unsigned *)a.column_state + j;

	c.open = state[OBK_RQA_GPU_COLUMN_OPEN * a.n2];
	c.white = a.white ? state[OBK_RQA_GPU_COLUMN_WHITE * a.n2] : 0;
	if (a.start) {
		c.start = state[OBK_RQA_GPU_COLUMN_START * a.n2];
		c.end = state[OBK_RQA_GPU_COLUMN_END * a.n2];
		c.first = state[OBK_RQA_GPU_COLUMN_FIRST * a.n2];
		c.count = state[OBK_RQA_GPU_COLUMN_COUNT * a.n2];
		c.points = state[OBK_RQA_GPU_COLUMN_POINTS * a.n2];
	}
}

static __device__ void column_keep(const obk_rqa_gpu_args &a, const struct column &c, uint64_t j)
{
	unsigned *state = (unsigned *)a.column_state + j;

	state[OBK_RQA_GPU_COLUMN_OPEN * a.n2] = c.open;
	if (a.white)
		state[OBK_RQA_GPU_COLUMN_WHITE * a.n2] = c.white;
	if (a.start) {
		state[OBK_RQA_GPU_COLUMN_START * a.n2] = c.start;
		state[OBK_RQA_GPU_COLUMN_END * a.n2] = c.end;
		state[OBK_RQA_GPU_COLUMN_FIRST * a.n2] = c.first;
		state[OBK_RQA_GPU_COLUMN_COUNT * a.n2] = c.count;
		state[OBK_RQA_GPU_COLUMN_POINTS * a.n2] = c.points;
	}
}

extern "C" __global__ void __launch_bounds__(OBK_RQA_GPU_BLOCK)
	rqa_columns(obk_rqa_gpu_args a, uint64_t first, uint64_t last)
{
	__shared__ unsigned little[4 * OBK_RQA_GPU_SHORT];
	uint64_t j = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
	unsigned lane = threadIdx.x & 31;
	struct column c = { 0, 0, 0, 0, 0, 0, 0 };
	transposer transpose;

	little_clear(little, 4 * OBK_RQA_GPU_SHORT);
	if (j < a.n2)
		column_load(a, c, j);
	for (uint64_t slab = first; slab < last; slab++) {
		const unsigned *words = (const unsigned *)a.words + (slab - first) * a.stride;
		/*
		 * For SIMD lane l: the diagonal that has column j - l in the slab's first row, and
		 * the one 32 to the left of it.
		 */
		unsigned right = j + 32 < a.stride ? words[j + 32] : 0,
			 left = j < a.stride ? words[j] : 0, word;

		/* Bit b of SIMD lane l is now the cell of column b in row b - l modulo 32. */
		word = transpose(__funnelshift_l(left, right, lane));
		word = __brev(word);
		word = __funnelshift_l(word, word, lane + 1);
		if (j < a.n2)
			column_walk(a, c, word, slab * 32, j, little);
	}
	if (j < a.n2 && last * 32 >= a.n1)
		column_end(a, c, j, little);
	else if (j < a.n2)
		column_keep(a, c, j);
	__syncthreads();
	little_flush(little, a.vertical);
	little_flush(little + OBK_RQA_GPU_SHORT, a.white);
	little_flush(little + 2 * OBK_RQA_GPU_SHORT, a.start);
	little_flush(little + 3 * OBK_RQA_GPU_SHORT, a.middle);
}

#include "compute/rqa/kernel_tiles.cuh"

#include "compute/rqa/kernel_sweep.cuh"
