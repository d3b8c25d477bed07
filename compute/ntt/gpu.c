/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <pthread.h>
#include <stdlib.h>

#include "compute/ntt/gpu.h"
#include "compute/ntt/gpu_shape.h"
#include "compute/ntt/roots.h"

#define MAX_ELEMENTS ((size_t)1 << 32)
#define FIRST_LOG    12 /* log2 of the roots that the CPU computes */
/*
 * most levels in a pass whose tiles are not contiguous: it reads four elements, 128 bytes, at a
 * time
 */
#define PASS_LEVELS  8
#define POWERS       ((size_t)3 << OBK_NTT_POWERS_LOG)
#define GRID_ROWS    ((size_t)32768)
#define GRID_BLOCKS  ((size_t)1 << 30)

enum { PASS, REVERSE, MORE_ROOTS, KERNELS };

extern const unsigned char obk_ntt_image_start[], obk_ntt_image_end[];
static const char *const names[KERNELS] = { "ntt_pass", "ntt_reverse", "ntt_more_roots" };
static const struct obk_gpu_image image = { "transforms", obk_ntt_image_start, obk_ntt_image_end,
	KERNELS, names };

struct obk_ntt_gpu {
	struct obk_gpu *gpu;
	const CUfunction *kernels;
	unsigned roots_max; /* log2 of the longest table of roots */
	/* guards the pointers to the tables; a table never changes, larger ones are added */
	pthread_mutex_t lock;
	struct obk_gpu_buffer roots[OBK_NTT_ROOTS_MAX_LOG + 1], far_roots;
};

/* State of one call. */
struct call {
	struct obk_ntt_gpu *domain;
	const struct obk_ntt_job *job;
	CUdeviceptr data, roots, powers;
	CUstream stream;
	unsigned roots_log;
	struct obk_fault *fault;
};

/* Roots number 2^roots_max i: the products with them are the roots beyond the table. */
static enum ob_err make_far_roots(
	struct obk_ntt_gpu *d, unsigned roots_max, CUstream stream, struct obk_fault *fault)
{
	unsigned log = OBK_NTT_GPU_MAX_LOG_N - 1 - roots_max;
	struct obk_fr *far_roots = malloc(sizeof(*far_roots) << log);
	enum ob_err err;

	if (!far_roots)
		return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for 2^%u roots of unity", log);
	far_roots[0] = obk_fr_one;
	for (unsigned k = 0; k < log; k++) {
		struct obk_fr w;

		obk_fr_root(&w, k + roots_max + 2);
		for (unsigned i = 0; i < 1u << k; i++)
			obk_fr_mul(&far_roots[(1u << k) + i], &far_roots[i], &w);
	}
	obk_gpu_give(d->gpu, &d->far_roots);
	err = obk_gpu_take(d->gpu, sizeof(*far_roots) << log, &d->far_roots, fault);
	if (!err)
		err = obk_gpu_write(d->gpu, stream, d->far_roots.at, far_roots,
			sizeof(*far_roots) << log, fault);
	err = err ? err : obk_gpu_wait(d->gpu, stream, fault);
	free(far_roots);
	d->roots_max = roots_max;
	return err;
}

static enum ob_err fill_roots(struct obk_ntt_gpu *d, CUdeviceptr roots, unsigned log,
	CUstream stream, struct obk_fault *fault)
{
	const struct obk_fr *first = obk_roots_get(FIRST_LOG);
	unsigned have = log < FIRST_LOG ? log : FIRST_LOG;
	enum ob_err err;

	if (!first)
		return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for 2^%u roots of unity", FIRST_LOG);
	err = obk_gpu_write(d->gpu, stream, roots, first, sizeof(*first) << have, fault);
	for (; have < log && !err; have++) {
		struct obk_fr w;

		obk_fr_root(&w, have + 2);
		err = obk_gpu_launch(d->gpu, stream, d->kernels[MORE_ROOTS],
			((1u << have) + 255) / 256, 1, 256, 0, (void *[]){ &have, &roots, &w },
			fault);
	}
	return err ? err : obk_gpu_wait(d->gpu, stream, fault);
}

/*
 * Selects or makes a table for transforms of 2^log_n elements. log2 of its size is FIRST_LOG, 16,
 * 20 or the largest.
 */
static enum ob_err find_roots(struct call *c, struct obk_fault *fault)
{
	unsigned need = c->job->log_n ? c->job->log_n - 1 : 0, most = c->domain->roots_max;
	unsigned log = need <= FIRST_LOG ? FIRST_LOG
		: need <= 16             ? 16
		: need <= 20             ? 20
					 : OBK_NTT_ROOTS_MAX_LOG;
	struct obk_ntt_gpu *d = c->domain;
	struct obk_gpu_buffer table = { 0 };
	enum ob_err err = OB_ERR_NONE;

	log = log < most ? log : most;
	pthread_mutex_lock(&d->lock);
	if (!d->roots[log].at) {
		err = obk_gpu_take(d->gpu, sizeof(struct obk_fr) << log, &table, fault);
		if (!err)
			err = fill_roots(d, table.at, log, c->stream, fault);
		if (err)
			obk_gpu_give(d->gpu, &table);
		else
			d->roots[log] = table;
	}
	c->roots = d->roots[log].at;
	c->roots_log = log;
	pthread_mutex_unlock(&d->lock);
	return err;
}

/*
 * Makes three tables: by shift^k, shift^(2^10 k), shift^(2^20 k). All entries of the first one
 * include the factor `by`.
 */
static enum ob_err make_powers(struct call *c, const struct obk_fr *by, const struct obk_fr *shift,
	struct obk_gpu_buffer *ret_buffer, struct obk_fr **ret_host)
{
	struct obk_gpu *gpu = c->domain->gpu;
	size_t size = (size_t)1 << OBK_NTT_POWERS_LOG;
	struct obk_fr step = *shift, *p = malloc(POWERS * sizeof(*p));
	enum ob_err err;

	if (!p)
		return obk_fault_set(c->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for a table of powers");
	*ret_host = p;
	for (unsigned t = 0; t < 3; t++, p += size) {
		p[0] = t ? obk_fr_one : *by;
		for (size_t k = 1; k < size; k++)
			obk_fr_mul(&p[k], &p[k - 1], &step);
		for (unsigned k = 0; k < OBK_NTT_POWERS_LOG; k++)
			obk_fr_sqr(&step, &step);
	}
	err = obk_gpu_take(gpu, POWERS * sizeof(*p), ret_buffer, c->fault);
	c->powers = ret_buffer->at;
	return err ? err
		   : obk_gpu_write(
			     gpu, c->stream, c->powers, *ret_host, POWERS * sizeof(*p), c->fault);
}

static enum ob_err run_pass(struct call *c, const struct obk_ntt_pass *pass)
{
	struct obk_ntt_pass p = *pass;
	unsigned tile_log = p.levels + p.low_log, threads = tile_log < 1 ? 1 : 1u << (tile_log - 1);
	size_t tiles = c->job->batch << (p.log_n - tile_log);
	enum ob_err err = OB_ERR_NONE;

	threads = threads < 32 ? 32 : threads > OBK_NTT_THREADS ? OBK_NTT_THREADS : threads;
	/* launches process whole transforms */
	for (size_t done = 0; done < tiles && !err;) {
		size_t some = tiles - done < GRID_BLOCKS ? tiles - done : GRID_BLOCKS;
		CUdeviceptr data = c->data + (done << tile_log) * sizeof(struct obk_fr);

		err = obk_gpu_launch(c->domain->gpu, c->stream, c->domain->kernels[PASS],
			(unsigned)some, 1, threads, 0,
			(void *[]){ &p, &data, &c->roots, &c->domain->far_roots.at, &c->powers },
			c->fault);
		done += some;
	}
	return err;
}

/*
 * Divides the levels of a network into passes: the last levels in contiguous tiles, the preceding
 * ones in equal parts.
 */
static enum ob_err run_network(struct call *c, uint32_t scale_in, uint32_t scale_out)
{
	bool gather = c->job->order == OBK_NTT_RN || c->job->order == OBK_NTT_RR;
	unsigned log_n = c->job->log_n, last = log_n < OBK_NTT_TILE_LOG ? log_n : OBK_NTT_TILE_LOG,
		 before = log_n - last;
	unsigned passes = 1 + (before + PASS_LEVELS - 1) / PASS_LEVELS;
	enum ob_err err = OB_ERR_NONE;

	for (unsigned i = 0; i < passes && !err; i++) {
		/* the number of the pass in the order of scatter */
		unsigned at = gather ? passes - 1 - i : i;
		unsigned parts = passes - 1, from = parts ? before * at / parts : 0,
			 to = parts ? before * (at + 1) / parts : 0;
		struct obk_ntt_pass p = { .log_n = log_n,
			.level = from,
			.levels = to - from,
			.low_log = OBK_NTT_TILE_LOG - (to - from),
			.gather = gather,
			.inverse = c->job->direction == OBK_NTT_INVERSE,
			.roots_log = c->roots_log };

		if (at == parts) {
			p.level = before;
			p.levels = last;
			p.low_log = 0;
		}
		p.scale_in = i == 0 ? scale_in : OBK_NTT_SCALE_NONE;
		p.scale_out = i == passes - 1 ? scale_out : OBK_NTT_SCALE_NONE;
		err = run_pass(c, &p);
	}
	return err;
}

static enum ob_err reverse(struct call *c)
{
	uint32_t log_n = c->job->log_n, blocks = (uint32_t)((((size_t)1 << log_n) + 255) / 256);
	enum ob_err err = OB_ERR_NONE;

	for (size_t done = 0; done < c->job->batch && !err;) {
		size_t some = c->job->batch - done < GRID_ROWS ? c->job->batch - done : GRID_ROWS;
		CUdeviceptr data = c->data + (done << log_n) * sizeof(struct obk_fr);

		err = obk_gpu_launch(c->domain->gpu, c->stream, c->domain->kernels[REVERSE], blocks,
			(unsigned)some, 256, 0, (void *[]){ &log_n, &data }, c->fault);
		done += some;
	}
	return err;
}

/*
 * *buffer and *host receive the tables of powers, if there are any. Both must stay valid until the
 * stream is done.
 */
static enum ob_err transform(struct call *c, struct obk_gpu_buffer *buffer, struct obk_fr **host)
{
	const struct obk_ntt_job *job = c->job;
	bool inverse = job->direction == OBK_NTT_INVERSE, coset = job->coset != NULL;
	bool in_reversed = job->order == OBK_NTT_RN || job->order == OBK_NTT_RR,
	     out_reversed = job->order == OBK_NTT_NR || job->order == OBK_NTT_RR;
	/* the network reverses the order */
	bool turn = job->order == OBK_NTT_NN || job->order == OBK_NTT_RR;
	struct obk_fr by = obk_fr_one, shift = coset ? *job->coset : obk_fr_one;
	uint32_t in = OBK_NTT_SCALE_NONE, out = OBK_NTT_SCALE_NONE;
	enum ob_err err = find_roots(c, c->fault);

	if (err)
		return err;
	if (inverse) {
		obk_fr_from_plain(&by, (uint64_t[4]){ (uint64_t)1 << job->log_n });
		obk_fr_inv(&by, &by);
		obk_fr_inv(&shift, &shift);
		/*
		 * scaled in the order in which the last pass leaves the elements, which differs
		 * from the final order if they are reordered afterwards
		 */
		out = !coset                   ? OBK_NTT_SCALE_CONSTANT
			: out_reversed != turn ? OBK_NTT_SCALE_REVERSED
					       : OBK_NTT_SCALE_NATURAL;
	} else if (coset) {
		in = in_reversed ? OBK_NTT_SCALE_REVERSED : OBK_NTT_SCALE_NATURAL;
	}
	if (in || out)
		err = make_powers(c, &by, &shift, buffer, host);
	if (!err && job->log_n)
		err = run_network(c, in, out);
	if (!err && turn)
		err = reverse(c);
	return err;
}

/*
 * Waits, also after an error, because no work may be pending on buffers that are given back. An
 * earlier error is the one that is returned.
 */
static enum ob_err finish(struct call *c, enum ob_err err)
{
	enum ob_err late = obk_gpu_wait(c->domain->gpu, c->stream, err ? NULL : c->fault);

	return err ? err : late;
}

/* On a stream of its own; copies from and to `host` if that is not NULL. */
static enum ob_err run_entered(struct call *c, struct obk_fr *host)
{
	struct obk_gpu *gpu = c->domain->gpu;
	size_t bytes = (c->job->batch * sizeof(*host)) << c->job->log_n;
	struct obk_gpu_buffer data = { 0 }, powers = { 0 };
	struct obk_fr *table = NULL;
	bool own = !c->stream;
	enum ob_err err = own ? obk_gpu_stream_take(gpu, &c->stream, c->fault) : OB_ERR_NONE;

	if (err)
		return err;
	if (host) {
		err = obk_gpu_take(gpu, bytes, &data, c->fault);
		c->data = data.at;
		err = err ? err : obk_gpu_write(gpu, c->stream, c->data, host, bytes, c->fault);
	}
	err = err ? err : transform(c, &powers, &table);
	if (host && !err)
		err = obk_gpu_read(gpu, c->stream, host, c->data, bytes, c->fault);
	if ((err || own || table) && !obk_gpu_lost(gpu))
		err = finish(c, err);
	obk_gpu_give(gpu, &data);
	obk_gpu_give(gpu, &powers);
	free(table);
	if (own)
		obk_gpu_stream_give(gpu, c->stream);
	return err;
}

static enum ob_err run(struct call *c, struct obk_fr *host)
{
	enum ob_err err;

	/* a single element is its own transform, with or without a coset */
	if (c->job->batch == 0 || c->job->log_n == 0)
		return OB_ERR_NONE;
	err = obk_gpu_enter(c->domain->gpu, c->fault);
	if (err)
		return err;
	err = run_entered(c, host);
	obk_gpu_leave(c->domain->gpu);
	return err;
}

enum ob_err obk_ntt_gpu_run(struct obk_ntt_gpu *domain, const struct obk_ntt_job *job,
	struct obk_fr *data, struct obk_fault *fault)
{
	struct call c = { .domain = domain, .job = job, .fault = fault };
	enum ob_err err =
		obk_ntt_check(job, data != NULL, OBK_NTT_MAX_LOG_N, OBK_NTT_MAX_BATCH, fault);

	return err ? err : run(&c, data);
}

enum ob_err obk_ntt_gpu_run_device(struct obk_ntt_gpu *domain, const struct obk_ntt_job *job,
	CUdeviceptr data, CUstream stream, struct obk_fault *fault)
{
	struct call c = {
		.domain = domain, .job = job, .data = data, .stream = stream, .fault = fault
	};
	enum ob_err err = obk_ntt_check(job, data != 0, OBK_NTT_GPU_MAX_LOG_N, MAX_ELEMENTS, fault);

	if (!err && data % 16)
		err = obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the data on the device does not lie at a multiple of 16 bytes");
	return err ? err : run(&c, NULL);
}

enum ob_err obk_ntt_gpu_new(
	struct obk_gpu *gpu, struct obk_ntt_gpu **ret_domain, struct obk_fault *fault)
{
	struct obk_ntt_gpu *d = calloc(1, sizeof(*d));
	enum ob_err err;

	if (!d)
		return obk_fault_set(
			fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM, "no memory to note a domain");
	d->gpu = gpu;
	pthread_mutex_init(&d->lock, NULL);
	err = obk_gpu_enter(gpu, fault);
	if (!err) {
		err = obk_gpu_load(gpu, &image, &d->kernels, fault);
		obk_gpu_leave(gpu);
	}
	err = err ? err : obk_ntt_gpu_limit_roots(d, OBK_NTT_ROOTS_MAX_LOG, fault);
	if (err)
		obk_ntt_gpu_free(d);
	else
		*ret_domain = d;
	return err;
}

enum ob_err obk_ntt_gpu_limit_roots(struct obk_ntt_gpu *d, unsigned log, struct obk_fault *fault)
{
	CUstream stream;
	enum ob_err err;

	if (log < FIRST_LOG || log > OBK_NTT_ROOTS_MAX_LOG)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"a table of 2^%u roots is not in 2^%d..2^%d", log, FIRST_LOG,
			OBK_NTT_ROOTS_MAX_LOG);
	err = obk_gpu_enter(d->gpu, fault);
	if (err)
		return err;
	err = obk_gpu_stream_take(d->gpu, &stream, fault);
	if (!err) {
		err = make_far_roots(d, log, stream, fault);
		obk_gpu_stream_give(d->gpu, stream);
	}
	obk_gpu_leave(d->gpu);
	return err;
}

void obk_ntt_gpu_free(struct obk_ntt_gpu *domain)
{
	if (!domain)
		return;
	if (!obk_gpu_enter(domain->gpu, NULL)) {
		for (unsigned i = 0; i <= OBK_NTT_ROOTS_MAX_LOG; i++)
			obk_gpu_give(domain->gpu, &domain->roots[i]);
		obk_gpu_give(domain->gpu, &domain->far_roots);
		obk_gpu_leave(domain->gpu);
	}
	pthread_mutex_destroy(&domain->lock);
	free(domain);
}
