/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdlib.h>
#include <string.h>

#include "compute/kzg/gpu.h"
#include "compute/kzg/gpu_shape.h"
#include "compute/kzg/program.h"
#include "compute/msm/gpu_bases_inside.h"
#include "compute/msm/gpu_kernels.h"

/*
 * cost of an addition in the tree that adds a column's parts, in tenths of an addition from the
 * table
 */
#define ADD_TENTHS 14

enum { SUMS, STEPS, KERNELS };

extern const unsigned char obk_kzg_image_start[], obk_kzg_image_end[];
static const char *const names[KERNELS] = { "fk20_sums", "fk20_steps" };
static const struct obk_gpu_image image = { "cell proofs", obk_kzg_image_start, obk_kzg_image_end,
	KERNELS, names };

struct obk_fk20_gpu {
	struct obk_gpu *gpu;
	unsigned log_columns, columns, terms;
	struct obk_msm_gpu_bases *table;
	struct obk_fk20_programs programs;
	struct obk_gpu_buffer starts, steps;
};

/* State of one call, which processes one group of blobs at a time. */
struct call {
	const struct obk_fk20_gpu *fk;
	const CUfunction *kernels, *msm;
	CUstream stream;
	struct obk_gpu_buffer scalars, points, slots, bad;
	struct obk_g1 *host; /* [column][blob] */
	struct obk_g1_affine *proofs;
	uint32_t blobs;
	_Atomic bool failed;
	struct obk_fault *fault;
};

/* ---- tables ---- */

/*
 * Makes a table of all multiples for digits of `bits` bits, or of fewer if the device lacks memory.
 */
static enum ob_err try_table(struct obk_fk20_gpu *fk, const struct obk_g1_affine *points,
	unsigned bits, struct obk_fault *fault)
{
	size_t count = (size_t)fk->columns * fk->terms,
	       bytes = count * obk_msm_gpu_multiples_bytes(bits);
	const struct obk_msm_gpu_choice choice = {
		.multiples = true, .window = bits, .shift = bits, .copies = 1, .bytes = bytes
	};
	const struct obk_msm_bases_args args = { .points = points,
		.count = count,
		.format = OBK_POINT_AFFINE,
		.trust = OBK_TRUST_SUBGROUP,
		.table_bytes = bytes };
	struct obk_msm_gpu_info info;
	enum ob_err err = obk_msm_gpu_bases_make(fk->gpu, &args, &choice, &fk->table, fault);

	if (err)
		return err;
	obk_msm_gpu_bases_info(fk->table, &info);
	if (info.multiples)
		return OB_ERR_NONE;
	/*
	 * this table was chosen for one product of all points; the sums of the columns have 64
	 * points each
	 */
	obk_msm_gpu_bases_free(fk->table);
	fk->table = NULL;
	return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
		"GPU %u has no room for the %zu bytes of tables behind cell proofs: use the CPU",
		obk_gpu_info(fk->gpu)->ordinal, bytes);
}

static enum ob_err make_table(
	struct obk_fk20_gpu *fk, const struct obk_fk20_gpu_args *args, struct obk_fault *fault)
{
	size_t count = (size_t)fk->columns * fk->terms;
	unsigned bits = args->window ? args->window : OBK_MSM_GPU_MULTIPLES_MAX_BITS;
	enum ob_err err;

	while (!args->window && bits > OBK_MSM_GPU_MULTIPLES_MIN_BITS &&
		count * obk_msm_gpu_multiples_bytes(bits) > args->table_bytes)
		bits--;
	for (;; bits--) {
		err = try_table(fk, args->points, bits, fault);
		if (err != OB_ERR_NO_MEMORY || bits == OBK_MSM_GPU_MULTIPLES_MIN_BITS)
			return err;
		obk_gpu_trim(fk->gpu);
	}
}

static enum ob_err upload_programs(struct obk_fk20_gpu *fk, struct obk_fault *fault)
{
	const struct obk_fk20_programs *p = &fk->programs;
	size_t starts = (p->count + 1) * sizeof(*p->starts),
	       steps = p->starts[p->count] * sizeof(*p->steps);
	CUstream stream;
	enum ob_err err = obk_gpu_stream_take(fk->gpu, &stream, fault);

	if (err)
		return err;
	err = obk_gpu_take(fk->gpu, starts, &fk->starts, fault);
	err = err ? err : obk_gpu_take(fk->gpu, steps, &fk->steps, fault);
	err = err ? err : obk_gpu_write(fk->gpu, stream, fk->starts.at, p->starts, starts, fault);
	err = err ? err : obk_gpu_write(fk->gpu, stream, fk->steps.at, p->steps, steps, fault);
	err = err ? err : obk_gpu_wait(fk->gpu, stream, fault);
	obk_gpu_stream_give(fk->gpu, stream);
	return err;
}

static enum ob_err check_args(const struct obk_fk20_gpu_args *a, struct obk_fault *fault)
{
	if (!a->log_columns || a->log_columns > OBK_FK20_GPU_MAX_LOG_COLUMNS || !a->terms ||
		a->terms > OBK_FK20_GPU_MAX_TERMS || (a->terms & (a->terms - 1)))
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"2^%u columns of %u terms are not 2^1..2^%d of 1..%d, a power of two",
			a->log_columns, a->terms, OBK_FK20_GPU_MAX_LOG_COLUMNS,
			OBK_FK20_GPU_MAX_TERMS);
	if (a->window &&
		(a->window < OBK_MSM_GPU_MULTIPLES_MIN_BITS ||
			a->window > OBK_MSM_GPU_MULTIPLES_MAX_BITS))
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"digits of %u bits are not in %d..%d", a->window,
			OBK_MSM_GPU_MULTIPLES_MIN_BITS, OBK_MSM_GPU_MULTIPLES_MAX_BITS);
	return OB_ERR_NONE;
}

enum ob_err obk_fk20_gpu_new(struct obk_gpu *gpu, const struct obk_fk20_gpu_args *args,
	struct obk_fk20_gpu **ret_fk, struct obk_fault *fault)
{
	struct obk_fk20_gpu *fk;
	enum ob_err err = check_args(args, fault);

	if (err)
		return err;
	fk = calloc(1, sizeof(*fk));
	if (!fk)
		return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory to note the tables of cell proofs");
	*fk = (struct obk_fk20_gpu){ .gpu = gpu,
		.log_columns = args->log_columns,
		.columns = 1u << args->log_columns,
		.terms = args->terms };
	err = obk_fk20_programs_make(args->log_columns, &fk->programs);
	if (err)
		err = obk_fault_set(
			fault, err, OBK_FAULT_NO_ITEM, "no memory for the transforms of points");
	else
		err = obk_gpu_enter(gpu, fault);
	if (err) {
		obk_fk20_programs_free(&fk->programs);
		free(fk);
		return err;
	}
	err = upload_programs(fk, fault);
	err = err ? err : make_table(fk, args, fault);
	obk_gpu_leave(gpu);
	if (err)
		obk_fk20_gpu_free(fk);
	else
		*ret_fk = fk;
	return err;
}

void obk_fk20_gpu_free(struct obk_fk20_gpu *fk)
{
	if (!fk)
		return;
	obk_msm_gpu_bases_free(fk->table);
	if (!obk_gpu_enter(fk->gpu, NULL)) {
		obk_gpu_give(fk->gpu, &fk->starts);
		obk_gpu_give(fk->gpu, &fk->steps);
		obk_gpu_leave(fk->gpu);
	}
	obk_fk20_programs_free(&fk->programs);
	free(fk);
}

/* The depth of the deepest program of a level. */
static unsigned level_depth(const struct obk_fk20_programs *p, size_t first, size_t blocks)
{
	unsigned most = 0;

	for (size_t i = first; i < first + blocks; i++) {
		unsigned depth = obk_fk20_program_depth(p, i);

		most = depth > most ? depth : most;
	}
	return most;
}

void obk_fk20_gpu_info(const struct obk_fk20_gpu *fk, struct obk_fk20_gpu_info *ret_info)
{
	struct obk_msm_gpu_info table;

	obk_msm_gpu_bases_info(fk->table, &table);
	*ret_info = (struct obk_fk20_gpu_info){ .bytes = table.bytes + fk->starts.bytes +
			fk->steps.bytes,
		.window = table.window,
		.depth = level_depth(&fk->programs, fk->programs.fold, 1) };
	for (unsigned level = 1; level < fk->log_columns; level++)
		ret_info->depth += level_depth(&fk->programs, 0, (size_t)1 << level) +
			level_depth(&fk->programs, fk->programs.scatter, (size_t)1 << level);
}

/* ---- proofs ---- */

/*
 * Chooses the terms per thread: few terms use more of the device, many leave fewer parts to add up.
 * Compares the number of rounds times their length.
 */
static uint32_t choose_each(const struct obk_fk20_gpu *fk, uint32_t total, unsigned windows)
{
	size_t resident = (size_t)obk_gpu_info(fk->gpu)->processors * OBK_FK20_RESIDENT *
		OBK_FK20_THREADS,
	       best = SIZE_MAX;
	uint32_t choice = 1;

	for (uint32_t each = 1, parts = fk->terms; parts > 0; each *= 2, parts /= 2) {
		unsigned levels = 31 - (unsigned)__builtin_clz(parts);
		size_t rounds = (total / each + resident - 1) / resident,
		       cost = rounds * (each * windows * 10 + levels * ADD_TENTHS);

		if (cost < best) {
			best = cost;
			choice = each;
		}
	}
	return choice;
}

/* Converts the scalars in a byte range of the group to plain numbers. */
static enum ob_err prepare_piece(void *arg, size_t first_byte, size_t bytes)
{
	struct call *c = arg;
	struct obk_msm_shape shape = { .order_r = 1 };
	uint32_t n = (uint32_t)(bytes / OBK_SCALAR_BYTES), format = OBK_SCALAR_MONT, canonical = 0;
	CUdeviceptr at = c->scalars.at + first_byte;
	unsigned long long first = 0;

	return obk_gpu_launch(c->fk->gpu, c->stream, c->msm[OBK_MSM_PREPARE],
		obk_msm_gpu_blocks(n, 256), 1, 256, 0,
		(void *[]){ &shape, &n, &at, &format, &canonical, &at, &first, &c->bad.at },
		c->fault);
}

static enum ob_err add_columns(struct call *c, const struct obk_fr *scalars)
{
	const struct obk_fk20_gpu *fk = c->fk;
	struct obk_plan plan = obk_msm_gpu_multiples_plan(fk->table->window);
	uint32_t total = c->blobs * fk->columns * fk->terms;
	struct obk_fk20_sums sums = { .columns = fk->columns,
		.terms = fk->terms,
		.blobs = c->blobs,
		.window = plan.window,
		.windows = plan.windows,
		.each = choose_each(fk, total, plan.windows) };
	enum ob_err err = obk_gpu_upload(fk->gpu, c->stream, c->scalars.at, scalars,
		(size_t)total * sizeof(*scalars), prepare_piece, c, c->fault);

	return err ? err
		   : obk_gpu_launch(fk->gpu, c->stream, c->kernels[SUMS],
			     obk_msm_gpu_blocks(total / sums.each, OBK_FK20_THREADS), 1,
			     OBK_FK20_THREADS, 0,
			     (void *[]){ &sums, &c->scalars.at,
				     (void *)(uintptr_t)&fk->table->points.at, &c->points.at },
			     c->fault);
}

static enum ob_err run_level(struct call *c, unsigned level, uint32_t first)
{
	const struct obk_fk20_gpu *fk = c->fk;
	struct obk_fk20_level l = {
		.half = fk->columns >> (level + 1), .blobs = c->blobs, .first = first
	};
	CUdeviceptr starts = fk->starts.at, steps = fk->steps.at;
	struct obk_fp beta = obk_g1_beta;

	return obk_gpu_launch(fk->gpu, c->stream, c->kernels[STEPS],
		obk_msm_gpu_blocks((size_t)l.half * l.blobs, OBK_FK20_QUADS), 1u << level,
		4 * OBK_FK20_QUADS, 0,
		(void *[]){ &l, &starts, &steps, &beta, &c->points.at, &c->slots.at }, c->fault);
}

/* Executes the levels of obk_g1_ntt_gather_low and obk_g1_ntt_scatter_low. */
static enum ob_err transform(struct call *c)
{
	const struct obk_fk20_gpu *fk = c->fk;
	enum ob_err err = OB_ERR_NONE;

	for (unsigned level = fk->log_columns - 1; level > 0 && !err; level--)
		err = run_level(c, level, 0);
	err = err ? err : run_level(c, 0, fk->programs.fold);
	for (unsigned level = 1; level < fk->log_columns && !err; level++)
		err = run_level(c, level, fk->programs.scatter);
	return err;
}

/* Converts a blob's proofs to affine form with one inversion. */
static void finish_blob(void *arg, size_t blob, unsigned thread)
{
	struct call *c = arg;
	size_t n = c->fk->columns;
	struct obk_g1 *points = malloc(n * sizeof(*points));
	struct obk_fp *scratch = malloc(2 * n * sizeof(*scratch));

	(void)thread;
	if (points && scratch) {
		for (size_t i = 0; i < n; i++)
			points[i] = c->host[i * c->blobs + blob];
		obk_g1_to_affine_batch(c->proofs + blob * n, points, n, scratch);
	} else {
		c->failed = true;
	}
	free(points);
	free(scratch);
}

static enum ob_err prove_group(struct call *c, const struct obk_fr *scalars, struct obk_pool *pool)
{
	enum ob_err err = add_columns(c, scalars);

	err = err ? err : transform(c);
	err = err ? err
		  : obk_gpu_read(c->fk->gpu, c->stream, c->host, c->points.at,
			    (size_t)c->fk->columns * c->blobs * sizeof(*c->host), c->fault);
	if (err)
		return err;
	obk_pool_run(pool, c->blobs, finish_blob, c);
	return c->failed ? obk_fault_set(c->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
				   "no memory to read the proofs of cells")
			 : OB_ERR_NONE;
}

/* Takes buffers for `blobs` at a time, or for fewer if the device lacks memory. */
static enum ob_err take_buffers(struct call *c, size_t blobs, size_t *ret_blobs)
{
	struct obk_gpu *gpu = c->fk->gpu;
	size_t columns = c->fk->columns, scalars = columns * c->fk->terms * sizeof(struct obk_fr),
	       points = columns * sizeof(struct obk_g1),
	       slots = columns / 2 * OBK_FK20_SLOTS * sizeof(struct obk_g1), room,
	       each = (scalars + points + slots) * 9 / 8;
	enum ob_err err = obk_gpu_room(gpu, &room, c->fault);

	if (err)
		return err;
	room -= room / 16;
	blobs = blobs < room / each ? blobs : room / each;
	if (!blobs)
		return obk_fault_set(c->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"GPU %u has room for %zu bytes only, too little for the cells of a blob: "
			"use the CPU",
			obk_gpu_info(gpu)->ordinal, room);
	err = obk_gpu_take(gpu, sizeof(uint64_t), &c->bad, c->fault);
	err = err ? err : obk_gpu_take(gpu, blobs * scalars, &c->scalars, c->fault);
	err = err ? err : obk_gpu_take(gpu, blobs * points, &c->points, c->fault);
	err = err ? err : obk_gpu_take(gpu, blobs * slots, &c->slots, c->fault);
	c->host = malloc(blobs * points);
	if (!err && !c->host)
		err = obk_fault_set(c->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory to read the proofs of %zu blobs", blobs);
	*ret_blobs = blobs;
	return err;
}

static void give_buffers(struct call *c)
{
	obk_gpu_give(c->fk->gpu, &c->bad);
	obk_gpu_give(c->fk->gpu, &c->scalars);
	obk_gpu_give(c->fk->gpu, &c->points);
	obk_gpu_give(c->fk->gpu, &c->slots);
	free(c->host);
}

static enum ob_err prove_entered(struct call *c, const struct obk_fr *scalars, size_t blobs,
	struct obk_g1_affine *proofs, struct obk_pool *pool)
{
	const struct obk_fk20_gpu *fk = c->fk;
	size_t group = 0;
	enum ob_err err = obk_gpu_load(fk->gpu, &image, &c->kernels, c->fault);

	err = err ? err : obk_gpu_load(fk->gpu, &obk_msm_gpu_kernels, &c->msm, c->fault);
	err = err ? err : obk_gpu_stream_take(fk->gpu, &c->stream, c->fault);
	if (err)
		return err;
	err = take_buffers(c, blobs, &group);
	for (size_t done = 0; done < blobs && !err; done += c->blobs) {
		c->blobs = (uint32_t)(blobs - done < group ? blobs - done : group);
		c->proofs = proofs + done * fk->columns;
		err = prove_group(c, scalars + done * fk->columns * fk->terms, pool);
	}
	/* no work may be pending on buffers that are given back */
	if (err && !obk_gpu_lost(fk->gpu))
		obk_gpu_wait(fk->gpu, c->stream, NULL);
	give_buffers(c);
	obk_gpu_stream_give(fk->gpu, c->stream);
	return err;
}

enum ob_err obk_fk20_gpu_prove(const struct obk_fk20_gpu *fk, const struct obk_fr *scalars,
	size_t blobs, struct obk_g1_affine *ret_proofs, struct obk_pool *pool,
	struct obk_fault *fault)
{
	struct call c = { .fk = fk, .fault = fault };
	enum ob_err err;

	if (!blobs || blobs > OBK_FK20_GPU_MAX_BLOBS)
		return obk_fault_set(fault, OB_ERR_LIMIT, OBK_FAULT_NO_ITEM,
			"the cells of %zu blobs are not in 1..%d: split them", blobs,
			OBK_FK20_GPU_MAX_BLOBS);
	err = obk_gpu_enter(fk->gpu, fault);
	if (err)
		return err;
	err = prove_entered(&c, scalars, blobs, ret_proofs, pool);
	obk_gpu_leave(fk->gpu);
	return err;
}
