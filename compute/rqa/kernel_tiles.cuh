/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Counts diagonal and vertical lines of a symmetric matrix from its upper triangle alone; included
 * by kernel.cu. A column of the matrix consists of its part above the LOI, followed by the row with
 * the same number. The triangle is cut into tiles, 256 rows of 256 neighbouring diagonals:
 *
 *     k = j - i   0      256     512     band:  several rows of tiles
 *     i    0      +-------+-------+--    strip: up to OBK_RQA_GPU_STRIP tiles side by side,
 *        256      +-------+-------+--           processed by one block
 *
 * 1. The bits of a tile go to shared memory; a word has 32 cells of one diagonal. A thread computes
 *    the words of four neighbouring diagonals, 8 rows at a time. The computation is exact, as on
 *    the CPU, with three operations per cell, delay and channel, or for the Euclidean norm
 *    approximate at first (kernel_near.cuh).
 * 2. Lines inside the tile: diagonals from the words as they are; rows after a transposition of 32
 *    words; columns, which are skewed here, after the words of neighbouring diagonals have also
 *    been rotated by their SIMD lane's number. Runs that touch no edge of the tile (for rows, of
 *    the strip) are counted at once. For each line a piece is kept: the lengths of the runs at its
 *    beginning and at its end. If neither the words of a warp nor its open runs have a set bit,
 *    nothing else is done.
 * 3. rqa_join combines the pieces of a band. A diagonal and a column continue from the previous
 *    band. A row begins with the open run of its column and is complete within the band.
 *
 * Positions are 32-bit numbers, because a series has at most OBK_RQA_MAX_LENGTH samples. A piece is
 * a 32-bit number too: head | tail << 16, or PIECE_WHOLE | length for a piece that is a single run.
 * Their order:
 *
 *     diagonals  [row of tiles][k]
 *     columns    [row of tiles][tile][j - i0 - k0]
 *     rows       [row of tiles][strip][i - i0]
 */

#define PIECE_WHOLE (0xffffu << 16)
#define TILE        OBK_RQA_GPU_TILE
#define TILE_SLABS  (TILE / OBK_RQA_GPU_SLAB)

/* (delay, channel) planes of a tile that are in shared memory at the same time. */
template <typename T> struct tile_planes {
	enum { COUNT = sizeof(T) == 4 ? 8 : 4 };
};

/* Kinds of lines whose short runs are counted in separate bins. */
enum { LINES, LOI, UNWANTED, VERTICALS, BINS };

template <typename T> struct tile_room {
	__align__(16) T xs[tile_planes<T>::COUNT][TILE], ys[tile_planes<T>::COUNT][2 * TILE];
	__align__(16) unsigned words[TILE_SLABS][TILE];
	unsigned little[BINS][OBK_RQA_GPU_SHORT];
	unsigned rows[TILE]; /* state between two tiles of a strip: head | open << 16 */
};

/*
 * A line through one or several tiles, piece by piece: the number of cells so far and the runs at
 * both ends.
 */
struct piece {
	unsigned cells, head, open;
};

static __device__ __forceinline__ unsigned piece_pack(const piece &p)
{
	return p.open == p.cells ? PIECE_WHOLE | p.cells : p.head | p.open << 16;
}

/*
 * Extends the line by `count` cells, 0 to 32; the bits above them are 0. Only a run that comes in
 * may be long (LONG: longer than a tile), and only the run from the first cell is the head. What
 * remains between is short, so one addition finds each run.
 */
template <bool LONG>
static __device__ __forceinline__ void piece_walk(
	piece &p, unsigned bits, unsigned count, unsigned *little, uint64_t hist)
{
	unsigned full = low_bits(count), came, length;

	if (bits == full) {
		p.open += count;
		p.cells += count;
		return;
	}
	came = bits & ~(bits + 1);
	bits ^= came;
	length = p.open + (unsigned)__popc((int)came);
	if (p.open == p.cells)
		p.head = length;
	else if (length && LONG)
		run_add(little, hist, length);
	else if (length)
		atomicAdd(&little[length], 1u);
	p.cells += count;
	p.open = (unsigned)__clz((int)~(bits << (32 - count)));
	bits &= full >> p.open;
	while (bits) {
		unsigned carried = bits + (bits & -bits);

		atomicAdd(&little[__popc((int)(bits & ~carried))], 1u);
		bits &= carried;
	}
}

/* ---- the bits ---- */

template <typename T>
static __device__ void tile_load(tile_room<T> &room, const obk_rqa_gpu_plot &plot, unsigned i0,
	unsigned k0, uint32_t from, uint32_t count)
{
	unsigned t = threadIdx.x;
	uint32_t channel = from % plot.channels;
	uint64_t lag = from / plot.channels * plot.tau;
	const T *x = (const T *)plot.x + i0 + t + lag + channel * plot.x_stride,
		*y = (const T *)plot.y + i0 + k0 + t + lag + channel * plot.y_stride;

#pragma unroll 1
	for (uint32_t p = 0; p < count; p++) {
		room.xs[p][t] = *x;
		room.ys[p][t] = y[0];
		room.ys[p][TILE + t] = y[TILE];
		x += plot.x_stride;
		y += plot.y_stride;
		if (++channel == plot.channels) {
			channel = 0;
			x += plot.tau - plot.channels * plot.x_stride;
			y += plot.tau - plot.channels * plot.y_stride;
		}
	}
}

/*
 * A thread's words from inverted signs. Bits are set only for cells that exist and for vectors
 * without gaps.
 */
template <typename T>
static __device__ __forceinline__ void words_put(tile_room<T> &room, const obk_rqa_gpu_args &a,
	uint32_t p, unsigned i, unsigned k, unsigned diagonal, unsigned (&word)[ACROSS],
	bool inside)
{
	uint4 *to = (uint4 *)&room.words[threadIdx.x / 32][diagonal];

#pragma unroll
	for (int d = 0; d < ACROSS; d++)
		word[d] = ~word[d];
	if (!inside) {
#pragma unroll
		for (int d = 0; d < ACROSS; d++) {
			word[d] &= low_bits((int)((unsigned)a.n1 - i - k) - d);
			if (a.plot[p].x_valid)
				word[d] &= valid_bits(a.plot[p].x_valid, (int64_t)i, a.n1) &
					valid_bits(a.plot[p].y_valid, (int64_t)(i + k + d), a.n2);
		}
	}
	if (p) {
		uint4 have = *to;

		*to = make_uint4(
			have.x & word[0], have.y & word[1], have.z & word[2], have.w & word[3]);
	} else {
		*to = make_uint4(word[0], word[1], word[2], word[3]);
	}
}

/*
 * The words of one plot; ANDed with the existing words if p is not 0. load(from, count): loads
 * these planes into shared memory. join(first, count, x, y, sum): adds them to 8 rows of 4
 * diagonals. decide(i, k, sum, word): shifts in the signs of the sums, from the last row to the
 * first.
 */
template <typename T, typename L, typename J, typename D>
static __device__ __forceinline__ void tile_words(tile_room<T> &room, const obk_rqa_gpu_args &a,
	uint32_t p, unsigned i0, unsigned k0, uint32_t planes, L load, J join, D decide)
{
	unsigned slab = threadIdx.x / 32, lane = threadIdx.x & 31, i = i0 + slab * OBK_RQA_GPU_SLAB;
	uint32_t chunk = tile_planes<T>::COUNT;
	bool fits = planes <= chunk,
	     inside = i0 + k0 + 2 * TILE <= (unsigned)a.n1 && !a.plot[p].x_valid;

	if (fits) {
		__syncthreads();
		load(0, planes);
		__syncthreads();
	}
#pragma unroll 1
	for (unsigned half = 0; half < 2; half++) {
		unsigned diagonal = half * (TILE / 2) + lane * ACROSS,
			 word[ACROSS] = { ~0u, ~0u, ~0u, ~0u }, k = k0 + diagonal;
		bool some = i + k0 + half * (TILE / 2) < (unsigned)a.n1;
		int row = OBK_RQA_GPU_SLAB - ROWS;
		const T *x = &room.xs[0][slab * OBK_RQA_GPU_SLAB],
			*y = &room.ys[0][slab * OBK_RQA_GPU_SLAB + diagonal];
		T sum[ROWS][ACROSS];

#pragma unroll 1
		for (; fits && some && row >= 0; row -= ROWS) {
			join(true, planes, x + row, y + row, sum);
			decide(i + (unsigned)row, k, sum, word);
		}
#pragma unroll 1
		for (; !fits && row >= 0; row -= ROWS) {
#pragma unroll 1
			for (uint32_t from = 0; from < planes; from += chunk) {
				uint32_t count = planes - from < chunk ? planes - from : chunk;

				__syncthreads();
				load(from, count);
				__syncthreads();
				if (some)
					join(from == 0, count, x + row, y + row, sum);
			}
			if (some)
				decide(i + (unsigned)row, k, sum, word);
		}
		words_put(room, a, p, i, k, diagonal, word, inside);
	}
}

template <typename T, int NORM>
static __device__ __forceinline__ void planes_join(
	bool first, uint32_t count, const T *x, const T *y, T (&sum)[ROWS][ACROSS])
{
	if (first) {
		block_join<NORM, true>(x, y, sum);
		x += TILE;
		y += 2 * TILE;
		count--;
	}
#pragma unroll 1
	for (; count; count--, x += TILE, y += 2 * TILE)
		block_join<NORM, false>(x, y, sum);
}

/* The exact computation. */
template <typename T>
static __device__ __forceinline__ void tile_bits(
	tile_room<T> &room, const obk_rqa_gpu_args &a, uint32_t p, unsigned i0, unsigned k0)
{
	const obk_rqa_gpu_plot &plot = a.plot[p];

	tile_words(
		room, a, p, i0, k0, plot.m * plot.channels,
		[&](uint32_t from, uint32_t count) { tile_load(room, plot, i0, k0, from, count); },
		[&](bool first, uint32_t count, const T *x, const T *y, T(&sum)[ROWS][ACROSS]) {
			if (plot.norm == L1)
				planes_join<T, L1>(first, count, x, y, sum);
			else if (plot.norm == L2)
				planes_join<T, L2>(first, count, x, y, sum);
			else
				planes_join<T, LARGEST>(first, count, x, y, sum);
		},
		[&](unsigned, unsigned, const T(&sum)[ROWS][ACROSS], unsigned(&word)[ACROSS]) {
#pragma unroll
			for (int d = 0; d < ACROSS; d++)
#pragma unroll
				for (int r = ROWS - 1; r >= 0; r--)
					word[d] = sign_in(word[d], sum[r][d], (T)plot.limit);
		});
}

#include "compute/rqa/kernel_near.cuh"

/* ---- the lines ---- */

/* Thread t counts diagonal k0 + t. Returns its recurrent cells, including those of the LOI. */
template <typename T>
static __device__ __forceinline__ unsigned tile_diagonal(
	const obk_rqa_gpu_args &a, tile_room<T> &room, unsigned i0, unsigned k, uint64_t to)
{
	unsigned n = (unsigned)a.n1, left = i0 + k < n ? n - i0 - k : 0,
		 cells = left < TILE ? left : TILE, points = 0,
		 *little = room.little[k == 0         ? LOI
				 : k < a.theiler_diag ? UNWANTED
						      : LINES];
	piece p = { 0, 0, 0 };

	for (unsigned slab = 0; p.cells < cells; slab++) {
		unsigned word = room.words[slab][threadIdx.x], rest = cells - p.cells;

		points += (unsigned)__popc((int)word);
		if (rest < 32)
			piece_walk<false>(p, word, rest, little, 0);
		else if (word | p.open)
			piece_walk<false>(p, word, 32, little, 0);
		else
			p.cells += 32;
	}
	((unsigned *)to)[k] = piece_pack(p);
	if (a.profile && points)
		atomicAdd((counter *)a.profile + k, (counter)points);
	return points;
}

/*
 * Thread t processes 256 more cells of row i0 + t, which had `cells` cells before. Only this thread
 * uses the state.
 */
static __device__ __forceinline__ unsigned tile_row(const obk_rqa_gpu_args &a,
	const transposer &transpose, const unsigned (*words)[TILE], unsigned cells, unsigned *state,
	unsigned *little)
{
	const unsigned *at = words[threadIdx.x / 32] + (threadIdx.x & 31);
	piece p = { cells, *state & 0xffff, *state >> 16 };

#pragma unroll 1
	for (const unsigned *end = at + TILE; at < end; at += 32) {
		unsigned word = *at;

		if (__any_sync(~0u, (word | p.open) != 0))
			piece_walk<true>(p, transpose(word), 32, little, a.vertical);
		else
			p.cells += 32;
	}
	*state = p.head | p.open << 16;
	return piece_pack(p);
}

/*
 * Processes 32 columns in a slab: the cells of the words from `words` on in the rows up to the SIMD
 * lane's number, and of the 32 words to the left in the rows below. FIRST, LAST: only those on the
 * left, or only `count` of the others.
 */
template <bool FIRST, bool LAST>
static __device__ __forceinline__ void columns_walk(const transposer &transpose,
	const unsigned *words, piece &p, unsigned count, unsigned *little)
{
	unsigned lane = threadIdx.x & 31, right = FIRST ? 0 : words[lane],
		 left = LAST ? 0 : words[(int)lane - 32];

	if (__any_sync(~0u, (left | right | p.open) != 0)) {
		/* Bit b of SIMD lane l: column b, row b - l modulo 32. */
		unsigned word = __brev(transpose(__funnelshift_l(left, right, lane)));

		word = __funnelshift_l(word, word, lane + 1);
		if (FIRST)
			piece_walk<false>(p, word >> lane >> 1, 31 - lane, little, 0);
		else if (LAST)
			piece_walk<false>(p, word & low_bits(count), count, little, 0);
		else
			piece_walk<false>(p, word, 32, little, 0);
	} else {
		p.cells += FIRST ? 31 - lane : LAST ? count : 32;
	}
}

/*
 * Warp w processes the columns i0 + k0 + 32 g + lane, for g = w and then g = w + 8. In slab s they
 * are at words 32 (g - s). The first ones end at the diagonal k0, or before it if that is the LOI,
 * which belongs to the rows. The others begin below the diagonal k0 + 255.
 */
static __device__ __forceinline__ void tile_columns(const transposer &transpose,
	const unsigned (*words)[TILE], bool loi, unsigned *little, unsigned *to)
{
	unsigned warp = threadIdx.x / 32, lane = threadIdx.x & 31, slab;
	const unsigned *at = words[0] + warp * 32;
	piece p = { 0, 0, 0 };

#pragma unroll 1
	for (slab = 0; slab < warp; slab++, at += TILE - 32)
		columns_walk<false, false>(transpose, at, p, 32, little);
	columns_walk<false, true>(transpose, at, p, lane + !loi, little);
	to[threadIdx.x] = piece_pack(p);
	p.cells = p.head = p.open = 0;
	at += TILE;
	columns_walk<true, false>(transpose, at, p, 32, little);
	at += TILE - 32;
#pragma unroll 1
	for (slab++; slab < TILE_SLABS; slab++, at += TILE - 32)
		columns_walk<false, false>(transpose, at, p, 32, little);
	to[TILE + threadIdx.x] = piece_pack(p);
}

/* The contents of shared memory, and how bits are computed. */
template <typename T, bool NEAR> struct tile_kind {
	typedef T type;

	static __device__ __forceinline__ void bits(
		tile_room<T> &room, const obk_rqa_gpu_args &a, uint32_t p, unsigned i0, unsigned k0)
	{
		tile_bits<T>(room, a, p, i0, k0);
	}
};

template <typename T> struct tile_kind<T, true> {
	typedef float type;

	static __device__ __forceinline__ void bits(tile_room<float> &room,
		const obk_rqa_gpu_args &a, uint32_t p, unsigned i0, unsigned k0)
	{
		tile_near<T>(room, a, p, i0, k0);
	}
};

/* Positions of the pieces of row of tiles number `row` in a band. */
struct pieces {
	uint64_t diagonals, columns, rows;
};

static __device__ __forceinline__ pieces pieces_of(const obk_rqa_gpu_args &a, uint64_t row)
{
	uint64_t at = a.words + row * a.stride * 4, tiles = a.tiles;

	return pieces{ at, at + tiles * TILE * 4, at + tiles * 3 * TILE * 4 };
}

template <typename T, bool NEAR>
static __device__ __forceinline__ void tiles(const obk_rqa_gpu_args &a, uint64_t first)
{
	__shared__ tile_room<typename tile_kind<T, NEAR>::type> room;
	unsigned i0 = ((unsigned)first + blockIdx.y) * TILE,
		 tiles = ((unsigned)a.n1 - i0 + TILE - 1) / TILE, tile = blockIdx.x * a.strip,
		 end = tile + a.strip < tiles ? tile + a.strip : tiles;
	unsigned points = 0;

	if (tile >= tiles)
		return;
	for (unsigned l = threadIdx.x; l < BINS * OBK_RQA_GPU_SHORT; l += TILE)
		room.little[0][l] = 0;
	room.rows[threadIdx.x] = 0;
	for (; tile < end; tile++) {
		unsigned k0 = tile * TILE, k = k0 + threadIdx.x, own;

		__syncthreads();
		for (uint32_t p = 0; p < a.plots; p++)
			tile_kind<T, NEAR>::bits(room, a, p, i0, k0);
		__syncthreads();
		own = tile_diagonal(a, room, i0, k, pieces_of(a, blockIdx.y).diagonals);
		if (k == 0 && own)
			atomicAdd((counter *)a.sums + OBK_RQA_GPU_LOI, (counter)own);
		else if (k >= a.theiler_rr)
			points += own;
		if (!a.vertical)
			continue;
		if (k0 < a.theiler_vert) {
			for (unsigned slab = 0; slab < TILE_SLABS && k < a.theiler_vert; slab++)
				room.words[slab][threadIdx.x] = 0;
			__syncthreads();
		}

		transposer transpose;

		own = tile_row(a, transpose, room.words, (tile - blockIdx.x * a.strip) * TILE,
			&room.rows[threadIdx.x], room.little[VERTICALS]);
		if (tile + 1 == end)
			((unsigned *)pieces_of(a, blockIdx.y)
					.rows)[blockIdx.x * TILE + threadIdx.x] = own;
		tile_columns(transpose, room.words, tile == 0, room.little[VERTICALS],
			(unsigned *)pieces_of(a, blockIdx.y).columns + (uint64_t)tile * 2 * TILE);
	}
	for (int lanes = 16; lanes; lanes >>= 1)
		points += __shfl_xor_sync(~0u, points, lanes);
	if (points && (threadIdx.x & 31) == 0)
		atomicAdd((counter *)a.sums + OBK_RQA_GPU_POINTS, (counter)points);
	__syncthreads();
	little_flush(room.little[LINES], a.kinds[0]);
	little_flush(room.little[LOI], a.loi);
	little_flush(room.little[VERTICALS], a.vertical);
}

/*
 * blocks: minimum number per multiprocessor. It leaves each thread 65,536 / 256 / blocks registers,
 * as many as it needs without spilling.
 */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define NEAR_BLOCKS 3
#else
#define NEAR_BLOCKS 2
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define DOUBLE_BLOCKS 1
#else
#define DOUBLE_BLOCKS 2
#endif
#define TILES(name, type, near, blocks)                              \
	extern "C" __global__ void __launch_bounds__(TILE, blocks)   \
		rqa_tiles_##name(obk_rqa_gpu_args a, uint64_t first) \
	{                                                            \
		tiles<type, near>(a, first);                         \
	}

TILES(f32, float, false, 2)
TILES(f64, double, false, DOUBLE_BLOCKS)
TILES(near_f32, float, true, NEAR_BLOCKS)
TILES(near_f64, double, true, 2)

/* ---- pieces ---- */

/*
 * Extends a line by one piece. open: on entry the run that reaches the piece, on return the run
 * that reaches its end. ended(length): called for each run that ends.
 */
template <typename F>
static __device__ __forceinline__ void piece_join(unsigned piece, unsigned &open, F ended)
{
	if (piece >= PIECE_WHOLE) {
		open += piece & 0xffff;
		return;
	}
	if (open + (piece & 0xffff))
		ended(open + (piece & 0xffff));
	open = piece >> 16;
}

/* Extends diagonal k through the rows of tiles first .. last - 1. */
static __device__ __forceinline__ void diagonal_join(
	const obk_rqa_gpu_args &a, uint64_t k, uint64_t first, uint64_t last, unsigned *little)
{
	uint64_t cells = a.n1 - k, end = (cells + TILE - 1) / TILE;
	unsigned *state = (unsigned *)a.diagonal_state + k, open = *state;
	bool lines = k == 0 || k >= a.theiler_diag;
	uint64_t inner = k ? a.kinds[0] : a.loi, border = k ? a.kinds[1] : a.loi_border;

	for (uint64_t row = first; row < last && row < end; row++) {
		unsigned piece = ((const unsigned *)pieces_of(a, row - first).diagonals)[k];

		piece_join(piece, open, [&](unsigned length) {
			if (!lines)
				return;
			if (length == row * TILE + (piece & 0xffff))
				bump(border, length);
			else if (k)
				run_add(little, inner, length);
			else
				bump(inner, length);
		});
	}
	if (last >= end && open && lines)
		bump(k && open == cells ? a.kinds[2] : border, open);
	*state = open;
}

/* Extends column j above the LOI, and the row with the same number if the band contains it. */
static __device__ __forceinline__ void column_join(
	const obk_rqa_gpu_args &a, uint64_t j, uint64_t first, uint64_t last, unsigned *little)
{
	unsigned *state = (unsigned *)a.column_state + j, open = *state;
	uint64_t own = j / TILE, strip = a.strip * TILE, count;
	const unsigned *rows;
	auto ended = [&](unsigned length) { run_add(little, a.vertical, length); };

	for (uint64_t row = first; row < last && row <= own; row++) {
		/* First the rows of tiles, then the part nearer to the LOI. */
		const unsigned *columns = (const unsigned *)pieces_of(a, row - first).columns;
		uint64_t off = j - row * TILE, tile = off / TILE, at = off % TILE;

		piece_join(columns[tile * 2 * TILE + at], open, ended);
		if (tile && at + 1 < TILE)
			piece_join(columns[(tile - 1) * 2 * TILE + TILE + at], open, ended);
	}
	if (own >= last) {
		*state = open;
		return;
	}
	rows = (const unsigned *)pieces_of(a, own - first).rows + j % TILE;
	count = (a.n1 - own * TILE + strip - 1) / strip;
	/* No cell follows the last cell of the last column, so its run is ended here. */
	if (j == a.n1 - 1 && rows[0])
		((counter *)a.sums)[OBK_RQA_GPU_OPEN] = open + (rows[0] & 0xffff);
#pragma unroll 4
	for (uint64_t s = 0; s < count; s++)
		piece_join(rows[s * TILE], open, ended);
	if (open)
		ended(open);
}

extern "C" __global__ void __launch_bounds__(OBK_RQA_GPU_BLOCK, 8)
	rqa_join(obk_rqa_gpu_args a, uint64_t first, uint64_t last)
{
	__shared__ unsigned little[OBK_RQA_GPU_SHORT];
	uint64_t line = (uint64_t)blockIdx.x * OBK_RQA_GPU_BLOCK + threadIdx.x, i0 = first * TILE;

	little_clear(little, OBK_RQA_GPU_SHORT);
	if (blockIdx.y == 0 && line < a.n1 - i0)
		diagonal_join(a, line, first, last, little);
	else if (blockIdx.y && line < a.n1 - i0)
		column_join(a, i0 + line, first, last, little);
	__syncthreads();
	little_flush(little, blockIdx.y ? a.vertical : a.kinds[0]);
}
