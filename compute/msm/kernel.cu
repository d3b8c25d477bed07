/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Multi-scalar multiplication on a GPU. Scalars are converted to signed digits. A counting sort
 * places the entries of one bucket side by side. Every thread sums up the same number of entries,
 * independently of where buckets begin and end, so neither a very large bucket nor many empty ones
 * make the work uneven.
 *
 *     entries   | 3 3 3 5 | 5 5 5 5 | 5 7 7 9 |      chunks of four
 *     sums        3: whole, 5: its first part          7, 9: whole
 *     heads                 5           5
 *
 * heads has the part of a bucket that a chunk found but that began before it. A tree adds these
 * parts to sums afterwards.
 */
#include "compute/curve/g1_four.cuh"
#include "compute/msm/digits.cuh"
#include "compute/msm/gpu_shape.h"

typedef obk_scalar scalar;

static __device__ __forceinline__ uint32_t thread_id()
{
	return blockIdx.x * blockDim.x + threadIdx.x;
}

/* x -= y if x >= y; returns whether it did. */
static __device__ __forceinline__ bool subtract_if_above(uint32_t (&x)[8], const uint32_t (&y)[8])
{
	uint32_t d[8];
	bool above;

	for (int i = 0; i < 8; i++)
		d[i] = x[i];
	above = !obk_words_sub(d, y);
	for (int i = 0; i < 8; i++)
		x[i] = above ? d[i] : x[i];
	return above;
}

static __device__ __forceinline__ scalar read_scalar(const scalar *in, uint32_t format)
{
	scalar k = *in, t;

	if (format == 1) { /* big-endian */
		for (int i = 0; i < 8; i++)
			t.l[i] = __byte_perm(k.l[7 - i], 0, 0x0123);
		return t;
	}
	if (format == 2) {
		obk_fr a, one = obk_fr::zero();

		for (int i = 0; i < 8; i++)
			a.l[i] = k.l[i];
		one.l[0] = 1;
		a = a * one;
		for (int i = 0; i < 8; i++)
			k.l[i] = a.l[i];
	}
	return k;
}

/*
 * Converts scalars to plain numbers; if the order is r, to at most 254 bits with a sign in bit 255.
 * bad: the lowest index of a scalar that is not below r.
 */
extern "C" __global__ void msm_prepare(obk_msm_shape shape, uint32_t total, const scalar *in,
	uint32_t format, uint32_t canonical, scalar *out, unsigned long long first,
	unsigned long long *bad)
{
	uint32_t i = thread_id(), r[8];
	scalar k;

	if (i >= total)
		return;
	k = read_scalar(in + i, format);
	obk_fr::modulus(r);
	if (shape.order_r || canonical) {
		scalar t = k;
		bool above = subtract_if_above(t.l, r);

		if (above && canonical)
			atomicMin(bad, first + i);
		if (shape.order_r) {
			if (above)
				subtract_if_above(t.l, r);
			k = t;
			obk_words_sub(r, k.l);           /* r - k */
			if (subtract_if_above(t.l, r)) { /* k >= r - k: use -(r - k) */
				for (int j = 0; j < 8; j++)
					k.l[j] = r[j];
				k.l[7] |= 0x80000000;
			}
		}
	}
	out[i] = k;
}

/* The bucket of scalar i's digit, or NONE. */
static __device__ __forceinline__ uint32_t key_of(
	const obk_msm_shape &shape, uint32_t i, uint32_t window, int32_t digit)
{
	uint32_t set = i / shape.count * shape.sets + window % shape.sets;

	return digit ? set * shape.buckets + (uint32_t)abs(digit) - 1 : OBK_MSM_NONE;
}

/*
 * rank[window][i]: the position of an entry among those of its bucket. All entries of a warp that
 * are in the bucket of its first entry are counted with one atomic operation, so that a bucket that
 * receives all entries does not serialise them. Processes the scalars first .. end - 1 of the
 * group's total.
 */
extern "C" __global__ void msm_count(obk_msm_shape shape, uint32_t first, uint32_t end,
	uint32_t total, const scalar *scalars, uint32_t *counts, uint32_t *ranks)
{
	uint32_t i = first + thread_id(), window = blockIdx.y, lane = threadIdx.x & 31,
		 key = OBK_MSM_NONE, lead, lead_key, same, place = 0, rank = OBK_MSM_NONE;

	if (i < end)
		key = key_of(shape, i, window,
			obk_scalar_digit_of(scalars + i, shape.order_r, window, shape.window));
	same = __ballot_sync(0xffffffff, key != OBK_MSM_NONE);
	lead = same ? __ffs(same) - 1 : 0;
	lead_key = __shfl_sync(0xffffffff, key, lead);
	same = __ballot_sync(0xffffffff, key == lead_key);
	if (lane == lead && lead_key != OBK_MSM_NONE)
		place = atomicAdd(&counts[lead_key], __popc(same));
	place = __shfl_sync(0xffffffff, place, lead);
	if (key != OBK_MSM_NONE)
		rank = key == lead_key ? place + __popc(same & ((1u << lane) - 1))
				       : atomicAdd(&counts[key], 1);
	if (i < end)
		ranks[(size_t)window * total + i] = rank;
}

static __device__ __forceinline__ uint32_t warp_prefix(uint32_t x)
{
	for (uint32_t d = 1; d < 32; d *= 2) {
		uint32_t y = __shfl_up_sync(0xffffffff, x, d);

		x += (threadIdx.x & 31) >= d ? y : 0;
	}
	return x;
}

/* The sum of x over the threads of the block below this one; the sum over all threads in `sum`. */
static __device__ uint32_t block_prefix(uint32_t x, uint32_t &sum)
{
	__shared__ uint32_t warps[OBK_MSM_SCAN_THREADS / 32];
	uint32_t inclusive = warp_prefix(x), warp = threadIdx.x / 32, before = 0;

	__syncthreads();
	if ((threadIdx.x & 31) == 31)
		warps[warp] = inclusive;
	__syncthreads();
	sum = 0;
	for (uint32_t w = 0; w < OBK_MSM_SCAN_THREADS / 32; w++) {
		before += w < warp ? warps[w] : 0;
		sum += warps[w];
	}
	return before + inclusive - x;
}

/* Converts counts to start positions within their tile; tiles[] receives the sums of tiles. */
extern "C" __global__ void __launch_bounds__(OBK_MSM_SCAN_THREADS)
	msm_scan(uint32_t buckets, uint32_t *counts, uint32_t *tiles)
{
	const uint32_t each = OBK_MSM_SCAN_TILE / OBK_MSM_SCAN_THREADS;
	uint32_t first = blockIdx.x * OBK_MSM_SCAN_TILE + threadIdx.x * each, own[each], sum = 0,
		 at;

	for (uint32_t j = 0; j < each; j++) {
		own[j] = first + j < buckets ? counts[first + j] : 0;
		sum += own[j];
	}
	at = block_prefix(sum, sum);
	for (uint32_t j = 0; j < each; j++) {
		if (first + j < buckets)
			counts[first + j] = at;
		at += own[j];
	}
	if (threadIdx.x == 0)
		tiles[blockIdx.x] = sum;
}

/* Converts the sums of tiles to start positions; the total is in tiles[n]. One block. */
extern "C" __global__ void __launch_bounds__(OBK_MSM_SCAN_THREADS)
	msm_scan_tiles(uint32_t n, uint32_t *tiles)
{
	uint32_t before = 0, sum;

	for (uint32_t base = 0; base < n; base += OBK_MSM_SCAN_THREADS) {
		uint32_t i = base + threadIdx.x, x = i < n ? tiles[i] : 0,
			 at = block_prefix(x, sum);

		if (i < n)
			tiles[i] = before + at;
		before += sum;
	}
	if (threadIdx.x == 0)
		tiles[n] = before;
}

/* offset: index of the first base; copy_stride: number of bases in a copy. */
extern "C" __global__ void msm_scatter(obk_msm_shape shape, uint32_t total, const scalar *scalars,
	const uint32_t *starts, const uint32_t *tiles, const uint32_t *ranks, uint32_t offset,
	uint32_t copy_stride, obk_msm_entry *entries)
{
	uint32_t i = thread_id(), window = blockIdx.y, rank, key;
	obk_msm_entry entry;
	int32_t digit;

	if (i >= total)
		return;
	rank = ranks[(size_t)window * total + i];
	if (rank == OBK_MSM_NONE)
		return;
	digit = obk_scalar_digit_of(scalars + i, shape.order_r, window, shape.window);
	key = key_of(shape, i, window, digit);
	entry.ref = (window / shape.sets * copy_stride + offset + i % shape.count) |
		(digit < 0 ? 0x80000000 : 0);
	entry.key = key;
	entries[starts[key] + tiles[key / OBK_MSM_SCAN_TILE] + rank] = entry;
}

static __device__ __forceinline__ obk_g1_affine read_base(const obk_g1_affine *bases, uint32_t ref)
{
	obk_g1_affine p = bases[ref & 0x7fffffff];

	if (ref >> 31)
		p.y = obk_fp::zero() - p.y;
	return p;
}

/*
 * One chunk per thread. sums[key] is written by the chunk in which a bucket begins. heads and
 * head_keys are written by every chunk: NONE if the chunk begins with a new bucket.
 */
extern "C" __global__ void __launch_bounds__(OBK_MSM_THREADS, OBK_MSM_RESIDENT) msm_accumulate(
	const obk_msm_entry *entries, const uint32_t *total, uint32_t chunks, uint32_t least,
	const obk_g1_affine *bases, obk_g1 *sums, obk_g1 *heads, uint32_t *head_keys)
{
	uint32_t chunk = thread_id(), n = *total, each = n / chunks + 1, first, end, key,
		 head = OBK_MSM_NONE;
	obk_msm_entry entry;
	obk_g1 sum = obk_g1_infinity();

	if (chunk >= chunks)
		return;
	each = each < least ? least : each;
	first = chunk < n / each + 1 ? chunk * each : n;
	end = n - first < each ? n : first + each;
	if (first >= end) {
		head_keys[chunk] = OBK_MSM_NONE;
		return;
	}
	entry = entries[first];
	key = entry.key;
	if (first && entries[first - 1].key == key)
		head = key;
	head_keys[chunk] = head;
	for (uint32_t at = first; at < end; at++) {
		uint32_t ref = entry.ref;

		if (entry.key != key) {
			if (head == key)
				heads[chunk] = sum;
			else
				sums[key] = sum;
			sum = obk_g1_infinity();
			key = entry.key;
		}
		if (at + 1 < end)
			entry = entries[at + 1];
		sum = obk_g1_add_affine(sum, read_base(bases, ref));
	}
	if (head == key)
		heads[chunk] = sum;
	else
		sums[key] = sum;
}

/*
 * The same with heads as entries, `fan` per thread: a part that begins here is added to the
 * bucket's sum, a part that began before becomes a head again.
 */
extern "C" __global__ void __launch_bounds__(OBK_MSM_THREADS) msm_join(uint32_t n, uint32_t fan,
	const obk_g1 *in, const uint32_t *in_keys, obk_g1 *sums, obk_g1 *heads, uint32_t *head_keys)
{
	uint32_t chunk = thread_id(), first = chunk * fan, end, at, key, head = OBK_MSM_NONE;

	if (first >= n)
		return;
	end = n - first < fan ? n : first + fan;
	if (first && in_keys[first - 1] == in_keys[first])
		head = in_keys[first];
	head_keys[chunk] = head;
	for (at = first; at < end;) {
		obk_g1 sum;

		key = in_keys[at];
		if (key == OBK_MSM_NONE) {
			at++;
			continue;
		}
		if (key == head)
			sum = in[at++];
		else
			sum = sums[key];
		for (; at < end && in_keys[at] == key; at++)
			sum = obk_g1_add(sum, in[at]);
		if (key == head)
			heads[chunk] = sum;
		else
			sums[key] = sum;
	}
}

/*
 * The same with four SIMD lanes per chunk (see g1_four.cuh), which execute the same steps: a chunk
 * that has nothing to add at a step adds infinity.
 */
static __device__ __forceinline__ void put_joined(
	uint32_t key, uint32_t head, uint32_t chunk, const obk_fp &sum, obk_g1 *sums, obk_g1 *heads)
{
	if (key != OBK_MSM_NONE)
		*obk_four_of(key == head ? heads + chunk : sums + key) = sum;
}

extern "C" __global__ void __launch_bounds__(OBK_MSM_THREADS)
	msm_join_four(uint32_t n, uint32_t fan, const obk_g1 *in, const uint32_t *in_keys,
		obk_g1 *sums, obk_g1 *heads, uint32_t *head_keys)
{
	uint32_t chunk = thread_id() / 4, first = min(chunk * fan, n),
		 end = n - first < fan ? n : first + fan, key = OBK_MSM_NONE, head = OBK_MSM_NONE;
	obk_fp sum = obk_fp::zero();

	if (first < end) {
		if (first && in_keys[first - 1] == in_keys[first])
			head = in_keys[first];
		if ((threadIdx.x & 3) == 0)
			head_keys[chunk] = head;
	}
	for (uint32_t step = 0; step < fan; step++) {
		uint32_t at = first + step, next = at < end ? in_keys[at] : OBK_MSM_NONE;
		obk_fp entry = obk_fp::zero();

		if (next != key) {
			put_joined(key, head, chunk, sum, sums, heads);
			key = next;
			sum = key == OBK_MSM_NONE || key == head ? obk_fp::zero()
								 : *obk_four_of(sums + key);
		}
		if (key != OBK_MSM_NONE)
			entry = *obk_four_of(in + at);
		sum = obk_four_add(sum, entry);
	}
	put_joined(key, head, chunk, sum, sums, heads);
}

/*
 * Computes sum (k + 1) B_k over buckets B_k by repeated halving. A set at level l has l + 1 rows of
 * 2 n points. Row l is R, the sums of 2^l buckets. Row j < l has sums over the k whose bit j is 1.
 * The next level has l + 2 rows of n points: rows j < l added in pairs; as row l the odd elements
 * of R; as row l + 1 R added in pairs.
 */
static __device__ __forceinline__ const obk_g1 *pair_at(
	const obk_g1 *in, uint32_t level, uint32_t n, uint32_t row, uint32_t item)
{
	return in + (size_t)(row > level ? level : row) * 2 * n + 2 * item;
}

static __device__ __forceinline__ obk_g1 fold_one(
	const obk_g1 *in, uint32_t level, uint32_t n, uint32_t row, uint32_t item)
{
	const obk_g1 *pair = pair_at(in, level, n, row, item);

	return row == level ? pair[1] : obk_g1_add(pair[0], pair[1]);
}

extern "C" __global__ void __launch_bounds__(OBK_MSM_THREADS)
	msm_fold(uint32_t level, uint32_t log_n, uint32_t sets, const obk_g1 *in, obk_g1 *out)
{
	uint32_t id = thread_id(), n = 1u << log_n, item = id & (n - 1),
		 row = (id >> log_n) % (level + 2), set = (id >> log_n) / (level + 2);

	if (set < sets)
		out[id] = fold_one(in + (size_t)set * (level + 1) * 2 * n, level, n, row, item);
}

/*
 * All remaining levels, one block per set; a and b hold (level + 1) 2^log_n points per set. The
 * last level writes to `out`, one point per row.
 */
extern "C" __global__ void __launch_bounds__(OBK_MSM_THREADS)
	msm_fold_rest(uint32_t level, uint32_t log_n, obk_g1 *a, obk_g1 *b, obk_g1 *out)
{
	size_t room = (size_t)(level + 1) << log_n;

	a += blockIdx.x * room;
	b += blockIdx.x * room;
	while (log_n > 0) {
		uint32_t n = 1u << --log_n;
		obk_g1 *to = log_n ? b : out + (size_t)blockIdx.x * (level + 2), *t;

		for (uint32_t id = threadIdx.x; id < (level + 2) * n; id += blockDim.x)
			to[id] = fold_one(a, level, n, id >> log_n, id & (n - 1));
		__syncthreads();
		level++;
		t = a;
		a = b;
		b = t;
	}
}

/*
 * Both with four SIMD lanes per point. there: whether such an item exists; if not, the SIMD lane
 * only takes part in the shuffles.
 */
static __device__ __forceinline__ void fold_four(const obk_g1 *in, uint32_t level, uint32_t n,
	uint32_t row, uint32_t item, bool there, obk_g1 *to)
{
	const obk_g1 *pair = pair_at(in, level, n, row, item);
	obk_fp a = obk_fp::zero(), b = a;

	if (there) {
		a = *obk_four_of(pair + 1);
		if (row != level)
			b = *obk_four_of(pair);
	}
	a = obk_four_add(b, a);
	if (there)
		*obk_four_of(to) = a;
}

extern "C" __global__ void __launch_bounds__(OBK_MSM_THREADS)
	msm_fold_four(uint32_t level, uint32_t log_n, uint32_t sets, const obk_g1 *in, obk_g1 *out)
{
	uint32_t id = thread_id() / 4, n = 1u << log_n, item = id & (n - 1),
		 row = (id >> log_n) % (level + 2), set = (id >> log_n) / (level + 2);

	fold_four(
		in + (size_t)set * (level + 1) * 2 * n, level, n, row, item, set < sets, out + id);
}

extern "C" __global__ void __launch_bounds__(OBK_MSM_REST_THREADS)
	msm_fold_rest_four(uint32_t level, uint32_t log_n, obk_g1 *a, obk_g1 *b, obk_g1 *out)
{
	size_t room = (size_t)(level + 1) << log_n;

	a += blockIdx.x * room;
	b += blockIdx.x * room;
	while (log_n > 0) {
		uint32_t n = 1u << --log_n, items = (level + 2) * n;
		obk_g1 *to = log_n ? b : out + (size_t)blockIdx.x * (level + 2), *t;

		for (uint32_t base = 0; base < items; base += blockDim.x / 4) {
			uint32_t id = base + threadIdx.x / 4;

			fold_four(a, level, n, id >> log_n, id & (n - 1), id < items, to + id);
		}
		__syncthreads();
		level++;
		t = a;
		a = b;
		b = t;
	}
}

/*
 * Adds, for every scalar and window, the multiple that its digit selects, `each` windows of a
 * scalar per thread. table[window][base][|digit| - 1]; shape.buckets multiples.
 */
extern "C" __global__ void __launch_bounds__(OBK_MSM_THREADS, OBK_MSM_RESIDENT)
	msm_multiples_sum(obk_msm_shape shape, uint32_t total, uint32_t each, const scalar *scalars,
		const obk_g1_affine *table, uint32_t offset, uint32_t copy_stride, obk_g1 *out)
{
	uint32_t id = thread_id(), parts = (shape.windows + each - 1) / each, i = id / parts,
		 window = id % parts * each;
	obk_g1 sum = obk_g1_infinity();

	if (i >= total)
		return;
	for (uint32_t end = min(window + each, shape.windows); window < end; window++) {
		int32_t digit =
			obk_scalar_digit_of(scalars + i, shape.order_r, window, shape.window);
		size_t at =
			((size_t)window * copy_stride + offset + i % shape.count) * shape.buckets;
		obk_g1_affine p;

		if (!digit)
			continue;
		p = table[at + (uint32_t)abs(digit) - 1];
		if (digit < 0)
			p.y = obk_fp::zero() - p.y;
		sum = obk_g1_add_affine(sum, p);
	}
	out[id] = sum;
}

/*
 * Reduces each row of n points (blockIdx.y): every OBK_MSM_TREE of them become one. In the first
 * level each thread adds its own point. From then on, with `four`, there are enough SIMD lanes for
 * four per point. A SIMD lane then reads and writes only one location of shared memory, so one
 * barrier per level is enough.
 */
extern "C" __global__ void __launch_bounds__(OBK_MSM_TREE / 2)
	msm_tree(uint32_t n, uint32_t four, const obk_g1 *in, obk_g1 *out)
{
	__shared__ obk_g1 shared[OBK_MSM_TREE / 2];
	obk_fp *coordinates = (obk_fp *)shared;
	uint32_t t = threadIdx.x, at = blockIdx.x * OBK_MSM_TREE + t, width = OBK_MSM_TREE / 2;
	obk_g1 sum = obk_g1_infinity();

	in += (size_t)blockIdx.y * n;
	if (at < n)
		sum = in[at];
	for (; width > (four ? OBK_MSM_TREE / 4 : 0); width /= 2) {
		bool first = width == OBK_MSM_TREE / 2;
		/* a single addition in the code, for both kinds of memory */
		const obk_g1 *other = first ? in + at + width : shared + t + width;

		if (first ? at + width < n : t < width)
			sum = obk_g1_add(sum, *other);
		__syncthreads();
		shared[t] = sum;
		__syncthreads();
	}
	for (; width > 0; width /= 2) {
		/* whole warps */
		for (uint32_t base = t & ~31u; base < 4 * width; base += OBK_MSM_TREE / 2) {
			uint32_t own = base + (t & 31);
			obk_fp a = obk_fp::zero(), b = a;

			if (own < 4 * width) {
				a = coordinates[own];
				b = coordinates[own + 4 * width];
			}
			a = obk_four_add(a, b);
			if (own < 4 * width)
				coordinates[own] = a;
		}
		__syncthreads();
	}
	if (t < 4)
		((obk_fp *)(out + (size_t)blockIdx.y * gridDim.x + blockIdx.x))[t] = coordinates[t];
}
