/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "compute/msm/gpu_bases_inside.h"
#include "compute/msm/gpu_kernels.h"
#include "compute/msm/gpu_tune.h"
#include "compute/msm/plan.h"

#define SLAB      ((size_t)1 << 16) /* points that are decoded together */
/* points whose denominators are in memory at the same time: 384 MiB */
#define SCRATCH   ((size_t)1 << 21)
#define BLOCK     256
#define SHARE_MIN ((size_t)8) /* fewest points that share an inversion */
#define SHARE_MAX ((size_t)128)

struct reading {
	const struct obk_msm_bases_args *args;
	size_t stride, first, count;
	struct obk_g1_affine *out;
	_Atomic size_t bad;
};

/* State while bases are made. */
struct making {
	struct obk_msm_gpu_bases *b;
	const struct obk_msm_bases_args *args;
	const struct obk_msm_gpu_choice *choice; /* NULL: the fastest */
	const CUfunction *kernels;
	CUstream stream;
	size_t stride, table_bytes;
	/* plain: one copy of the bases, if points holds all multiples */
	struct obk_gpu_buffer plain, scratch, bad;
};

static enum ob_err decode(const struct obk_msm_bases_args *args, size_t stride, size_t i,
	struct obk_g1_affine *p, struct obk_fault *fault)
{
	const uint8_t *in = (const uint8_t *)args->points + i * stride;

	if (args->format == OBK_POINT_COMPRESSED)
		return obk_g1_decode_compressed(p, in, args->first + i, fault);
	if (args->format == OBK_POINT_UNCOMPRESSED)
		return obk_g1_decode_uncompressed(p, in, args->first + i, fault);
	memcpy(p, in, sizeof(*p));
	return OB_ERR_NONE;
}

static void read_block(void *arg, size_t block, unsigned thread)
{
	struct reading *r = arg;
	size_t first = block * BLOCK, end = first + BLOCK < r->count ? first + BLOCK : r->count;

	(void)thread;
	for (size_t i = first; i < end; i++) {
		if (decode(r->args, r->stride, r->first + i, &r->out[i], NULL)) {
			size_t seen = atomic_load_explicit(&r->bad, memory_order_relaxed),
			       item = r->first + i;

			while (item < seen &&
				!atomic_compare_exchange_weak_explicit(&r->bad, &seen, item,
					memory_order_relaxed, memory_order_relaxed))
				;
			return;
		}
	}
}

/* Writes points in affine form to the device address `to`. */
static enum ob_err upload(const struct making *m, CUdeviceptr to, struct obk_fault *fault)
{
	struct reading r = { .args = m->args, .stride = m->stride };
	struct obk_g1_affine p;
	enum ob_err err = OB_ERR_NONE;

	if (m->args->format == OBK_POINT_AFFINE && m->stride == sizeof(p))
		return obk_gpu_write(
			m->b->gpu, m->stream, to, m->args->points, m->b->count * sizeof(p), fault);
	r.out = malloc((m->b->count < SLAB ? m->b->count : SLAB) * sizeof(p));
	if (!r.out)
		return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory to decode %zu points", m->b->count);
	atomic_init(&r.bad, SIZE_MAX);
	for (; r.first < m->b->count && !err; r.first += r.count) {
		r.count = m->b->count - r.first < SLAB ? m->b->count - r.first : SLAB;
		obk_pool_run(m->args->pool, (r.count + BLOCK - 1) / BLOCK, read_block, &r);
		if (r.bad != SIZE_MAX)
			/* decode it again for the error text */
			err = decode(m->args, m->stride, r.bad, &p, fault);
		else
			err = obk_gpu_write(m->b->gpu, m->stream, to + r.first * sizeof(p), r.out,
				r.count * sizeof(p), fault);
		/* the slab is used again */
		if (!err)
			err = obk_gpu_wait(m->b->gpu, m->stream, fault);
	}
	free(r.out);
	return err;
}

/* Describes what is wrong with point i on the device. */
static enum ob_err explain(
	const struct making *m, CUdeviceptr points, size_t i, struct obk_fault *fault)
{
	struct obk_g1_affine p;
	enum ob_err err =
		obk_gpu_read(m->b->gpu, m->stream, &p, points + i * sizeof(p), sizeof(p), fault);

	if (err)
		return err;
	i += m->args->first;
	if (!obk_fp_plain_is_canonical(p.x.l) || !obk_fp_plain_is_canonical(p.y.l))
		return obk_fault_set(fault, OB_ERR_ARGUMENT, i,
			"point %zu has a coordinate that is not below the field's prime", i);
	if (!obk_g1_on_curve(&p))
		return obk_fault_set(fault, OB_ERR_ARGUMENT, i,
			"point %zu is not on the curve y^2 = x^3 + 4", i);
	return obk_fault_set(fault, OB_ERR_ARGUMENT, i,
		"point %zu is on the curve but not in the subgroup G1 of order r", i);
}

static enum ob_err check_points(const struct making *m, CUdeviceptr points, struct obk_fault *fault)
{
	uint32_t n = (uint32_t)m->b->count, subgroup = m->args->trust == OBK_TRUST_NOTHING,
		 curve = subgroup && m->args->format == OBK_POINT_AFFINE;
	struct obk_gpu *gpu = m->b->gpu;
	struct obk_fp beta = obk_g1_beta;
	unsigned long long first = 0, bad = UINT64_MAX;
	CUdeviceptr at = m->bad.at;
	enum ob_err err;

	err = obk_gpu_write(gpu, m->stream, at, &bad, sizeof(bad), fault);
	if (!err)
		err = obk_gpu_launch(gpu, m->stream, m->kernels[OBK_MSM_CHECK],
			obk_msm_gpu_blocks(n, OBK_MSM_THREADS), 1, OBK_MSM_THREADS, 0,
			(void *[]){ &n, &points, &curve, &subgroup, &beta, &first, &at }, fault);
	if (!err)
		err = obk_gpu_read(gpu, m->stream, &bad, at, sizeof(bad), fault);
	if (!err && bad != UINT64_MAX)
		err = explain(m, points, (size_t)bad, fault);
	return err;
}

static enum ob_err normalise(
	const struct making *m, size_t count, CUdeviceptr to, struct obk_fault *fault)
{
	size_t share = count / ((size_t)obk_gpu_info(m->b->gpu)->processors * OBK_MSM_THREADS);
	uint32_t n = (uint32_t)count, threads;
	CUdeviceptr from = m->scratch.at;

	share = share < SHARE_MIN ? SHARE_MIN : share > SHARE_MAX ? SHARE_MAX : share;
	threads = (uint32_t)((count + share - 1) / share);
	return obk_gpu_launch(m->b->gpu, m->stream, m->kernels[OBK_MSM_TO_AFFINE],
		obk_msm_gpu_blocks(threads, OBK_MSM_THREADS), 1, OBK_MSM_THREADS, 0,
		(void *[]){ &n, &threads, &from, &to }, fault);
}

/* to = 2^shift from, for `count` points. */
static enum ob_err shift_points(const struct making *m, unsigned shift, CUdeviceptr from,
	CUdeviceptr to, size_t count, struct obk_fault *fault)
{
	const size_t bytes = sizeof(struct obk_g1_affine);
	CUdeviceptr scratch = m->scratch.at;
	enum ob_err err = OB_ERR_NONE;

	for (size_t first = 0; first < count && !err; first += SCRATCH) {
		uint32_t n = (uint32_t)(count - first < SCRATCH ? count - first : SCRATCH);
		CUdeviceptr in = from + first * bytes;

		err = obk_gpu_launch(m->b->gpu, m->stream, m->kernels[OBK_MSM_SHIFT],
			obk_msm_gpu_blocks(n, OBK_MSM_THREADS), 1, OBK_MSM_THREADS, 0,
			(void *[]){ &n, &shift, &in, &scratch }, fault);
		if (!err)
			err = normalise(m, n, to + first * bytes, fault);
	}
	return err;
}

/* Multiples per base and window. */
static size_t multiples_of(unsigned bits)
{
	return (size_t)1 << (bits - 1);
}

static enum ob_err multiply_points(const struct making *m, CUdeviceptr from, CUdeviceptr to,
	size_t count, struct obk_fault *fault)
{
	const size_t bytes = sizeof(struct obk_g1_affine), all = multiples_of(m->b->window),
		     step = SCRATCH / all;
	uint32_t multiples = (uint32_t)all;
	CUdeviceptr scratch = m->scratch.at;
	enum ob_err err = OB_ERR_NONE;

	for (size_t first = 0; first < count && !err; first += step) {
		uint32_t n = (uint32_t)(count - first < step ? count - first : step);
		CUdeviceptr in = from + first * bytes;

		err = obk_gpu_launch(m->b->gpu, m->stream, m->kernels[OBK_MSM_MAKE_MULTIPLES],
			obk_msm_gpu_blocks(n, OBK_MSM_THREADS), 1, OBK_MSM_THREADS, 0,
			(void *[]){ &n, &multiples, &in, &scratch }, fault);
		if (!err)
			err = normalise(m, n * all, to + first * all * bytes, fault);
	}
	return err;
}

static void hold(struct obk_msm_gpu_bases *b, const struct obk_msm_gpu_choice *choice)
{
	b->multiples = choice->multiples;
	b->copies = choice->copies;
	b->window = choice->window;
	b->shift = choice->shift;
}

void obk_msm_gpu_table_plan(struct obk_msm_gpu_bases *b, size_t table_bytes)
{
	struct obk_msm_gpu_tuning tuning;
	struct obk_msm_gpu_choice choice;

	obk_msm_gpu_tuning_get(b->gpu, &tuning);
	obk_msm_gpu_choose(&tuning, b->count, b->order_r, table_bytes, &choice);
	hold(b, &choice);
}

static enum ob_err fill(struct making *m, struct obk_fault *fault)
{
	struct obk_msm_gpu_bases *b = m->b;
	size_t row = b->count * sizeof(struct obk_g1_affine),
	       all = b->multiples ? multiples_of(b->window) : 1, open = b->count * all;
	unsigned windows = b->multiples ? obk_msm_gpu_multiples_plan(b->window).windows : 0;
	bool table = b->multiples || b->copies > 1;
	CUdeviceptr first;
	enum ob_err err = obk_gpu_take(b->gpu,
		b->multiples ? b->count * obk_msm_gpu_multiples_bytes(b->window) : row * b->copies,
		&b->points, fault);

	if (!err && b->multiples)
		err = obk_gpu_take(b->gpu, 2 * row, &m->plain, fault);
	if (!err && table)
		err = obk_gpu_take(b->gpu,
			(open < SCRATCH ? open : SCRATCH) * sizeof(struct obk_g1), &m->scratch,
			fault);
	if (err)
		return err;
	first = b->multiples ? m->plain.at : b->points.at;
	err = upload(m, first, fault);
	if (!err)
		err = check_points(m, first, fault);
	for (unsigned copy = 1; copy < b->copies && !err; copy++)
		err = shift_points(
			m, b->shift, first + (copy - 1) * row, first + copy * row, b->count, fault);
	for (unsigned window = 0; window < windows && !err; window++) {
		CUdeviceptr from = first + (window % 2) * row,
			    next = first + (1 - window % 2) * row;

		err = multiply_points(m, from, b->points.at + window * row * all, b->count, fault);
		if (!err && window + 1 < windows)
			err = shift_points(m, b->shift, from, next, b->count, fault);
	}
	return err ? err : obk_gpu_wait(b->gpu, m->stream, fault);
}

static enum ob_err make(struct making *m, struct obk_fault *fault)
{
	struct obk_msm_gpu_bases *b = m->b;
	enum ob_err err;

	if (b->count == 0)
		return OB_ERR_NONE;
	err = obk_gpu_load(b->gpu, &obk_msm_gpu_table_kernels, &m->kernels, fault);
	if (!err)
		err = obk_gpu_stream_take(b->gpu, &m->stream, fault);
	if (!err)
		err = obk_gpu_take(b->gpu, sizeof(uint64_t), &m->bad, fault);
	for (size_t table_bytes = m->args->table_bytes; !err; table_bytes /= 2) {
		if (m->choice)
			hold(b, m->choice);
		else
			obk_msm_gpu_table_plan(b, table_bytes);
		err = fill(m, fault);
		if (err)
			obk_gpu_give(b->gpu, &b->points);
		obk_gpu_give(b->gpu, &m->plain);
		obk_gpu_give(b->gpu, &m->scratch);
		if (err != OB_ERR_NO_MEMORY || m->choice || (b->copies == 1 && !b->multiples))
			break;
		obk_gpu_trim(b->gpu);
		err = OB_ERR_NONE; /* try a smaller table */
	}
	obk_gpu_give(b->gpu, &m->bad);
	obk_gpu_stream_give(b->gpu, m->stream);
	return err;
}

enum ob_err obk_msm_gpu_bases_make(struct obk_gpu *gpu, const struct obk_msm_bases_args *args,
	const struct obk_msm_gpu_choice *choice, struct obk_msm_gpu_bases **ret_bases,
	struct obk_fault *fault)
{
	struct making m = { .args = args, .choice = choice, .stride = obk_msm_stride(args) };
	struct obk_msm_gpu_bases *b;
	enum ob_err err = obk_msm_bases_check(args, fault);

	if (err)
		return err;
	b = calloc(1, sizeof(*b));
	if (!b)
		return obk_fault_set(
			fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM, "no memory to note bases");
	*b = (struct obk_msm_gpu_bases){ .gpu = gpu,
		.count = args->count,
		.order_r = args->trust != OBK_TRUST_CURVE,
		.copies = 1 };
	m.b = b;
	err = obk_gpu_enter(gpu, fault);
	if (!err) {
		err = make(&m, fault);
		obk_gpu_leave(gpu);
	}
	if (err) {
		free(b);
		return err;
	}
	*ret_bases = b;
	return OB_ERR_NONE;
}

enum ob_err obk_msm_gpu_bases_new(struct obk_gpu *gpu, const struct obk_msm_bases_args *args,
	struct obk_msm_gpu_bases **ret_bases, struct obk_fault *fault)
{
	return obk_msm_gpu_bases_make(gpu, args, NULL, ret_bases, fault);
}

void obk_msm_gpu_bases_free(struct obk_msm_gpu_bases *bases)
{
	if (!bases)
		return;
	if (bases->points.at && !obk_gpu_enter(bases->gpu, NULL)) {
		obk_gpu_give(bases->gpu, &bases->points);
		obk_gpu_leave(bases->gpu);
	}
	free(bases);
}

void obk_msm_gpu_bases_info(
	const struct obk_msm_gpu_bases *bases, struct obk_msm_gpu_info *ret_info)
{
	*ret_info = (struct obk_msm_gpu_info){
		.count = bases->count,
		.bytes = bases->points.bytes,
		.shifts = bases->multiples ? obk_msm_gpu_multiples_plan(bases->window).windows
					   : bases->copies,
		.window = bases->multiples || bases->copies > 1 ? bases->window : 0,
		.multiples = bases->multiples,
	};
}
