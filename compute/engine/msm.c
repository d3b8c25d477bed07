/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * MSM calls as jobs: a batch is cut between its products, a single product between its points; its
 * partial sums are added at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "compute/engine/bases.h"
#include "compute/engine/engine.h"
#include "compute/engine/scalars.h"

#define POINTS_LEAST 1024 /* fewest points in a part of one product */

static const size_t result_bytes[] = { 48, 96, 96 };
static const enum obk_scalar_format scalar_formats[] = { OBK_SCALAR_LE, OBK_SCALAR_BE,
	OBK_SCALAR_MONT };

struct msm_job {
	struct obv_job job;
	struct outboard_bases *bases;
	struct outboard_msm msm;
	bool by_points;
	struct obk_g1_affine *sums; /* one per product, or per piece */
};

struct watched {
	struct obv_job *job;
	unsigned piece;
};

static bool msm_progress(void *arg, double done)
{
	const struct watched *w = arg;

	return obv_job_progress(w->job, w->piece, done);
}

static bool msm_stopped(void *job)
{
	return obv_job_stopped(job);
}

/* Copies scalars from a GPU to the host for a device that cannot access them. */
static int fetch(const struct obv_msm_work *work, void **ret_scalars, struct outboard_error *error)
{
	const struct obv_backend *b = &work->memory->backend;
	size_t bytes = work->job.batch * work->job.count * OBK_SCALAR_BYTES;
	int status;

	*ret_scalars = malloc(bytes);
	if (!*ret_scalars)
		return obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
			"no memory for %zu bytes of scalars from %s", bytes, b->name);
	status = b->ops->read(b->self, *ret_scalars, (uint64_t)(uintptr_t)work->job.scalars, bytes,
		work->after, error);
	if (status != OUTBOARD_OK) {
		free(*ret_scalars);
		*ret_scalars = NULL;
	}
	return status;
}

static int msm_run(struct obv_job *job, struct obv_piece *piece, struct obv_device *device,
	struct outboard_error *error)
{
	struct msm_job *m = (struct msm_job *)job;
	const struct outboard_msm *a = &m->msm;
	uint64_t skip = m->by_points ? piece->first : piece->first * a->count;
	struct watched watched = { job, piece->index };
	struct obv_msm_work work = {
		.bases = m->bases,
		.after = job->call.after,
		.progress = msm_progress,
		.progress_arg = &watched,
		.hurried = job->deadline != OB_NEVER || m->bases->once,
		.job = { .offset = a->offset + (m->by_points ? piece->first : 0),
			.count = m->by_points ? piece->count : a->count,
			.scalars = (const uint8_t *)a->scalars + skip * OBK_SCALAR_BYTES,
			.format = scalar_formats[a->scalar_format],
			.canonical = a->canonical && a->memory,
			.batch = m->by_points ? 1 : piece->count,
			.stop = { msm_stopped, job } },
	};
	void *fetched = NULL;
	int status = OUTBOARD_OK;

	if (obv_job_stopped(job))
		return OUTBOARD_CANCELLED;
	if (a->memory)
		work.memory = &job->context->device[a->memory - 1];
	if (work.memory && work.memory != device) {
		status = fetch(&work, &fetched, error);
		work.job.scalars = fetched;
		work.memory = NULL;
	}
	if (status == OUTBOARD_OK)
		status = device->backend.ops->msm(device->backend.self, &work,
			m->sums + (m->by_points ? piece->index : piece->first), error);
	free(fetched);
	return status;
}

static void encode(void *to, uint32_t format, const struct obk_g1_affine *p)
{
	if (format == OUTBOARD_POINT_COMPRESSED)
		obk_g1_encode_compressed(to, p);
	else if (format == OUTBOARD_POINT_UNCOMPRESSED)
		obk_g1_encode_uncompressed(to, p);
	else
		memcpy(to, p, sizeof(*p));
}

static int msm_finish(struct obv_job *job, struct outboard_error *error)
{
	struct msm_job *m = (struct msm_job *)job;
	struct obk_g1 sum;

	(void)error;
	if (m->by_points) {
		obk_g1_set_infinity(&sum);
		for (unsigned i = 0; i < job->piece_count; i++)
			obk_g1_add_affine(&sum, &sum, &m->sums[i]);
		obk_g1_to_affine(&m->sums[0], &sum);
	}
	for (size_t i = 0; i < m->msm.batch; i++)
		encode((uint8_t *)m->msm.result + i * result_bytes[m->msm.result_format],
			m->msm.result_format, &m->sums[i]);
	return OUTBOARD_OK;
}

static void msm_fini(struct obv_job *job)
{
	struct msm_job *m = (struct msm_job *)job;

	obv_bases_unref(m->bases);
	free(m->sums);
}

static const struct obv_job_ops msm_ops = { .run = msm_run,
	.finish = msm_finish,
	.fini = msm_fini };

/* ---- arguments ---- */

static int check_range(const struct outboard_bases *bases, const struct outboard_msm *m,
	struct outboard_error *error)
{
	if (m->offset > bases->count || m->count > bases->count - m->offset)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"points %llu to %llu were asked for, but the handle has %zu: correct "
			"offset and count",
			(unsigned long long)m->offset, (unsigned long long)(m->offset + m->count),
			bases->count);
	if (m->batch > OUTBOARD_MAX_BATCH)
		return obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM,
			"a batch of %llu products is more than %d: use several calls",
			(unsigned long long)m->batch, OUTBOARD_MAX_BATCH);
	if (!m->result || (!m->scalars && m->count))
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM, "msm.%s is NULL",
			m->result ? "scalars" : "result");
	if (m->scalar_format > OUTBOARD_SCALAR_MONTGOMERY ||
		m->result_format > OUTBOARD_POINT_MONTGOMERY)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"msm.scalar_format is %u and msm.result_format %u: values of enum "
			"outboard_scalar_format and enum outboard_point_format",
			m->scalar_format, m->result_format);
	for (unsigned i = 0; i < sizeof(m->reserved) / sizeof(m->reserved[0]); i++)
		if (m->reserved[i])
			return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
				"msm.reserved is not zero: clear the struct before setting its "
				"fields");
	return OUTBOARD_OK;
}

/* Whether the scalar or element is below r. */
static bool below_r(const uint8_t *bytes, uint32_t format)
{
	uint64_t plain[4];

	memcpy(plain, bytes, sizeof(plain));
	if (format == OUTBOARD_SCALAR_BE)
		for (unsigned i = 0; i < 4; i++) {
			memcpy(&plain[3 - i], bytes + 8 * i, 8);
			plain[3 - i] = __builtin_bswap64(plain[3 - i]);
		}
	return obk_fr_plain_is_canonical(plain);
}

int obv_scalars_check(const void *scalars, uint64_t n, uint32_t format, const char *what,
	struct outboard_error *error)
{
	for (uint64_t i = 0; i < n; i++)
		if (!below_r((const uint8_t *)scalars + i * OBK_SCALAR_BYTES, format))
			return obv_fail(error, OUTBOARD_ARGUMENT, i,
				"%s %llu is not below r, the order of the group: reduce it", what,
				(unsigned long long)i);
	return OUTBOARD_OK;
}

static int check_scalars(const struct outboard_msm *m, struct outboard_error *error)
{
	/* In Montgomery form scalars must always be below r. */
	if (m->memory || (!m->canonical && m->scalar_format != OUTBOARD_SCALAR_MONTGOMERY))
		return OUTBOARD_OK;
	return obv_scalars_check(
		m->scalars, m->batch * m->count, m->scalar_format, "scalar", error);
}

int obv_memory_check(struct outboard *context, uint32_t memory, struct outboard_error *error)
{
	if (memory == OUTBOARD_HOST)
		return OUTBOARD_OK;
	if (memory - 1 >= context->count || !context->device[memory - 1].backend.ops->read)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"memory is OUTBOARD_ON(%u), but that is no GPU of this context: see "
			"outboard_device_get, or pass host memory",
			memory - 1);
	return OUTBOARD_OK;
}

static uint64_t reach(struct outboard *context, uint32_t memory)
{
	uint64_t mask = 0;

	if (memory == OUTBOARD_HOST)
		return UINT64_MAX;
	for (unsigned i = 0; i < context->count; i++)
		if (i == memory - 1 || context->device[i].backend.kind == OUTBOARD_CPU)
			mask |= (uint64_t)1 << i;
	return mask;
}

static int msm_make(struct outboard_bases *bases, const struct outboard_msm *a,
	const struct outboard_call *call, struct msm_job **ret, struct outboard_error *error)
{
	struct msm_job *m =
		obv_job_new(bases->context, sizeof(*m), &msm_ops, OUTBOARD_OP_MSM, call, error);
	size_t sums;
	int status;

	if (!m)
		return error ? error->status : OUTBOARD_ARGUMENT;
	obv_bases_ref(bases);
	m->bases = bases;
	m->msm = *a;
	m->by_points = a->batch == 1;
	m->job.allowed = reach(bases->context, a->memory);
	if (a->canonical && a->memory) {
		/*
		 * Scalars are checked where they are; the job is not cut by points, so that the
		 * index is that of the caller.
		 */
		m->by_points = false;
		m->job.call.strategy = OUTBOARD_SINGLE + 1;
	}
	if (m->by_points)
		status = obv_job_cut(&m->job, a->count, 0, false, POINTS_LEAST, 1, error);
	else
		status = obv_job_cut(&m->job, a->count ? a->batch : 0, (double)a->count,
			!(a->canonical && a->memory), 1, a->count, error);
	sums = a->batch > m->job.piece_count ? a->batch : m->job.piece_count;
	m->sums = status == OUTBOARD_OK ? calloc(sums, sizeof(*m->sums)) : NULL;
	if (status == OUTBOARD_OK && !m->sums)
		status = obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
			"no memory for %zu sums", sums);
	if (status != OUTBOARD_OK)
		obv_job_unref(&m->job);
	else
		*ret = m;
	return status;
}

int outboard_msm_run(struct outboard_bases *bases, const struct outboard_msm *msm,
	const struct outboard_call *call, struct outboard_error *error)
{
	struct outboard_error own;
	struct outboard_msm a;
	struct msm_job *m = NULL;
	int status;

	error = error ? error : &own;
	if (!bases || !msm)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"the handle of points, or the struct with the arguments, is NULL");
	a = *msm;
	a.batch = a.batch ? a.batch : 1;
	status = check_range(bases, &a, error);
	if (status == OUTBOARD_OK)
		status = obv_memory_check(bases->context, a.memory, error);
	if (status == OUTBOARD_OK)
		status = check_scalars(&a, error);
	if (status == OUTBOARD_OK)
		status = msm_make(bases, &a, call, &m, error);
	return status == OUTBOARD_OK ? obv_job_submit(&m->job, error) : status;
}

int outboard_msm_plan(struct outboard_bases *bases, uint32_t device, uint64_t count, uint64_t batch,
	struct outboard_plan *ret_plan, struct outboard_error *error)
{
	const struct obv_backend *b;

	if (!bases || !ret_plan)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"the handle of points, or room for the plan, is NULL");
	if (device >= bases->context->count)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"there is no device %u: the context has %u", device, bases->context->count);
	if (!count || count > bases->count || !batch || batch > OUTBOARD_MAX_BATCH)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"a plan for %llu products of %llu points: 1 to %d of 1 to %zu are possible",
			(unsigned long long)batch, (unsigned long long)count, OUTBOARD_MAX_BATCH,
			bases->count);
	b = &bases->context->device[device].backend;
	if (!b->ops->plan)
		return obv_fail(error, OUTBOARD_UNSUPPORTED, OUTBOARD_NO_ITEM,
			"%s is not a GPU: only GPUs have plans", b->name);
	return b->ops->plan(b->self, bases, (size_t)count, (size_t)batch, ret_plan, error);
}

int outboard_msm_once(struct outboard *context, const struct outboard_points *points,
	const struct outboard_msm *msm, struct outboard_error *error)
{
	struct outboard_bases *bases;
	struct outboard_points plain;
	int status;

	if (points) {
		plain = *points;
		/* making a table takes longer than one product saves */
		plain.table_bytes = 0;
	}
	status = outboard_bases_new(context, points ? &plain : NULL, &bases, error);
	if (status != OUTBOARD_OK)
		return status;
	bases->once = true;
	status = outboard_msm_run(bases, msm, NULL, error);
	outboard_bases_free(bases);
	return status;
}
