/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Lines of a recurrence matrix that is never stored: a thread walks one diagonal or one column. Neighbouring threads read one side of a cell together and the
 * other side next to each other. Coordinates are summed as on the CPU, never contracted, so the counters are the same.
 */
#include "kernels/rqa/gpu_args.h"

typedef unsigned long long counter;

static __device__ __forceinline__ void bump(uint64_t at, uint64_t index)
{
	atomicAdd((counter *)at + index, 1ull);
}

static __device__ __forceinline__ bool valid(uint64_t bits, uint64_t at)
{
	return !bits || (((const uint64_t *)bits)[at >> 6] >> (at & 63) & 1);
}

/* norm: 0 L1, 1 L2, 2 max. */
static __device__ __forceinline__ bool near_f32(const obk_rqa_gpu_plot &plot, uint64_t i, uint64_t j)
{
	float sum = 0;

	for (uint32_t lag = 0; lag < plot.m; lag++)
		for (uint32_t c = 0; c < plot.channels; c++) {
			float d = __fsub_rn(((const float *)plot.x)[c * plot.x_stride + i + lag * plot.tau],
				((const float *)plot.y)[c * plot.y_stride + j + lag * plot.tau]);
			float g = plot.norm == 1 ? __fmul_rn(d, d) : fabsf(d);

			sum = lag + c == 0 ? g : plot.norm == 2 ? (sum > g ? sum : g) : __fadd_rn(sum, g);
		}
	return sum <= (float)plot.limit;
}

static __device__ __forceinline__ bool near_f64(const obk_rqa_gpu_plot &plot, uint64_t i, uint64_t j)
{
	double sum = 0;

	for (uint32_t lag = 0; lag < plot.m; lag++)
		for (uint32_t c = 0; c < plot.channels; c++) {
			double d = __dsub_rn(((const double *)plot.x)[c * plot.x_stride + i + lag * plot.tau],
				((const double *)plot.y)[c * plot.y_stride + j + lag * plot.tau]);
			double g = plot.norm == 1 ? __dmul_rn(d, d) : fabs(d);

			sum = lag + c == 0 ? g : plot.norm == 2 ? (sum > g ? sum : g) : __dadd_rn(sum, g);
		}
	return sum <= plot.limit;
}

static __device__ __forceinline__ bool cell(const obk_rqa_gpu_args &a, uint64_t i, uint64_t j)
{
	for (uint32_t p = 0; p < a.plots; p++) {
		const obk_rqa_gpu_plot &plot = a.plot[p];

		if (!valid(plot.x_valid, i) || !valid(plot.y_valid, j) || !(plot.f64 ? near_f64(plot, i, j) : near_f32(plot, i, j)))
			return false;
	}
	return true;
}

/* Short runs of a block; zeroed before, added to the histogram after. */
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

static __device__ void diagonal(const obk_rqa_gpu_args &a, uint64_t d, unsigned *little)
{
	uint64_t i = 0, j = d, off = d, cells, points = 0, inside = 0, open = 0;
	bool loi = a.symmetric && d == 0, lines, touches = true;

	if (!a.symmetric) {
		i = d < a.n1 - 1 ? a.n1 - 1 - d : 0;
		j = d < a.n1 - 1 ? 0 : d - (a.n1 - 1);
		off = i + j;
		if ((a.triangle == 1 && i) || (a.triangle == 2 && j))
			return;
	}
	cells = a.n1 - i < a.n2 - j ? a.n1 - i : a.n2 - j;
	lines = loi || off >= a.theiler_diag;
	for (uint64_t p = 0; p <= cells; p++) {
		bool near = p < cells && cell(a, i + p, j + p);

		if (near) {
			points++;
			open++;
			inside += p + off <= a.square_length;
			continue;
		}
		if (open && lines) {
			if (p == cells && touches)
				bump(loi ? a.loi_border : a.kinds[2], open);
			else if (p == cells || touches)
				bump(loi ? a.loi_border : a.kinds[1], open);
			else if (loi)
				bump(a.loi, open);
			else
				run_add(little, a.kinds[0], open);
		}
		open = 0;
		touches = false;
	}
	if (loi)
		atomicAdd((counter *)a.sums + OBK_RQA_GPU_LOI, (counter)points);
	else if (off >= a.theiler_rr)
		atomicAdd((counter *)a.sums + OBK_RQA_GPU_POINTS, (counter)points);
	if (a.profile)
		atomicAdd((counter *)a.profile + d, (counter)points);
	if (a.square && off <= a.square_length)
		atomicAdd((counter *)a.square + off, (counter)inside);
}

extern "C" __global__ void __launch_bounds__(OBK_RQA_GPU_BLOCK) rqa_diagonals(obk_rqa_gpu_args a, uint64_t first, uint64_t last)
{
	__shared__ unsigned little[OBK_RQA_GPU_SHORT];
	uint64_t d = first + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

	little_clear(little, OBK_RQA_GPU_SHORT);
	if (d < last)
		diagonal(a, d, little);
	__syncthreads();
	little_flush(little, a.kinds[0]);
}

/* Starts, ends and distances of the lines of one column. */
struct lines {
	uint64_t start, end, first, count, points, open;
};

static __device__ __forceinline__ void line_ends(const obk_rqa_gpu_args &a, struct lines &l, uint64_t at, uint64_t stop, unsigned *little)
{
	if (a.vertical)
		run_add(little, a.vertical, stop - at);
	if (a.start) {
		if (l.count) {
			run_add(little + 2 * OBK_RQA_GPU_SHORT, a.start, at - l.start);
			run_add(little + 3 * OBK_RQA_GPU_SHORT, a.middle, at - l.end + (l.end - l.start) / 2 + (stop - at) / 2);
		} else {
			l.first = at;
		}
	}
	l.count++;
	l.points += stop - at;
	l.start = at;
	l.end = stop;
}

static __device__ void column(const obk_rqa_gpu_args &a, uint64_t j, unsigned *little)
{
	struct lines l = { 0, 0, 0, 0, 0, 0 };
	uint64_t white = 0;
	bool border = true;

	for (uint64_t i = 0; i <= a.n1; i++) {
		uint64_t off = i > j ? i - j : j - i;
		bool near = i < a.n1 && cell(a, i, j);

		if (near && off >= a.theiler_vert) {
			l.open++;
		} else if (l.open) {
			line_ends(a, l, i - l.open, i, little);
			if (i == a.n1 && j == a.n2 - 1)
				((counter *)a.sums)[OBK_RQA_GPU_OPEN] = l.open;
			l.open = 0;
		}
		if (i < a.n1 && !(near && off >= a.theiler_white)) {
			white++;
		} else {
			if (white && a.white) {
				if (border || i == a.n1)
					bump(a.white_border, white);
				else
					run_add(little + OBK_RQA_GPU_SHORT, a.white, white);
			}
			white = 0;
			border = false;
		}
	}
	if (a.start && l.count) {
		atomicAdd((counter *)a.sums + OBK_RQA_GPU_T1_SUM, (counter)(l.end - 1 - l.first));
		atomicAdd((counter *)a.sums + OBK_RQA_GPU_T1_COUNT, (counter)(l.points - 1));
	}
}

extern "C" __global__ void __launch_bounds__(OBK_RQA_GPU_BLOCK) rqa_columns(obk_rqa_gpu_args a, uint64_t first, uint64_t last)
{
	__shared__ unsigned little[4 * OBK_RQA_GPU_SHORT];
	uint64_t j = first + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

	little_clear(little, 4 * OBK_RQA_GPU_SHORT);
	if (j < last)
		column(a, j, little);
	__syncthreads();
	little_flush(little, a.vertical);
	little_flush(little + OBK_RQA_GPU_SHORT, a.white);
	little_flush(little + 2 * OBK_RQA_GPU_SHORT, a.start);
	little_flush(little + 3 * OBK_RQA_GPU_SHORT, a.middle);
}
