/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * KZG calls as jobs. The CPU devices share one setup; each has a view of it with its own threads,
 * and they can execute everything. GPUs hold the setup's points and execute commitments, proofs of
 * values and proofs of cells. For these a CPU computes the scalars (and the contents of cells), and
 * the GPU does all computations with points. Lists are cut between their items.
 */
#include "compute/kzg/kzg.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/opt.h"
#include "base/thread.h"
#include "compute/engine/bases.h"
#include "compute/engine/engine.h"
#include "compute/msm/gpu.h"

#define GPU_BLOBS    64 /* blobs in one batch of sums: 8 MiB of scalars */
/*
 * blobs per batch if the next batch is prepared meanwhile: enough to keep a GPU busy, with a short
 * delay before the first batch
 */
#define AHEAD_BLOBS  16
#define CELLS_BYTES  ((size_t)OBK_KZG_CELLS * OBK_KZG_CELL_BYTES)
#define VERIFY_LEAST 16 /* fewest claims in a part; claims are checked together */

struct outboard_kzg {
	struct outboard *context;
	unsigned refs; /* under the context's lock */
	struct obk_kzg *setup;
	struct obk_kzg *view[OUTBOARD_MAX_DEVICES];
	/* a view without threads, for many blobs with one thread each */
	struct obk_kzg *serial;
	struct outboard_bases *points; /* the points of the setup, for GPUs; NULL: there are none */
	/* bits in the digits of the GPUs' tables for cell proofs; 0: by memory */
	unsigned cell_window;
	pthread_mutex_t lock; /* guards cell_points */
	/* points for cell proofs; NULL until the first cell proof makes them */
	struct outboard_bases *cell_points;
};

enum verb { COMMIT, PROVE, PROVE_BLOBS, VERIFY, VERIFY_BLOBS, CELLS, RECOVER, VERIFY_CELLS };

struct kzg_job {
	struct obv_job job;
	struct outboard_kzg *kzg;
	enum verb verb;
	const uint8_t *blobs, *commitments, *z, *y, *proofs, *cells;
	const uint64_t *indices;
	uint64_t n;
	uint8_t *ret_a, *ret_b;
	int *ret_valid;
	bool *valid; /* one per piece */
	/* index of the first bad blob in the lowest piece that has one; a hint */
	_Atomic uint64_t bad;
};

static void kzg_unref(struct outboard_kzg *kzg)
{
	struct outboard *context = kzg->context;
	bool last;

	pthread_mutex_lock(&context->lock);
	last = --kzg->refs == 0;
	pthread_mutex_unlock(&context->lock);
	if (!last)
		return;
	for (unsigned i = 0; i < context->count; i++)
		obk_kzg_free(kzg->view[i]);
	obk_kzg_free(kzg->serial);
	obk_kzg_free(kzg->setup);
	obv_bases_unref(kzg->points);
	obv_bases_unref(kzg->cell_points);
	pthread_mutex_destroy(&kzg->lock);
	free(kzg);
	obv_context_unref(context);
}

/* ---- one piece ---- */

/*
 * Describes what is wrong with blob i of the call or with its arguments. Elements are counted over
 * all blobs.
 */
static int blob_at_fault(const struct kzg_job *k, uint64_t i, enum ob_err err,
	const struct obk_fault *fault, struct outboard_error *error)
{
	if (err != OB_ERR_ARGUMENT || k->n == 1)
		return obv_fail_fault(error, err, fault);
	return obv_fail(error, obv_status_of(err),
		fault->item == OBK_FAULT_NO_ITEM ? i : i * OBK_KZG_BLOB_ELEMENTS + fault->item,
		"blob %llu: %s", (unsigned long long)i, fault->text);
}

/*
 * True if an earlier piece has a bad blob: the result of the call is then that of the earlier
 * piece.
 */
static bool superseded(struct kzg_job *k, const struct obv_piece *piece)
{
	return atomic_load_explicit(&k->bad, memory_order_relaxed) < piece->first;
}

static void bad_piece(struct kzg_job *k, const struct obv_piece *piece)
{
	uint64_t lowest = atomic_load_explicit(&k->bad, memory_order_relaxed);

	while (piece->first < lowest &&
		!atomic_compare_exchange_weak(&k->bad, &lowest, piece->first))
		;
}

/* Processes item by item, so that the index of a bad one is known and the rest can be cancelled. */
static int each(struct kzg_job *k, const struct obk_kzg *kzg, struct obv_piece *piece,
	struct outboard_error *error)
{
	for (uint64_t i = piece->first; i < piece->first + piece->count && !superseded(k, piece);
		i++) {
		const uint8_t *blob = k->blobs + i * OBK_KZG_BLOB_BYTES;
		struct obk_fault fault = { .item = OBK_FAULT_NO_ITEM };
		enum ob_err err;

		if (k->verb == COMMIT)
			err = obk_kzg_commit(kzg, blob, k->ret_a + i * OBK_KZG_POINT_BYTES, &fault);
		else if (k->verb == PROVE_BLOBS)
			err = obk_kzg_prove_blob(kzg, blob,
				k->commitments + i * OBK_KZG_POINT_BYTES,
				k->ret_a + i * OBK_KZG_POINT_BYTES, &fault);
		else
			err = obk_kzg_cells(kzg, blob, k->ret_a ? k->ret_a + i * CELLS_BYTES : NULL,
				k->ret_b ? k->ret_b + i * OBK_KZG_CELLS * OBK_KZG_POINT_BYTES
					 : NULL,
				&fault);
		if (err)
			return blob_at_fault(k, i, err, &fault, error);
		if (!obv_job_progress(&k->job, piece->index,
			    (double)(i + 1 - piece->first) / (double)piece->count) &&
			i + 1 < piece->first + piece->count)
			return OUTBOARD_CANCELLED;
	}
	return OUTBOARD_OK;
}

static enum ob_err whole(struct kzg_job *k, const struct obk_kzg *kzg, struct obv_piece *piece,
	struct obk_fault *fault)
{
	size_t at = piece->first, n = piece->count;

	switch (k->verb) {
	case PROVE:
		return obk_kzg_prove(kzg, k->blobs, k->z, k->ret_a, k->ret_b, fault);
	case VERIFY:
		return obk_kzg_verify(
			kzg, k->commitments, k->z, k->y, k->proofs, &k->valid[piece->index], fault);
	case VERIFY_BLOBS:
		if (k->n == 1)
			return obk_kzg_verify_blob(kzg, k->blobs, k->commitments, k->proofs,
				&k->valid[piece->index], fault);
		return obk_kzg_verify_blob_batch(kzg, k->blobs + at * OBK_KZG_BLOB_BYTES,
			k->commitments + at * OBK_KZG_POINT_BYTES,
			k->proofs + at * OBK_KZG_POINT_BYTES, n, &k->valid[piece->index], fault);
	case VERIFY_CELLS:
		return obk_kzg_verify_cells(kzg, k->commitments + at * OBK_KZG_POINT_BYTES,
			k->indices + at, k->cells + at * OBK_KZG_CELL_BYTES,
			k->proofs + at * OBK_KZG_POINT_BYTES, n, &k->valid[piece->index], fault);
	default:
		return obk_kzg_recover(kzg, k->indices, k->cells, k->n, k->ret_a, k->ret_b, fault);
	}
}

/* ---- one piece on a GPU ---- */

/*
 * Preparation of a batch. If the next batch is prepared while the GPU executes this one, there are
 * two, and a separate thread prepares the next.
 */
struct preparation {
	const struct kzg_job *k;
	const struct obk_kzg *setup; /* its pool's threads are used */
	uint64_t first;
	size_t n;
	bool begun;       /* `thread` was started and must be joined */
	atomic_bool drop; /* the result is no longer needed */
	/* incomplete, because the job is stopped or the result is no longer needed */
	bool left;
	pthread_t thread;
	size_t each; /* scalars per blob; 0 for commitments */
	struct obk_fr *scalars;
	/* cells of each blob, kept until the proofs are complete; NULL: not wanted */
	uint8_t *cells;
	struct obk_fault *faults;
	uint8_t y[OBK_KZG_ELEMENT_BYTES];
};

static void prepare_blob(void *arg, size_t item, unsigned thread)
{
	struct preparation *p = arg;
	const struct kzg_job *k = p->k;
	uint64_t i = p->first + item;
	const uint8_t *blob = k->blobs + i * OBK_KZG_BLOB_BYTES;
	struct obk_fr *scalars = p->scalars ? p->scalars + item * p->each : NULL;
	struct obk_fault *fault = &p->faults[item];

	(void)thread;
	*fault = (struct obk_fault){ .item = OBK_FAULT_NO_ITEM };
	if (k->verb == COMMIT)
		fault->err = obk_kzg_check_blob(blob, fault);
	else if (k->verb == CELLS)
		fault->err = obk_kzg_cell_scalars(p->setup, blob, scalars,
			p->cells ? p->cells + item * CELLS_BYTES : NULL, fault);
	else if (k->verb == PROVE)
		fault->err = obk_kzg_prove_scalars(p->setup, blob, k->z, scalars, p->y, fault);
	else
		fault->err = obk_kzg_prove_blob_scalars(
			p->setup, blob, k->commitments + i * OBK_KZG_POINT_BYTES, scalars, fault);
}

static bool unwanted(void *arg)
{
	const struct preparation *p = arg;

	return atomic_load_explicit(&p->drop, memory_order_relaxed) || obv_job_stopped(&p->k->job);
}

/*
 * Computes the scalars of the blobs [p->first, + p->n) with the CPU's threads: all of them for one
 * blob at a time, or one thread per blob.
 */
static void *prepare(void *arg)
{
	struct preparation *p = arg;
	struct obv_device *cpu = obv_context_cpu(p->k->job.context);

	p->setup = p->n == 1 ? p->k->kzg->setup : p->k->kzg->serial;
	p->left = false;
	if (p->n == 1)
		prepare_blob(p, 0, 0);
	else
		p->left = !obk_pool_run_until(cpu->backend.ops->pool(cpu->backend.self),
			&(struct obk_stop){ unwanted, p }, p->n, prepare_blob, p);
	return NULL;
}

/* ahead: on a separate thread, if one can be started, until prepared() joins it. */
static void preparation_start(struct preparation *p, uint64_t first, size_t n, bool ahead)
{
	p->first = first;
	p->n = n;
	p->begun = ahead && ob_thread_start(prepare, p, 0, &p->thread);
	if (!p->begun)
		prepare(p);
}

static void join(struct preparation *p)
{
	if (p->begun)
		pthread_join(p->thread, NULL);
	p->begun = false;
}

/* Waits for the preparation; the error names the first bad blob. */
static int prepared(struct preparation *p, struct outboard_error *error)
{
	join(p);
	if (p->left)
		return OUTBOARD_CANCELLED;
	for (size_t i = 0; i < p->n; i++)
		if (p->faults[i].err)
			return blob_at_fault(
				p->k, p->first + i, p->faults[i].err, &p->faults[i], error);
	return OUTBOARD_OK;
}

/* Makes the points whose sums are the cell proofs, for GPUs. */
static int cell_points(
	struct outboard_kzg *kzg, struct outboard_bases **ret, struct outboard_error *error)
{
	struct obk_g1_affine *points;
	struct obk_fault fault;
	int status = OUTBOARD_OK;

	pthread_mutex_lock(&kzg->lock);
	if (!kzg->cell_points) {
		points = malloc(OBK_KZG_CELL_POINTS * sizeof(*points));
		if (!points)
			status = obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
				"no memory for the points behind cell proofs");
		else
			status = obv_fail_fault(
				error, obk_kzg_cell_points(kzg->setup, points, &fault), &fault);
		if (status == OUTBOARD_OK)
			status = obv_bases_for_gpus(kzg->context, points, OBK_KZG_CELL_POINTS, 0,
				&kzg->cell_points, error);
		free(points);
	}
	*ret = kzg->cell_points;
	pthread_mutex_unlock(&kzg->lock);
	return status;
}

static int preparation_init(
	struct preparation *p, const struct kzg_job *k, size_t room, struct outboard_error *error)
{
	bool cells = k->verb == CELLS, wanted = cells && k->ret_a;

	*p = (struct preparation){ .k = k,
		.each = cells ? OBK_KZG_CELL_POINTS : OBK_KZG_BLOB_ELEMENTS,
		.faults = malloc(room * sizeof(*p->faults)) };
	p->scalars = k->verb == COMMIT ? NULL : malloc(room * p->each * sizeof(*p->scalars));
	p->cells = wanted ? malloc(room * CELLS_BYTES) : NULL;
	if (!p->faults || (!p->scalars && k->verb != COMMIT) || (!p->cells && wanted))
		return obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
			"no memory for the scalars of %zu blobs", room);
	return OUTBOARD_OK;
}

static void preparation_fini(struct preparation *p)
{
	atomic_store_explicit(&p->drop, true, memory_order_relaxed);
	join(p);
	free(p->cells);
	free(p->scalars);
	free(p->faults);
}

/* The device's part: one point per blob; for cells 128. */
static int sum_blobs(const struct preparation *p, struct obv_device *device,
	struct obk_g1_affine *sums, struct outboard_error *error)
{
	const struct kzg_job *k = p->k;
	const struct obv_backend *b = &device->backend;

	if (k->verb == CELLS) {
		struct obv_device *cpu = obv_context_cpu(k->job.context);
		struct obv_cells_work work = { .scalars = p->scalars,
			.blobs = p->n,
			.window = k->kzg->cell_window,
			.pool = cpu->backend.ops->pool(cpu->backend.self) };
		int status = cell_points(k->kzg, &work.points, error);

		return status == OUTBOARD_OK ? b->ops->cells(b->self, &work, sums, error) : status;
	} else {
		struct obv_msm_work work = { .bases = k->kzg->points,
			.job = { .count = OBK_KZG_BLOB_ELEMENTS,
				.batch = p->n,
				.scalars = k->verb == COMMIT
					? (const void *)(k->blobs + p->first * OBK_KZG_BLOB_BYTES)
					: p->scalars,
				.format = k->verb == COMMIT ? OBK_SCALAR_BE : OBK_SCALAR_MONT } };

		return b->ops->msm(b->self, &work, sums, error);
	}
}

/* Writes the results of the blobs to the caller's memory. */
static void write_results(const struct preparation *p, const struct obk_g1_affine *sums)
{
	const struct kzg_job *k = p->k;
	size_t points = k->verb == CELLS ? OBK_KZG_CELLS : 1;
	uint8_t *out = k->verb == CELLS ? k->ret_b : k->ret_a;

	for (size_t i = 0; i < p->n * points; i++)
		obk_g1_encode_compressed(
			out + (p->first * points + i) * OBK_KZG_POINT_BYTES, &sums[i]);
	if (k->verb == PROVE)
		memcpy(k->ret_b, p->y, sizeof(p->y));
	if (p->cells)
		memcpy(k->ret_a + p->first * CELLS_BYTES, p->cells, p->n * CELLS_BYTES);
}

static int on_gpu(struct kzg_job *k, struct obv_piece *piece, struct obv_device *device,
	struct outboard_error *error)
{
	/* the transforms for cells take as long for one blob as for this many */
	size_t at_once = k->verb == PROVE_BLOBS ? AHEAD_BLOBS : GPU_BLOBS;
	bool ahead = ob_opt_on(OB_OPT_AHEAD) && piece->count > at_once;
	size_t room = ob_min(piece->count, ahead ? at_once : GPU_BLOBS), done = 0;
	struct preparation p[2] = { 0 };
	struct obk_g1_affine *sums =
		malloc(room * (k->verb == CELLS ? OBK_KZG_CELLS : 1) * sizeof(*sums));
	int status = sums ? OUTBOARD_OK
			  : obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
				    "no memory for the sums of %zu blobs", room);

	for (unsigned i = 0; i < 1u + ahead && status == OUTBOARD_OK; i++)
		status = preparation_init(&p[i], k, room, error);
	if (status == OUTBOARD_OK && piece->count)
		preparation_start(&p[0], piece->first, room, false);
	for (unsigned turn = 0;
		status == OUTBOARD_OK && done < piece->count && !superseded(k, piece);
		turn = ahead ? 1 - turn : 0) {
		size_t end = done + p[turn].n, next = ob_min(piece->count - end, room);

		status = prepared(&p[turn], error);
		if (status == OUTBOARD_OK && ahead && next)
			preparation_start(&p[1 - turn], piece->first + end, next, true);
		if (status == OUTBOARD_OK)
			status = sum_blobs(&p[turn], device, sums, error);
		if (status == OUTBOARD_OK)
			write_results(&p[turn], sums);
		done = end;
		if (status == OUTBOARD_OK &&
			!obv_job_progress(
				&k->job, piece->index, (double)done / (double)piece->count) &&
			next)
			status = OUTBOARD_CANCELLED;
		if (!ahead && next && status == OUTBOARD_OK && !superseded(k, piece))
			preparation_start(&p[0], piece->first + end, next, false);
	}
	preparation_fini(&p[0]);
	preparation_fini(&p[1]);
	free(sums);
	return status;
}

static int kzg_run(struct obv_job *job, struct obv_piece *piece, struct obv_device *device,
	struct outboard_error *error)
{
	struct kzg_job *k = (struct kzg_job *)job;
	const struct obk_kzg *kzg = k->kzg->view[device->index];
	struct obk_fault fault = { .item = OBK_FAULT_NO_ITEM };
	enum ob_err err;

	if (obv_job_stopped(job))
		return OUTBOARD_CANCELLED;
	if (!kzg || k->verb == COMMIT || k->verb == PROVE_BLOBS || k->verb == CELLS) {
		int status = kzg ? each(k, kzg, piece, error) : on_gpu(k, piece, device, error);

		if (status == OUTBOARD_ARGUMENT)
			bad_piece(k, piece);
		return status;
	}
	err = whole(k, kzg, piece, &fault);
	if (err && piece->first && fault.item != OBK_FAULT_NO_ITEM)
		return obv_fail(error, obv_status_of(err), fault.item + piece->first,
			"%s (counted from item %llu of the call)", fault.text,
			(unsigned long long)piece->first);
	return obv_fail_fault(error, err, &fault);
}

static int kzg_finish(struct obv_job *job, struct outboard_error *error)
{
	struct kzg_job *k = (struct kzg_job *)job;
	bool valid = true;

	(void)error;
	for (unsigned i = 0; i < job->piece_count; i++)
		valid &= k->valid[i];
	if (k->ret_valid)
		*k->ret_valid = valid;
	return OUTBOARD_OK;
}

static void kzg_fini(struct obv_job *job)
{
	struct kzg_job *k = (struct kzg_job *)job;

	kzg_unref(k->kzg);
	free(k->valid);
}

static const struct obv_job_ops kzg_ops = { .run = kzg_run,
	.finish = kzg_finish,
	.fini = kzg_fini };

/* ---- calls ---- */

/*
 * The devices that may execute a call; *ret_gpus: GPUs may. Only CPUs compute the contents of
 * cells; if proofs are wanted too, a CPU computes the contents for the GPU.
 */
static uint64_t allowed(const struct kzg_job *k, bool *ret_gpus)
{
	const struct outboard_kzg *kzg = k->kzg;
	bool cells = k->verb == CELLS && k->ret_b && ob_opt_on(OB_OPT_GPUCELLS);
	bool gpu_verb = k->verb == COMMIT || k->verb == PROVE || k->verb == PROVE_BLOBS || cells;
	uint64_t mask = 0;

	*ret_gpus = false;
	for (unsigned i = 0; i < kzg->context->count; i++) {
		const struct obv_backend *b = &kzg->context->device[i].backend;
		bool gpu = gpu_verb && kzg->points && b->kind == OUTBOARD_GPU &&
			(!cells || b->ops->cells);

		mask |= (uint64_t)(gpu || kzg->view[i]) << i;
		*ret_gpus |= gpu;
	}
	return mask;
}

/* `arguments` holds the arguments of the call; missing: a required one is NULL. */
static int start(struct outboard_kzg *kzg, const struct kzg_job *arguments, bool missing,
	const struct outboard_call *call, struct outboard_error *error)
{
	struct outboard_error own;
	struct kzg_job *k;
	bool cut =
		arguments->verb != RECOVER && arguments->verb != PROVE && arguments->verb != VERIFY;
	bool by_item = arguments->verb == COMMIT || arguments->verb == PROVE_BLOBS ||
		arguments->verb == CELLS,
	     gpus;
	int status;

	error = error ? error : &own;
	if (!kzg || missing)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM, "%s",
			kzg ? "an argument that is needed is NULL" : "the setup is NULL");
	if (arguments->n > OUTBOARD_MAX_BATCH)
		return obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM,
			"%llu items are more than %d: use several calls",
			(unsigned long long)arguments->n, OUTBOARD_MAX_BATCH);
	k = obv_job_new(kzg->context, sizeof(*k), &kzg_ops, OUTBOARD_OP_KZG, call, error);
	if (!k)
		return error->status;
	/* Copies everything after the job. */
	memcpy((char *)k + sizeof(k->job), (const char *)arguments + sizeof(k->job),
		sizeof(*k) - sizeof(k->job));
	pthread_mutex_lock(&kzg->context->lock);
	kzg->refs++;
	pthread_mutex_unlock(&kzg->context->lock);
	k->kzg = kzg;
	atomic_init(&k->bad, UINT64_MAX);
	k->job.allowed = allowed(k, &gpus);
	/*
	 * A GPU needs less time per blob for many than for one: its part is estimated and executed
	 * as a whole.
	 */
	if (gpus && cut)
		status = obv_job_cut(&k->job, k->n, 0, false, 1, 1, error);
	else
		status = obv_job_cut(&k->job, cut ? k->n : 1, 1, by_item, VERIFY_LEAST, 1, error);
	if (status == OUTBOARD_OK) {
		k->valid = calloc(k->job.piece_count + 1, sizeof(*k->valid));
		if (!k->valid)
			status = obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
				"no memory for a call");
		/* A piece without claims counts as valid. */
		for (unsigned i = 0; k->valid && i < k->job.piece_count; i++)
			k->valid[i] = true;
	}
	if (status != OUTBOARD_OK) {
		obv_job_unref(&k->job);
		return status;
	}
	return obv_job_submit(&k->job, error);
}

int outboard_kzg_commit(struct outboard_kzg *kzg, const uint8_t *blobs, uint64_t n,
	uint8_t *ret_commitments, const struct outboard_call *call, struct outboard_error *error)
{
	return start(kzg,
		&(struct kzg_job){
			.verb = COMMIT, .blobs = blobs, .n = n, .ret_a = ret_commitments },
		n && (!blobs || !ret_commitments), call, error);
}

int outboard_kzg_prove(struct outboard_kzg *kzg, const uint8_t *blob, const uint8_t *z,
	uint8_t *ret_proof, uint8_t *ret_y, const struct outboard_call *call,
	struct outboard_error *error)
{
	return start(kzg,
		&(struct kzg_job){ .verb = PROVE,
			.blobs = blob,
			.z = z,
			.n = 1,
			.ret_a = ret_proof,
			.ret_b = ret_y },
		!blob || !z || !ret_proof || !ret_y, call, error);
}

int outboard_kzg_prove_blobs(struct outboard_kzg *kzg, const uint8_t *blobs,
	const uint8_t *commitments, uint64_t n, uint8_t *ret_proofs,
	const struct outboard_call *call, struct outboard_error *error)
{
	return start(kzg,
		&(struct kzg_job){ .verb = PROVE_BLOBS,
			.blobs = blobs,
			.commitments = commitments,
			.n = n,
			.ret_a = ret_proofs },
		n && (!blobs || !commitments || !ret_proofs), call, error);
}

int outboard_kzg_verify(struct outboard_kzg *kzg, const uint8_t *commitment, const uint8_t *z,
	const uint8_t *y, const uint8_t *proof, int *ret_valid, const struct outboard_call *call,
	struct outboard_error *error)
{
	return start(kzg,
		&(struct kzg_job){ .verb = VERIFY,
			.commitments = commitment,
			.z = z,
			.y = y,
			.proofs = proof,
			.n = 1,
			.ret_valid = ret_valid },
		!commitment || !z || !y || !proof || !ret_valid, call, error);
}

int outboard_kzg_verify_blobs(struct outboard_kzg *kzg, const uint8_t *blobs,
	const uint8_t *commitments, const uint8_t *proofs, uint64_t n, int *ret_valid,
	const struct outboard_call *call, struct outboard_error *error)
{
	return start(kzg,
		&(struct kzg_job){ .verb = VERIFY_BLOBS,
			.blobs = blobs,
			.commitments = commitments,
			.proofs = proofs,
			.n = n,
			.ret_valid = ret_valid },
		!ret_valid || (n && (!blobs || !commitments || !proofs)), call, error);
}

int outboard_kzg_cells(struct outboard_kzg *kzg, const uint8_t *blobs, uint64_t n,
	uint8_t *ret_cells, uint8_t *ret_proofs, const struct outboard_call *call,
	struct outboard_error *error)
{
	return start(kzg,
		&(struct kzg_job){ .verb = CELLS,
			.blobs = blobs,
			.n = n,
			.ret_a = ret_cells,
			.ret_b = ret_proofs },
		n && !blobs, call, error);
}

int outboard_kzg_recover(struct outboard_kzg *kzg, const uint64_t *indices, const uint8_t *cells,
	uint64_t n, uint8_t *ret_cells, uint8_t *ret_proofs, const struct outboard_call *call,
	struct outboard_error *error)
{
	return start(kzg,
		&(struct kzg_job){ .verb = RECOVER,
			.indices = indices,
			.cells = cells,
			.n = n,
			.ret_a = ret_cells,
			.ret_b = ret_proofs },
		n && (!indices || !cells), call, error);
}

int outboard_kzg_verify_cells(struct outboard_kzg *kzg, const uint8_t *commitments,
	const uint64_t *indices, const uint8_t *cells, const uint8_t *proofs, uint64_t n,
	int *ret_valid, const struct outboard_call *call, struct outboard_error *error)
{
	return start(kzg,
		&(struct kzg_job){ .verb = VERIFY_CELLS,
			.commitments = commitments,
			.indices = indices,
			.cells = cells,
			.proofs = proofs,
			.n = n,
			.ret_valid = ret_valid },
		!ret_valid || (n && (!commitments || !indices || !cells || !proofs)), call, error);
}

/* ---- setups ---- */

typedef enum ob_err load_fn(const char *text, size_t length, const struct obk_kzg_options *options,
	struct obk_kzg **ret_kzg, struct obk_fault *fault);

static enum ob_err load_path(const char *path, size_t length, const struct obk_kzg_options *options,
	struct obk_kzg **ret_kzg, struct obk_fault *fault)
{
	(void)length;
	return obk_kzg_load_file(path, options, ret_kzg, fault);
}

/* Makes one view for each CPU device. */
static enum ob_err load_views(struct outboard_kzg *k, load_fn *load, const char *text,
	size_t length, const struct outboard_kzg_options *asked, struct obk_fault *fault)
{
	struct obk_kzg_options options = { .cell_window = asked ? asked->cell_window : 0,
		.commit_table = asked ? asked->table_bytes : 0 };
	enum ob_err err = OB_ERR_NONE;

	for (unsigned i = 0; i < k->context->count && !err; i++) {
		const struct obv_backend *b = &k->context->device[i].backend;

		if (!b->ops->pool)
			continue;
		options.pool = b->ops->pool(b->self);
		if (!k->setup)
			err = load(text, length, &options, &k->setup, fault);
		if (!err)
			err = obk_kzg_share(k->setup, options.pool, &k->view[i], fault);
	}
	if (!err && k->setup)
		err = obk_kzg_share(k->setup, NULL, &k->serial, fault);
	if (!err && !k->setup)
		err = obk_fault_set(fault, OB_ERR_UNSUPPORTED, OBK_FAULT_NO_ITEM,
			"KZG needs a CPU among the context's devices");
	return err;
}

static int load_setup(struct outboard *context, load_fn *load, const char *text, size_t length,
	const struct outboard_kzg_options *options, struct outboard_kzg **ret_kzg,
	struct outboard_error *error)
{
	struct outboard_kzg *k;
	struct obk_fault fault;
	int status;

	if (!text || !ret_kzg)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM, "the %s is NULL",
			ret_kzg ? "setup's text or path" : "place for the setup");
	k = calloc(1, sizeof(*k));
	if (!k)
		return obv_fail(
			error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM, "no memory for a setup");
	status = obv_context_get(context, &k->context, error);
	if (status != OUTBOARD_OK) {
		free(k);
		return status;
	}
	k->refs = 1;
	pthread_mutex_init(&k->lock, NULL);
	if (options && options->cell_window)
		k->cell_window =
			ob_min(ob_max(options->cell_window, OBK_MSM_GPU_MULTIPLES_MIN_BITS),
				OBK_MSM_GPU_MULTIPLES_MAX_BITS);
	status = obv_fail_fault(error, load_views(k, load, text, length, options, &fault), &fault);
	if (status == OUTBOARD_OK && obv_context_has_gpu(k->context))
		status = obv_bases_for_gpus(k->context, obk_kzg_points(k->setup),
			OBK_KZG_BLOB_ELEMENTS, options ? options->table_bytes : 0, &k->points,
			error);
	if (status != OUTBOARD_OK)
		kzg_unref(k);
	else
		*ret_kzg = k;
	return status;
}

int outboard_kzg_load(struct outboard *context, const char *text, size_t length,
	const struct outboard_kzg_options *options, struct outboard_kzg **ret_kzg,
	struct outboard_error *error)
{
	return load_setup(context, obk_kzg_load, text, length, options, ret_kzg, error);
}

int outboard_kzg_load_file(struct outboard *context, const char *path,
	const struct outboard_kzg_options *options, struct outboard_kzg **ret_kzg,
	struct outboard_error *error)
{
	return load_setup(context, load_path, path, 0, options, ret_kzg, error);
}

void outboard_kzg_free(struct outboard_kzg *kzg)
{
	if (kzg)
		kzg_unref(kzg);
}
