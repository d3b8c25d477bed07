/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* KZG as jobs of the CPU devices, which share one setup: each has a view of it with its own threads. Lists are cut between their items. */
#include "kernels/kzg/kzg.h"

#include <stdlib.h>
#include <string.h>

#include "service/engine.h"

#define VERIFY_LEAST 16 /* claims of a part: together they are checked at once */

struct outboard_kzg {
	struct outboard *context;
	unsigned refs; /* under the context's lock */
	struct obk_kzg *setup;
	struct obk_kzg *view[OUTBOARD_MAX_DEVICES];
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
	bool *valid; /* of each piece */
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
	obk_kzg_free(kzg->setup);
	free(kzg);
	obv_context_unref(context);
}

/* ---- one piece ---- */

/* Item by item, so that a bad one is known by its number and the rest can be cancelled. */
static enum ob_err each(struct kzg_job *k, const struct obk_kzg *kzg, struct obv_piece *piece, bool *ret_stopped, struct obk_fault *fault)
{
	for (uint64_t i = piece->first; i < piece->first + piece->count; i++) {
		const uint8_t *blob = k->blobs + i * OBK_KZG_BLOB_BYTES;
		enum ob_err err;

		if (k->verb == COMMIT)
			err = obk_kzg_commit(kzg, blob, k->ret_a + i * OBK_KZG_POINT_BYTES, fault);
		else if (k->verb == PROVE_BLOBS)
			err = obk_kzg_prove_blob(kzg, blob, k->commitments + i * OBK_KZG_POINT_BYTES, k->ret_a + i * OBK_KZG_POINT_BYTES, fault);
		else
			err = obk_kzg_cells(kzg, blob, k->ret_a ? k->ret_a + i * OBK_KZG_CELLS * OBK_KZG_CELL_BYTES : NULL,
				k->ret_b ? k->ret_b + i * OBK_KZG_CELLS * OBK_KZG_POINT_BYTES : NULL, fault);
		if (err) {
			/* Elements are counted through all blobs of the call. */
			if (fault->item != OBK_FAULT_NO_ITEM && k->n > 1)
				fault->item += i * OBK_KZG_BLOB_ELEMENTS;
			return err;
		}
		if (!obv_job_progress(&k->job, piece->index, (double)(i + 1 - piece->first) / (double)piece->count)) {
			*ret_stopped = i + 1 < piece->first + piece->count;
			if (*ret_stopped)
				return OB_ERR_NONE;
		}
	}
	return OB_ERR_NONE;
}

static enum ob_err whole(struct kzg_job *k, const struct obk_kzg *kzg, struct obv_piece *piece, struct obk_fault *fault)
{
	size_t at = piece->first, n = piece->count;

	switch (k->verb) {
	case PROVE:
		return obk_kzg_prove(kzg, k->blobs, k->z, k->ret_a, k->ret_b, fault);
	case VERIFY:
		return obk_kzg_verify(kzg, k->commitments, k->z, k->y, k->proofs, &k->valid[piece->index], fault);
	case VERIFY_BLOBS:
		return obk_kzg_verify_blob_batch(kzg, k->blobs + at * OBK_KZG_BLOB_BYTES, k->commitments + at * OBK_KZG_POINT_BYTES,
			k->proofs + at * OBK_KZG_POINT_BYTES, n, &k->valid[piece->index], fault);
	case VERIFY_CELLS:
		return obk_kzg_verify_cells(kzg, k->commitments + at * OBK_KZG_POINT_BYTES, k->indices + at, k->cells + at * OBK_KZG_CELL_BYTES,
			k->proofs + at * OBK_KZG_POINT_BYTES, n, &k->valid[piece->index], fault);
	default:
		return obk_kzg_recover(kzg, k->indices, k->cells, k->n, k->ret_a, k->ret_b, fault);
	}
}

static int kzg_run(struct obv_job *job, struct obv_piece *piece, struct obv_device *device, struct outboard_error *error)
{
	struct kzg_job *k = (struct kzg_job *)job;
	const struct obk_kzg *kzg = k->kzg->view[device->index];
	struct obk_fault fault = { .item = OBK_FAULT_NO_ITEM };
	bool stopped = false;
	enum ob_err err;

	if (obv_job_stopped(job))
		return OUTBOARD_CANCELLED;
	if (k->verb == COMMIT || k->verb == PROVE_BLOBS || k->verb == CELLS) {
		err = each(k, kzg, piece, &stopped, &fault);
		if (err && k->n > 1 && fault.item != OBK_FAULT_NO_ITEM)
			return obv_fail(error, obv_status_of(err), fault.item, "blob %zu: %s", fault.item / OBK_KZG_BLOB_ELEMENTS, fault.text);
	} else {
		err = whole(k, kzg, piece, &fault);
		if (err && piece->first && fault.item != OBK_FAULT_NO_ITEM)
			return obv_fail(error, obv_status_of(err), fault.item + piece->first, "%s (counted from item %llu of the call)", fault.text,
				(unsigned long long)piece->first);
	}
	return stopped ? OUTBOARD_CANCELLED : obv_fail_fault(error, err, &fault);
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

static const struct obv_job_ops kzg_ops = { .run = kzg_run, .finish = kzg_finish, .fini = kzg_fini };

/* ---- calls ---- */

/* `k` holds the arguments; missing: one of those that may not be NULL is. */
static int start(struct outboard_kzg *kzg, const struct kzg_job *arguments, bool missing, const struct outboard_call *call, struct outboard_error *error)
{
	struct outboard_error own;
	struct kzg_job *k;
	bool cut = arguments->verb != RECOVER && arguments->verb != PROVE && arguments->verb != VERIFY;
	bool by_item = arguments->verb == COMMIT || arguments->verb == PROVE_BLOBS || arguments->verb == CELLS;
	int status;

	error = error ? error : &own;
	if (!kzg || missing)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM, "%s", kzg ? "an argument that is needed is NULL" : "the setup is NULL");
	if (arguments->n > OUTBOARD_MAX_BATCH)
		return obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM, "%llu items are more than %d: use several calls", (unsigned long long)arguments->n,
			OUTBOARD_MAX_BATCH);
	k = obv_job_new(kzg->context, sizeof(*k), &kzg_ops, OUTBOARD_OP_KZG, call, error);
	if (!k)
		return error->status;
	/* Everything behind the job. */
	memcpy((char *)k + sizeof(k->job), (const char *)arguments + sizeof(k->job), sizeof(*k) - sizeof(k->job));
	pthread_mutex_lock(&kzg->context->lock);
	kzg->refs++;
	pthread_mutex_unlock(&kzg->context->lock);
	k->kzg = kzg;
	k->job.allowed = 0;
	for (unsigned i = 0; i < kzg->context->count; i++)
		k->job.allowed |= (uint64_t)(kzg->view[i] != NULL) << i;
	status = obv_job_cut(&k->job, cut ? k->n : 1, 1, by_item, VERIFY_LEAST, 1, error);
	if (status == OUTBOARD_OK) {
		k->valid = calloc(k->job.piece_count + 1, sizeof(*k->valid));
		if (!k->valid)
			status = obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM, "no memory for a call");
		/* What has no claims to check ends with `valid` for finish to pass over. */
		for (unsigned i = 0; k->valid && i < k->job.piece_count; i++)
			k->valid[i] = true;
	}
	if (status != OUTBOARD_OK) {
		obv_job_unref(&k->job);
		return status;
	}
	return obv_job_submit(&k->job, error);
}

int outboard_kzg_commit(struct outboard_kzg *kzg, const uint8_t *blobs, uint64_t n, uint8_t *ret_commitments, const struct outboard_call *call,
			struct outboard_error *error)
{
	return start(kzg, &(struct kzg_job){ .verb = COMMIT, .blobs = blobs, .n = n, .ret_a = ret_commitments },
			n && (!blobs || !ret_commitments), call, error);
}

int outboard_kzg_prove(struct outboard_kzg *kzg, const uint8_t *blob, const uint8_t *z, uint8_t *ret_proof, uint8_t *ret_y, const struct outboard_call *call,
		       struct outboard_error *error)
{
	return start(kzg, &(struct kzg_job){ .verb = PROVE, .blobs = blob, .z = z, .n = 1, .ret_a = ret_proof, .ret_b = ret_y },
		!blob || !z || !ret_proof || !ret_y, call, error);
}

int outboard_kzg_prove_blobs(struct outboard_kzg *kzg, const uint8_t *blobs, const uint8_t *commitments, uint64_t n, uint8_t *ret_proofs,
			     const struct outboard_call *call, struct outboard_error *error)
{
	return start(kzg, &(struct kzg_job){ .verb = PROVE_BLOBS, .blobs = blobs, .commitments = commitments, .n = n, .ret_a = ret_proofs },
		n && (!blobs || !commitments || !ret_proofs), call, error);
}

int outboard_kzg_verify(struct outboard_kzg *kzg, const uint8_t *commitment, const uint8_t *z, const uint8_t *y, const uint8_t *proof, int *ret_valid,
			const struct outboard_call *call, struct outboard_error *error)
{
	return start(kzg, &(struct kzg_job){ .verb = VERIFY, .commitments = commitment, .z = z, .y = y, .proofs = proof, .n = 1, .ret_valid = ret_valid },
		!commitment || !z || !y || !proof || !ret_valid, call, error);
}

int outboard_kzg_verify_blobs(struct outboard_kzg *kzg, const uint8_t *blobs, const uint8_t *commitments, const uint8_t *proofs, uint64_t n, int *ret_valid,
			      const struct outboard_call *call, struct outboard_error *error)
{
	return start(kzg, &(struct kzg_job){ .verb = VERIFY_BLOBS, .blobs = blobs, .commitments = commitments, .proofs = proofs, .n = n,
			.ret_valid = ret_valid },
		!ret_valid || (n && (!blobs || !commitments || !proofs)), call, error);
}

int outboard_kzg_cells(struct outboard_kzg *kzg, const uint8_t *blobs, uint64_t n, uint8_t *ret_cells, uint8_t *ret_proofs, const struct outboard_call *call,
		       struct outboard_error *error)
{
	return start(kzg, &(struct kzg_job){ .verb = CELLS, .blobs = blobs, .n = n, .ret_a = ret_cells, .ret_b = ret_proofs }, n && !blobs, call, error);
}

int outboard_kzg_recover(struct outboard_kzg *kzg, const uint64_t *indices, const uint8_t *cells, uint64_t n, uint8_t *ret_cells, uint8_t *ret_proofs,
			 const struct outboard_call *call, struct outboard_error *error)
{
	return start(kzg, &(struct kzg_job){ .verb = RECOVER, .indices = indices, .cells = cells, .n = n, .ret_a = ret_cells, .ret_b = ret_proofs },
		n && (!indices || !cells), call, error);
}

int outboard_kzg_verify_cells(struct outboard_kzg *kzg, const uint8_t *commitments, const uint64_t *indices, const uint8_t *cells, const uint8_t *proofs,
			      uint64_t n, int *ret_valid, const struct outboard_call *call, struct outboard_error *error)
{
	return start(kzg,
		&(struct kzg_job){ .verb = VERIFY_CELLS, .commitments = commitments, .indices = indices, .cells = cells, .proofs = proofs, .n = n,
			.ret_valid = ret_valid },
		!ret_valid || (n && (!commitments || !indices || !cells || !proofs)), call, error);
}

/* ---- setups ---- */

typedef enum ob_err load_fn(const char *text, size_t length, const struct obk_kzg_options *options, struct obk_kzg **ret_kzg, struct obk_fault *fault);

static enum ob_err load_path(const char *path, size_t length, const struct obk_kzg_options *options, struct obk_kzg **ret_kzg, struct obk_fault *fault)
{
	(void)length;
	return obk_kzg_load_file(path, options, ret_kzg, fault);
}

/* One view for each CPU device; the first has the setup itself. */
static enum ob_err load_views(struct outboard_kzg *k, load_fn *load, const char *text, size_t length, const struct outboard_kzg_options *asked,
			      struct obk_fault *fault)
{
	struct obk_kzg_options options = { .cell_window = asked ? asked->cell_window : 0, .commit_table = asked ? asked->table_bytes : 0 };
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
	if (!err && !k->setup)
		err = obk_fault_set(fault, OB_ERR_UNSUPPORTED, OBK_FAULT_NO_ITEM, "KZG needs a CPU among the context's devices");
	return err;
}

static int load_setup(struct outboard *context, load_fn *load, const char *text, size_t length, const struct outboard_kzg_options *options,
		      struct outboard_kzg **ret_kzg, struct outboard_error *error)
{
	struct outboard_kzg *k;
	struct obk_fault fault;
	int status;

	if (!text || !ret_kzg)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM, "the %s is NULL", ret_kzg ? "setup's text or path" : "place for the setup");
	k = calloc(1, sizeof(*k));
	if (!k)
		return obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM, "no memory for a setup");
	status = obv_context_get(context, &k->context, error);
	if (status != OUTBOARD_OK) {
		free(k);
		return status;
	}
	k->refs = 1;
	status = obv_fail_fault(error, load_views(k, load, text, length, options, &fault), &fault);
	if (status != OUTBOARD_OK)
		kzg_unref(k);
	else
		*ret_kzg = k;
	return status;
}

int outboard_kzg_load(struct outboard *context, const char *text, size_t length, const struct outboard_kzg_options *options, struct outboard_kzg **ret_kzg,
		      struct outboard_error *error)
{
	return load_setup(context, obk_kzg_load, text, length, options, ret_kzg, error);
}

int outboard_kzg_load_file(struct outboard *context, const char *path, const struct outboard_kzg_options *options, struct outboard_kzg **ret_kzg,
			   struct outboard_error *error)
{
	return load_setup(context, load_path, path, 0, options, ret_kzg, error);
}

void outboard_kzg_free(struct outboard_kzg *kzg)
{
	if (kzg)
		kzg_unref(kzg);
}
