/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/engine/bases.h"

#include <stdlib.h>
#include <string.h>

#include "compute/engine/engine.h"

#define DECODE_BLOCK 64

static const size_t point_bytes[] = { 48, 96, 96 };
static const enum obk_point_format point_formats[] = { OBK_POINT_COMPRESSED, OBK_POINT_UNCOMPRESSED,
	OBK_POINT_AFFINE };

void obv_bases_ref(struct outboard_bases *bases)
{
	pthread_mutex_lock(&bases->context->lock);
	bases->refs++;
	pthread_mutex_unlock(&bases->context->lock);
}

static void bases_destroy(struct outboard_bases *b)
{
	while (b->copies) {
		struct obv_bases_copy *copy = b->copies;

		b->copies = copy->next;
		copy->free(copy);
	}
	obk_msm_bases_free(b->cpu);
	free(b->points);
	pthread_mutex_destroy(&b->lock);
	obv_context_unref(b->context);
	free(b);
}

void obv_bases_unref(struct outboard_bases *bases)
{
	bool last;

	if (!bases)
		return;
	pthread_mutex_lock(&bases->context->lock);
	last = --bases->refs == 0;
	pthread_mutex_unlock(&bases->context->lock);
	if (last)
		bases_destroy(bases);
}

void outboard_bases_free(struct outboard_bases *bases)
{
	obv_bases_unref(bases);
}

uint64_t outboard_bases_count(const struct outboard_bases *bases)
{
	return bases ? bases->count : 0;
}

uint64_t outboard_bases_bytes(const struct outboard_bases *bases)
{
	struct obk_msm_bases_info info;
	struct outboard_bases *b = (struct outboard_bases *)bases;
	uint64_t bytes;

	if (!b)
		return 0;
	obk_msm_bases_info(b->cpu, &info);
	bytes = info.bytes + (b->points ? b->count * sizeof(*b->points) : 0);
	pthread_mutex_lock(&b->lock);
	for (const struct obv_bases_copy *copy = b->copies; copy; copy = copy->next)
		bytes += copy->bytes;
	pthread_mutex_unlock(&b->lock);
	return bytes;
}

/* ---- upload ---- */

static int check_points(const struct outboard_points *p, struct outboard_error *error)
{
	if (!p)
		return obv_fail(
			error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM, "the struct of points is NULL");
	if (p->format > OUTBOARD_POINT_MONTGOMERY || p->trust > OUTBOARD_TRUST_SUBGROUP)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"points.format is %u and points.trust %u: values of enum "
			"outboard_point_format and enum outboard_trust",
			p->format, p->trust);
	if (p->count > OUTBOARD_MAX_POINTS)
		return obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM,
			"%llu points are more than %d: use several handles and add their sums",
			(unsigned long long)p->count, OUTBOARD_MAX_POINTS);
	if (!p->points && p->count)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"points.points is NULL but points.count is %llu",
			(unsigned long long)p->count);
	for (unsigned i = 0; i < sizeof(p->reserved) / sizeof(p->reserved[0]); i++)
		if (p->reserved[i])
			return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
				"points.reserved is not zero: clear the struct before setting its "
				"fields");
	return OUTBOARD_OK;
}

struct decoding {
	const struct outboard_points *from;
	size_t stride;
	struct obk_g1_affine *to;
	struct obk_fault *faults; /* one per block */
};

static void decode_block(void *arg, size_t item, unsigned thread)
{
	struct decoding *d = arg;
	size_t first = item * DECODE_BLOCK,
	       end = first + DECODE_BLOCK < d->from->count ? first + DECODE_BLOCK : d->from->count;
	enum ob_err err = OB_ERR_NONE;

	(void)thread;
	d->faults[item].err = OB_ERR_NONE;
	for (size_t i = first; i < end && !err; i++) {
		const uint8_t *bytes = (const uint8_t *)d->from->points + i * d->stride;

		if (d->from->format == OUTBOARD_POINT_COMPRESSED)
			err = obk_g1_decode_compressed(&d->to[i], bytes, i, &d->faults[item]);
		else if (d->from->format == OUTBOARD_POINT_UNCOMPRESSED)
			err = obk_g1_decode_uncompressed(&d->to[i], bytes, i, &d->faults[item]);
		else
			memcpy(&d->to[i], bytes, sizeof(d->to[i]));
	}
}

/* Decodes points to the form that GPUs need. */
static int decode(struct outboard_bases *b, const struct outboard_points *points, size_t stride,
	struct obk_pool *pool, struct outboard_error *error)
{
	size_t blocks = (b->count + DECODE_BLOCK - 1) / DECODE_BLOCK;
	struct decoding d = { .from = points,
		.stride = stride,
		.faults = calloc(blocks ? blocks : 1, sizeof(*d.faults)) };
	int status = OUTBOARD_OK;

	b->points = calloc(b->count ? b->count : 1, sizeof(*b->points));
	d.to = b->points;
	if (!d.faults || !d.to) {
		free(d.faults);
		return obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
			"no memory for %zu points", b->count);
	}
	obk_pool_run(pool, blocks, decode_block, &d);
	for (size_t i = 0; i < blocks && status == OUTBOARD_OK; i++)
		status = obv_fail_fault(error, d.faults[i].err, &d.faults[i]);
	free(d.faults);
	return status;
}

static int upload(struct outboard_bases *b, const struct outboard_points *points,
	struct outboard_error *error)
{
	struct obv_device *cpu = obv_context_cpu(b->context);
	struct obk_pool *pool = cpu ? cpu->backend.ops->pool(cpu->backend.self) : NULL;
	size_t stride = points->stride ? points->stride : point_bytes[points->format];
	struct obk_msm_bases_args args = { .points = points->points,
		.count = b->count,
		.stride = stride,
		.format = point_formats[points->format],
		.trust = (enum obk_trust)points->trust,
		.table_bytes = points->table_bytes,
		.pool = pool };
	struct obk_fault fault;
	int status;

	if (stride < point_bytes[points->format] || stride > 4096)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"points.stride is %zu: 0 for packed points, or %zu to 4096 bytes", stride,
			point_bytes[points->format]);
	if (obv_context_has_gpu(b->context)) {
		status = decode(b, points, stride, pool, error);
		if (status != OUTBOARD_OK)
			return status;
		args.points = b->points;
		args.stride = 0;
		args.format = OBK_POINT_AFFINE;
	}
	status = obv_fail_fault(error, obk_msm_bases_new(&args, &b->cpu, &fault), &fault);
	b->trust = points->trust == OUTBOARD_TRUST_CURVE ? OBK_TRUST_CURVE : OBK_TRUST_SUBGROUP;
	b->table_bytes = points->table_bytes;
	return status;
}

/* Allocates an empty handle of the context. */
static int bases_alloc(struct outboard *context, size_t count, struct outboard_bases **ret,
	struct outboard_error *error)
{
	struct outboard_bases *b = calloc(1, sizeof(*b));
	int status;

	if (!b)
		return obv_fail(
			error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM, "no memory for a handle");
	status = obv_context_get(context, &b->context, error);
	if (status != OUTBOARD_OK) {
		free(b);
		return status;
	}
	pthread_mutex_init(&b->lock, NULL);
	b->refs = 1;
	b->count = count;
	*ret = b;
	return OUTBOARD_OK;
}

int obv_bases_for_gpus(struct outboard *context, const struct obk_g1_affine *points, size_t count,
	size_t table_bytes, struct outboard_bases **ret_bases, struct outboard_error *error)
{
	struct outboard_bases *b = NULL;
	int status = bases_alloc(context, count, &b, error);

	if (status != OUTBOARD_OK)
		return status;
	b->trust = OBK_TRUST_SUBGROUP;
	b->table_bytes = table_bytes;
	b->points = malloc(count * sizeof(*b->points));
	if (!b->points) {
		bases_destroy(b);
		return obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
			"no memory for %zu points", count);
	}
	memcpy(b->points, points, count * sizeof(*b->points));
	*ret_bases = b;
	return OUTBOARD_OK;
}

int outboard_bases_new(struct outboard *context, const struct outboard_points *points,
	struct outboard_bases **ret_bases, struct outboard_error *error)
{
	struct outboard_bases *b = NULL;
	int status = check_points(points, error);

	if (status != OUTBOARD_OK)
		return status;
	if (!ret_bases)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"outboard_bases_new has nowhere to put the handle");
	status = bases_alloc(context, (size_t)points->count, &b, error);
	if (status != OUTBOARD_OK)
		return status;
	status = upload(b, points, error);
	if (status != OUTBOARD_OK)
		bases_destroy(b);
	else
		*ret_bases = b;
	return status;
}
