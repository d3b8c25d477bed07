/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* NTT calls as jobs: a batch is cut between its transforms; each transform runs on one device. */
#include <stdlib.h>
#include <string.h>

#include "compute/engine/engine.h"
#include "compute/engine/scalars.h"

#define CONVERT_BLOCK 4096

struct outboard_ntt {
	struct outboard *context;
	unsigned refs; /* under the context's lock */
	struct obk_ntt_job shape;
	struct obk_fr coset;
	uint32_t format;
};

struct ntt_job {
	struct obv_job job;
	struct outboard_ntt *ntt;
	uint8_t *data;
	bool on_device;
};

static void ntt_unref(struct outboard_ntt *ntt)
{
	struct outboard *context = ntt->context;
	bool last;

	pthread_mutex_lock(&context->lock);
	last = --ntt->refs == 0;
	pthread_mutex_unlock(&context->lock);
	if (!last)
		return;
	free(ntt);
	obv_context_unref(context);
}

/* ---- formats ---- */

static void reverse_bytes(uint64_t *plain)
{
	uint64_t l[4];

	memcpy(l, plain, sizeof(l));
	for (unsigned i = 0; i < 4; i++)
		plain[i] = __builtin_bswap64(l[3 - i]);
}

static void to_montgomery(struct obk_fr *to, const void *from, uint32_t format)
{
	uint64_t plain[4];

	memcpy(plain, from, sizeof(plain));
	if (format == OUTBOARD_SCALAR_BE)
		reverse_bytes(plain);
	if (format == OUTBOARD_SCALAR_MONTGOMERY)
		memcpy(to, plain, sizeof(plain));
	else
		obk_fr_from_plain(to, plain);
}

static void from_montgomery(void *to, const struct obk_fr *from, uint32_t format)
{
	uint64_t plain[4];

	obk_fr_to_plain(plain, from);
	if (format == OUTBOARD_SCALAR_BE)
		reverse_bytes(plain);
	memcpy(to, plain, sizeof(plain));
}

struct conversion {
	struct obk_fr *elements;
	const uint8_t *from;
	uint8_t *to;
	size_t n;
	uint32_t format;
};

static void convert_block(void *arg, size_t item, unsigned thread)
{
	const struct conversion *c = arg;
	size_t end = (item + 1) * CONVERT_BLOCK < c->n ? (item + 1) * CONVERT_BLOCK : c->n;

	(void)thread;
	for (size_t i = item * CONVERT_BLOCK; i < end; i++)
		if (c->from)
			to_montgomery(&c->elements[i], c->from + i * OBK_FR_BYTES, c->format);
		else
			from_montgomery(c->to + i * OBK_FR_BYTES, &c->elements[i], c->format);
}

/* False: `stop` returned true. */
static bool convert(struct obk_pool *pool, const struct obk_stop *stop, struct conversion *c)
{
	return obk_pool_run_until(
		pool, stop, (c->n + CONVERT_BLOCK - 1) / CONVERT_BLOCK, convert_block, c);
}

/* ---- jobs ---- */

static bool ntt_stopped(void *job)
{
	return obv_job_stopped(job);
}

/*
 * On the CPU the transform runs in place, because its kernel does not change the data when it fails
 * (it does when it is stopped, but then there is no other attempt). A GPU that fails while it
 * copies back may leave partial results, so it works on a copy, and another attempt finds the input
 * unchanged.
 */
static int ntt_host(struct ntt_job *n, struct obv_device *device, uint8_t *data, size_t batch,
	struct outboard_error *error)
{
	struct obv_backend *b = &device->backend;
	struct obk_pool *pool = b->ops->pool ? b->ops->pool(b->self) : NULL;
	size_t elements = batch << n->ntt->shape.log_n;
	struct obk_fr *copy = pool ? (struct obk_fr *)data : malloc(elements * sizeof(*copy));
	struct conversion in = {
		.elements = copy, .from = data, .n = elements, .format = n->ntt->format
	};
	struct conversion out = {
		.elements = copy, .to = data, .n = elements, .format = n->ntt->format
	};
	struct obv_ntt_work work = { .job = n->ntt->shape, .data = copy };
	bool plain = n->ntt->format != OUTBOARD_SCALAR_MONTGOMERY;
	int status = OUTBOARD_OK;

	if (!copy)
		return obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
			"no memory for a copy of %zu elements", elements);
	work.job.batch = batch;
	work.job.stop = (struct obk_stop){ ntt_stopped, &n->job };
	if (plain && !convert(pool, &work.job.stop, &in))
		status = OUTBOARD_CANCELLED;
	else if (!plain && !pool)
		memcpy(copy, data, elements * sizeof(*copy));
	if (status == OUTBOARD_OK)
		status = b->ops->ntt(b->self, &work, error);
	/*
	 * A kernel that failed has not changed the data: convert it back. Data of a stopped call is
	 * not used again.
	 */
	if (plain && (status == OUTBOARD_OK || (pool && status != OUTBOARD_CANCELLED)))
		status = convert(pool, &work.job.stop, &out) ? status : OUTBOARD_CANCELLED;
	else if (!pool && status == OUTBOARD_OK)
		memcpy(data, copy, elements * sizeof(*copy));
	if (!pool)
		free(copy);
	return status;
}

static int ntt_run(struct obv_job *job, struct obv_piece *piece, struct obv_device *device,
	struct outboard_error *error)
{
	struct ntt_job *n = (struct ntt_job *)job;
	uint8_t *data = n->data + (piece->first << n->ntt->shape.log_n) * OBK_FR_BYTES;
	struct obv_ntt_work work = {
		.job = n->ntt->shape, .data = data, .on_device = true, .after = job->call.after
	};

	if (obv_job_stopped(job))
		return OUTBOARD_CANCELLED;
	work.job.stop = (struct obk_stop){ ntt_stopped, job };
	if (!n->on_device)
		return ntt_host(n, device, data, piece->count, error);
	work.job.batch = piece->count;
	return device->backend.ops->ntt(device->backend.self, &work, error);
}

static void ntt_fini(struct obv_job *job)
{
	ntt_unref(((struct ntt_job *)job)->ntt);
}

static const struct obv_job_ops ntt_ops = { .run = ntt_run, .fini = ntt_fini };

int outboard_ntt_run(struct outboard_ntt *ntt, void *data, uint64_t batch, uint32_t memory,
	const struct outboard_call *call, struct outboard_error *error)
{
	struct outboard_error own;
	struct ntt_job *n;
	int status;

	error = error ? error : &own;
	if (!ntt || (!data && batch))
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM, "the %s is NULL",
			ntt ? "data" : "plan");
	if (batch > (OBK_NTT_MAX_BATCH >> ntt->shape.log_n))
		return obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM,
			"%llu transforms of 2^%u elements are more than 2^%d elements: use several "
			"calls",
			(unsigned long long)batch, ntt->shape.log_n, OUTBOARD_MAX_LOG_N);
	status = obv_memory_check(ntt->context, memory, error);
	if (status == OUTBOARD_OK && memory == OUTBOARD_HOST)
		status = obv_scalars_check(
			data, batch << ntt->shape.log_n, ntt->format, "element", error);
	if (status == OUTBOARD_OK && memory && ntt->format != OUTBOARD_SCALAR_MONTGOMERY)
		status = obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"elements on a device are in Montgomery form: make a plan with that "
			"format");
	if (status != OUTBOARD_OK)
		return status;
	n = obv_job_new(ntt->context, sizeof(*n), &ntt_ops, OUTBOARD_OP_NTT, call, error);
	if (!n)
		return error->status;
	pthread_mutex_lock(&ntt->context->lock);
	ntt->refs++;
	pthread_mutex_unlock(&ntt->context->lock);
	n->ntt = ntt;
	n->data = data;
	n->on_device = memory != OUTBOARD_HOST;
	if (memory)
		n->job.allowed = (uint64_t)1 << (memory - 1);
	status = obv_job_cut(&n->job, batch, (double)((uint64_t)1 << ntt->shape.log_n), true, 1,
		(uint64_t)1 << ntt->shape.log_n, error);
	if (status != OUTBOARD_OK) {
		obv_job_unref(&n->job);
		return status;
	}
	return obv_job_submit(&n->job, error);
}

int outboard_ntt_once(struct outboard *context, const struct outboard_ntt_shape *shape, void *data,
	uint64_t batch, struct outboard_error *error)
{
	struct outboard_ntt *ntt = NULL;
	int status = outboard_ntt_new(context, shape, &ntt, error);

	if (status != OUTBOARD_OK)
		return status;
	status = outboard_ntt_run(ntt, data, batch, OUTBOARD_HOST, NULL, error);
	outboard_ntt_free(ntt);
	return status;
}

/* ---- plans ---- */

static int check_shape(const struct outboard_ntt_shape *s, struct outboard_error *error)
{
	if (!s)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"the shape of the transform is NULL");
	if (s->log_n > OUTBOARD_MAX_LOG_N)
		return obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM,
			"2^%u elements are more than 2^%d", s->log_n, OUTBOARD_MAX_LOG_N);
	if (s->inverse > 1 || s->order > OUTBOARD_RR || s->format > OUTBOARD_SCALAR_MONTGOMERY)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"inverse is %u, order %u, format %u: 0 or 1, a value of enum "
			"outboard_order, a value of enum outboard_scalar_format",
			s->inverse, s->order, s->format);
	for (unsigned i = 0; i < sizeof(s->reserved) / sizeof(s->reserved[0]); i++)
		if (s->reserved[i])
			return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
				"shape.reserved is not zero: clear the struct before setting its "
				"fields");
	return s->coset
		? obv_scalars_check(s->coset, 1, s->format, "the coset's shift, element", error)
		: OUTBOARD_OK;
}

int outboard_ntt_new(struct outboard *context, const struct outboard_ntt_shape *shape,
	struct outboard_ntt **ret_ntt, struct outboard_error *error)
{
	struct outboard_ntt *n;
	int status = check_shape(shape, error);

	if (status != OUTBOARD_OK)
		return status;
	n = ret_ntt ? calloc(1, sizeof(*n)) : NULL;
	if (!n)
		return obv_fail(error, ret_ntt ? OUTBOARD_NO_MEMORY : OUTBOARD_ARGUMENT,
			OUTBOARD_NO_ITEM, "no memory, or nowhere to put the plan");
	n->refs = 1;
	n->format = shape->format;
	n->shape = (struct obk_ntt_job){ .log_n = shape->log_n,
		.direction = shape->inverse ? OBK_NTT_INVERSE : OBK_NTT_FORWARD,
		.order = (enum obk_ntt_order)shape->order };
	if (shape->coset) {
		to_montgomery(&n->coset, shape->coset, shape->format);
		n->shape.coset = &n->coset;
		if (obk_fr_is_zero(&n->coset)) {
			free(n);
			return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
				"the coset's shift is 0: any other element will do");
		}
	}
	status = obv_context_get(context, &n->context, error);
	if (status != OUTBOARD_OK)
		free(n);
	else
		*ret_ntt = n;
	return status;
}

void outboard_ntt_free(struct outboard_ntt *ntt)
{
	if (ntt)
		ntt_unref(ntt);
}
