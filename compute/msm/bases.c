/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "compute/msm/msm.h"
#include "compute/msm/plan.h"
#include "compute/msm/tune.h"

#define BLOCK      256 /* points that a thread processes together */
#define MAX_COPIES 64

struct reading {
	const struct obk_msm_bases_args *args;
	struct obk_msm_bases *bases;
	size_t stride;
	_Atomic size_t bad; /* the lowest index refused so far */
};

static enum ob_err read_point(
	const struct reading *r, size_t i, struct obk_g1_affine *p, struct obk_fault *fault)
{
	const uint8_t *in = (const uint8_t *)r->args->points + i * r->stride;
	size_t item = r->args->first + i;
	enum ob_err err;

	switch (r->args->format) {
	case OBK_POINT_COMPRESSED:
		err = obk_g1_decode_compressed(p, in, item, fault);
		break;
	case OBK_POINT_UNCOMPRESSED:
		err = obk_g1_decode_uncompressed(p, in, item, fault);
		break;
	default:
		memcpy(p, in, sizeof(*p));
		err = OB_ERR_NONE;
		if (!obk_fp_plain_is_canonical(p->x.l) || !obk_fp_plain_is_canonical(p->y.l))
			err = obk_fault_set(fault, OB_ERR_ARGUMENT, item,
				"point %zu has a coordinate that is not below the field's prime",
				item);
		else if (r->args->trust == OBK_TRUST_NOTHING && !obk_g1_on_curve(p))
			err = obk_fault_set(fault, OB_ERR_ARGUMENT, item,
				"point %zu is not on the curve y^2 = x^3 + 4", item);
	}
	if (!err && r->args->trust == OBK_TRUST_NOTHING && !obk_g1_in_subgroup(p))
		err = obk_fault_set(fault, OB_ERR_ARGUMENT, item,
			"point %zu is on the curve but not in the subgroup G1 of order r", item);
	return err;
}

static void note_bad(struct reading *r, size_t item)
{
	size_t seen = atomic_load_explicit(&r->bad, memory_order_relaxed);

	while (item < seen &&
		!atomic_compare_exchange_weak_explicit(
			&r->bad, &seen, item, memory_order_relaxed, memory_order_relaxed))
		;
}

static void read_block(void *arg, size_t block, unsigned thread)
{
	struct reading *r = arg;
	struct obk_msm_bases *b = r->bases;
	struct obk_g1_affine p[BLOCK] = { 0 };
	size_t first = block * BLOCK,
	       n = r->args->count - first < BLOCK ? r->args->count - first : BLOCK;

	(void)thread;
	if (atomic_load_explicit(&r->bad, memory_order_relaxed) < first)
		return;
	for (size_t i = 0; i < n; i++) {
		if (read_point(r, first + i, &p[i], NULL)) {
			note_bad(r, first + i);
			return;
		}
	}
	b->lanes->load((char *)b->slots + first * b->lanes->slot_bytes, p, n);
	if (b->halves == 2) {
		for (size_t i = 0; i < n; i++)
			obk_fp_mul(&p[i].x, &p[i].x, &obk_g1_beta);
		b->lanes->load((char *)b->slots + (b->count + first) * b->lanes->slot_bytes, p, n);
	}
}

/* Makes every copy from the one before with `shift` doublings, a block of points at a time. */
static void shift_block(void *arg, size_t block, unsigned thread)
{
	struct obk_msm_bases *b = ((struct reading *)arg)->bases;
	size_t row = b->count * b->halves, first = block * BLOCK,
	       n = row - first < BLOCK ? row - first : BLOCK;
	size_t bytes = b->lanes->slot_bytes,
	       space = BLOCK * bytes + b->lanes->workspace_bytes(BLOCK);
	struct obk_pair pairs[BLOCK];
	char *points = aligned_alloc(
		OBK_LANES_ALIGN, (space + OBK_LANES_ALIGN - 1) / OBK_LANES_ALIGN * OBK_LANES_ALIGN);

	(void)thread;
	if (!points) {
		note_bad(arg, 0);
		return;
	}
	memcpy(points, (char *)b->slots + first * bytes, n * bytes);
	for (uint32_t i = 0; i < n; i++)
		pairs[i] = (struct obk_pair){
			.a = OBK_REF_SCRATCH | i, .b = OBK_REF_SCRATCH | i, .out = i
		};
	for (unsigned copy = 1; copy < b->copies; copy++) {
		for (unsigned i = 0; i < b->shift; i++)
			b->lanes->add(b->slots, points, pairs, n, points + BLOCK * bytes);
		memcpy((char *)b->slots + (copy * row + first) * bytes, points, n * bytes);
	}
	free(points);
}

static size_t copies_bytes(const struct obk_msm_bases *b, size_t copies)
{
	return copies * b->halves * b->count * b->lanes->slot_bytes;
}

/* As many copies as the memory allows, as long as they save additions. */
static void plan_table(struct obk_msm_bases *b, size_t table_bytes)
{
	unsigned bits = obk_plan_bits(b->halves, b->order_r);
	double best;
	struct obk_plan plan;

	b->copies = 1;
	if (!table_bytes || !b->count)
		return;
	obk_plan_make(&plan, b, b->count, 0);
	best = obk_plan_cost(&plan, b->count, b->halves);
	for (unsigned copies = 2; copies <= MAX_COPIES; copies++) {
		if (copies_bytes(b, copies - 1) > table_bytes ||
			copies * b->count * b->halves > OBK_REF_INDEX)
			break;
		for (unsigned c = 2; c <= OBK_MSM_MAX_WINDOW; c++) {
			struct obk_plan p = obk_plan_shape(c, bits, copies);
			double cost = obk_plan_cost(&p, b->count, b->halves);

			if ((p.windows + p.sets - 1) / p.sets == copies && cost < best) {
				best = cost;
				b->copies = copies;
				b->window = c;
				b->shift = c * p.sets;
			}
		}
	}
}

static size_t point_bytes(const struct obk_msm_bases_args *args)
{
	return args->format == OBK_POINT_COMPRESSED ? OBK_G1_COMPRESSED_BYTES
						    : OBK_G1_UNCOMPRESSED_BYTES;
}

size_t obk_msm_stride(const struct obk_msm_bases_args *args)
{
	return args->stride ? args->stride : point_bytes(args);
}

enum ob_err obk_msm_bases_check(const struct obk_msm_bases_args *args, struct obk_fault *fault)
{
	size_t bytes = point_bytes(args);

	if (args->format > OBK_POINT_UNCOMPRESSED || args->trust > OBK_TRUST_SUBGROUP)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the format or the trust in the points is none of the listed values");
	if (args->count > OBK_MSM_MAX_POINTS)
		return obk_fault_set(fault, OB_ERR_LIMIT, OBK_FAULT_NO_ITEM,
			"%zu points are more than %zu: split them", args->count,
			OBK_MSM_MAX_POINTS);
	if (args->count && !args->points)
		return obk_fault_set(
			fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM, "the points are missing");
	if (args->stride && (args->stride < bytes || args->stride > 4096))
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"a stride of %zu does not hold a point of %zu bytes, or is above 4096",
			args->stride, bytes);
	return OB_ERR_NONE;
}

enum ob_err obk_msm_bases_new(const struct obk_msm_bases_args *args,
	struct obk_msm_bases **ret_bases, struct obk_fault *fault)
{
	struct reading r = { .args = args, .stride = obk_msm_stride(args) };
	struct obk_msm_bases *b;
	struct obk_g1_affine p;
	enum ob_err err = obk_msm_bases_check(args, fault);

	if (err)
		return err;
	b = calloc(1, sizeof(*b));
	if (!b)
		goto no_memory;
	b->lanes = obk_lanes_choose();
	b->count = args->count;
	b->order_r = args->trust != OBK_TRUST_CURVE;
	b->halves = b->order_r &&
			args->count <=
				obk_tune_endomorphism((size_t)1 << OBK_PLAN_ENDOMORPHISM_LOG) &&
			ob_opt_on(OB_OPT_GLV)
		? 2
		: 1;
	plan_table(b, args->table_bytes);
	b->bytes = copies_bytes(b, b->copies);
	b->slots = aligned_alloc(
		OBK_LANES_ALIGN, (b->bytes + OBK_LANES_ALIGN) / OBK_LANES_ALIGN * OBK_LANES_ALIGN);
	if (!b->slots)
		goto no_memory;
	r.bases = b;
	atomic_init(&r.bad, SIZE_MAX);
	obk_pool_run(args->pool, (b->count + BLOCK - 1) / BLOCK, read_block, &r);
	if (r.bad != SIZE_MAX) {
		err = read_point(&r, r.bad, &p, fault); /* read it again for the error text */
		goto out;
	}
	if (b->copies > 1)
		obk_pool_run(
			args->pool, (b->count * b->halves + BLOCK - 1) / BLOCK, shift_block, &r);
	if (r.bad != SIZE_MAX)
		goto no_memory;
	*ret_bases = b;
	return OB_ERR_NONE;
no_memory:
	err = obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
		"no memory for %zu points and their table: allow a smaller table", args->count);
out:
	obk_msm_bases_free(b);
	return err;
}

void obk_msm_bases_free(struct obk_msm_bases *bases)
{
	if (!bases)
		return;
	free(bases->slots);
	free(bases);
}

void obk_msm_bases_info(const struct obk_msm_bases *bases, struct obk_msm_bases_info *ret_info)
{
	*ret_info = (struct obk_msm_bases_info){
		.count = bases->count,
		.bytes = bases->bytes,
		.shifts = bases->copies,
		.window = bases->copies > 1 ? bases->window : 0,
		.endomorphism = bases->halves == 2,
		.lanes = bases->lanes->name,
	};
}
