/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Many combinations of many series in one launch; included by kernel.cu. A block processes one
 * (series, mode, tau) with up to OBK_RQA_GPU_SLOTS pairs of m and radius. One thread walks one
 * line, a diagonal or a column, 32 cells at a time; their distances stay in registers:
 *
 *     for each m of the block, ascending: add the differences of the new delays
 *         for each radius: 32 comparisons into a word; count its runs in the slot's histogram
 *
 * m + 1 continues from the distances of m, and one distance serves all radii. No work depends on
 * lmin, because the histograms contain every length. Differences are computed again for each tau;
 * that is two of about 3 * radii operations per cell. Open runs (one per slot and thread) and
 * counts of short lengths are in shared memory; counts of longer ones are in the slot's histogram
 * in device memory. The lines of a long series are divided among blocks. Finally rqa_pairs converts
 * the histograms to pairs of length and count, which is all that the host reads.
 */

template <typename T, int NORM, bool COLUMN, bool FIRST>
static __device__ __forceinline__ void cells_join(const T *x, unsigned i, unsigned j, T (&sum)[32])
{
	const T *along = x + i, *other = x + j;
	T fixed = __ldg(other);

#pragma unroll
	for (int s = 0; s < 32; s++) {
		T g = gap<NORM>(minus(__ldg(along + s), COLUMN ? fixed : __ldg(other + s)));

		sum[s] = FIRST ? g : join<NORM>(sum[s], g);
	}
}

template <typename T, bool COLUMN, bool FIRST>
static __device__ __forceinline__ void cells_join_norm(
	uint32_t norm, const T *x, unsigned i, unsigned j, T (&sum)[32])
{
	if (norm == L1)
		cells_join<T, L1, COLUMN, FIRST>(x, i, j, sum);
	else if (norm == L2)
		cells_join<T, L2, COLUMN, FIRST>(x, i, j, sum);
	else
		cells_join<T, LARGEST, COLUMN, FIRST>(x, i, j, sum);
}

/* 32 cells as bits; 1: recurrent. */
template <typename T>
static __device__ __forceinline__ unsigned cells_compare(const T (&sum)[32], T limit)
{
	unsigned word = 0;

#pragma unroll
	for (int s = 31; s >= 0; s--)
		word = sign_in(word, sum[s], limit);
	return ~word;
}

struct sweep_room {
	unsigned little[OBK_RQA_GPU_SLOTS * OBK_RQA_GPU_BINS];
	unsigned short open[OBK_RQA_GPU_SLOTS * OBK_RQA_GPU_BLOCK];
};

static __device__ __forceinline__ void sweep_run(
	const obk_rqa_gpu_item &it, sweep_room &room, unsigned slot, unsigned length)
{
	if (length < OBK_RQA_GPU_BINS)
		atomicAdd(&room.little[slot * OBK_RQA_GPU_BINS + length], 1u);
	else
		atomicAdd((unsigned *)it.hist + slot * (it.length + 1) + length, 1u);
}

/* Walks diagonal or column number `line` for all slots. */
template <typename T, bool COLUMN>
static __device__ void sweep_line(const obk_rqa_gpu_item &it, sweep_room &room, unsigned line)
{
	const uint32_t *ms = (const uint32_t *)it.m;
	const T *x = (const T *)it.planes;
	/*
	 * 32 bits are enough: a series has fewer than OBK_RQA_GROUP samples and at most
	 * OBK_RQA_MAX_CHANNELS planes.
	 */
	unsigned stride = it.length + OBK_RQA_GPU_PAD, n = it.length - (ms[0] - 1) * it.tau,
		 cells = COLUMN ? n : n - line;

	for (unsigned slot = 0; slot < it.m_count * it.limit_count; slot++)
		room.open[slot * OBK_RQA_GPU_BLOCK + threadIdx.x] = 0;
	for (unsigned i = 0; i < cells; i += 32) {
		T sum[32];
		uint32_t lag = 0;

		for (uint32_t v = 0; v < it.m_count; v++) {
			unsigned end = it.length - (ms[v] - 1) * it.tau, count, hidden,
				 slot = v * it.limit_count;

			if (COLUMN ? line >= end || i >= end : line + i >= end)
				break;
			end -= COLUMN ? 0 : line;
			for (; lag < ms[v]; lag++)
				for (uint32_t c = 0; c < it.channels; c++) {
					const T *from = x + c * stride + lag * it.tau;

					if (lag + c == 0)
						cells_join_norm<T, COLUMN, true>(it.norm, from, i,
							COLUMN ? line : line + i, sum);
					else
						cells_join_norm<T, COLUMN, false>(it.norm, from, i,
							COLUMN ? line : line + i, sum);
				}
			count = end - i < 32 ? end - i : 32;
			hidden = low_bits(count) & ~(COLUMN ? window(i, line, it.width) : 0);
			for (uint32_t r = 0; r < it.limit_count; r++, slot++) {
				unsigned open = room.open[slot * OBK_RQA_GPU_BLOCK + threadIdx.x];

				runs_walk(cells_compare(sum, (T)((const double *)it.limit)[r]) &
						hidden,
					count, open, [&](unsigned length, unsigned) {
						sweep_run(it, room, slot, length);
					});
				if (i + 32 >= end && open)
					sweep_run(it, room, slot, open);
				room.open[slot * OBK_RQA_GPU_BLOCK + threadIdx.x] =
					(unsigned short)open;
			}
		}
	}
}

/* Converts a histogram to pairs; executed by one warp. */
static __device__ void sweep_pairs(
	const obk_rqa_gpu_sweep &w, const obk_rqa_gpu_item &it, unsigned slot)
{
	const unsigned *hist = (const unsigned *)it.hist + (uint64_t)slot * (it.length + 1);
	obk_rqa_gpu_found *found = (obk_rqa_gpu_found *)w.found + it.slot + slot;
	unsigned lane = threadIdx.x & 31, total, first = 0;

	for (int pass = 0; pass < 2; pass++) {
		unsigned at = first;

		for (unsigned base = 0; base <= it.length; base += 32) {
			unsigned l = base + lane, count = l <= it.length ? hist[l] : 0;
			unsigned some = __ballot_sync(~0u, count != 0),
				 place = at + (unsigned)__popc((int)(some & low_bits(lane)));

			if (pass && count) {
				((unsigned *)w.pairs)[2 * (uint64_t)place] = l;
				((unsigned *)w.pairs)[2 * (uint64_t)place + 1] = count;
			}
			at += (unsigned)__popc((int)some);
		}
		if (pass)
			return;
		total = at;
		if (lane == 0)
			first = atomicAdd((unsigned *)w.cursor, total);
		first = __shfl_sync(~0u, first, 0);
		if (first > w.room || total > w.room - first) {
			if (lane == 0)
				*found = obk_rqa_gpu_found{ 0, ~0u };
			return;
		}
		if (lane == 0)
			*found = obk_rqa_gpu_found{ first, total };
	}
}

template <typename T, bool COLUMN>
static __device__ __forceinline__ void sweep(const obk_rqa_gpu_sweep &w)
{
	__shared__ sweep_room room;
	const obk_rqa_gpu_item it = ((const obk_rqa_gpu_item *)w.items)[blockIdx.x];
	unsigned slots = it.m_count * it.limit_count;

	little_clear(room.little, slots * OBK_RQA_GPU_BINS);
	for (unsigned line = it.line_first + threadIdx.x; line < it.line_last;
		line += OBK_RQA_GPU_BLOCK)
		sweep_line<T, COLUMN>(it, room, line);
	__syncthreads();
	for (unsigned at = threadIdx.x; at < slots * OBK_RQA_GPU_BINS; at += OBK_RQA_GPU_BLOCK)
		if (room.little[at])
			atomicAdd((unsigned *)it.hist +
					(uint64_t)(at / OBK_RQA_GPU_BINS) * (it.length + 1) +
					at % OBK_RQA_GPU_BINS,
				room.little[at]);
}

/* For the items that hold the first lines of a histogram. */
extern "C" __global__ void __launch_bounds__(OBK_RQA_GPU_BLOCK) rqa_pairs(obk_rqa_gpu_sweep w)
{
	const obk_rqa_gpu_item it = ((const obk_rqa_gpu_item *)w.items)[blockIdx.x];

	for (unsigned slot = threadIdx.x / 32; slot < it.m_count * it.limit_count;
		slot += OBK_RQA_GPU_BLOCK / 32)
		sweep_pairs(w, it, slot);
}

/*
 * blocks: minimum number per multiprocessor. It leaves each thread 65,536 / 128 / blocks registers,
 * as many as it needs.
 */
#define SWEEP(name, type, columns, blocks)                                      \
	extern "C" __global__ void __launch_bounds__(OBK_RQA_GPU_BLOCK, blocks) \
		rqa_sweep_##name(obk_rqa_gpu_sweep w)                           \
	{                                                                       \
		sweep<type, columns>(w);                                        \
	}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define DIAGONALS_F64_BLOCKS 3
#else
#define DIAGONALS_F64_BLOCKS 2
#endif
SWEEP(diagonals_f32, float, false, 6)
SWEEP(columns_f32, float, true, 6)
SWEEP(diagonals_f64, double, false, DIAGONALS_F64_BLOCKS)
SWEEP(columns_f64, double, true, 3)
