/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/kept.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/opt.h"
#include "client-shim/session/log.h"
#include "client-shim/session/server.h"
#include "protocol/obc_calls.h"

#define WORDS_MAX (OBP_PARAM_BYTES_MAX / 8)

/*
 * A run of changed words is a word of its own (obp_change) and the words. Two equal words or fewer
 * between two runs are sent with them, so a run costs at least two words for three of parameters.
 */
#define GAP      2u
#define RUNS_MAX (WORDS_MAX / (GAP + 1) + 1)

struct block {
	uint64_t stream;             /* its id: 0 for the legacy stream of each context */
	const struct obc_ctx *home;  /* the stream's */
	const struct obf_func *func; /* its last user; only compared */
	uint64_t used;               /* when, in launches of this file */
	uint64_t *words;             /* OBP_PARAM_BYTES_MAX bytes; NULL: not used yet */
};

struct run {
	uint16_t first, n;
};

static OBC_PER_SERVER pthread_mutex_t lock_first =
	PTHREAD_MUTEX_INITIALIZER; /* guards everything here */
#define lock OBC_HERE(lock_first)
static OBC_PER_SERVER struct block blocks_first[OBP_LAUNCH_KEPT];
#define blocks OBC_HERE(blocks_first)
static OBC_PER_SERVER uint64_t launches_first;
#define launches OBC_HERE(launches_first)
static OBC_PER_SERVER struct run runs_first[RUNS_MAX];
#define runs OBC_HERE(runs_first)

/* The block for the function in the stream. NULL: none is free. */
static struct block *block_find(const struct obc_stream *at, const struct obf_func *func)
{
	struct block *oldest = NULL;
	uint64_t stream = at->base.handle;

	for (uint32_t i = 0; i < OBP_LAUNCH_KEPT; i++) {
		struct block *block = &blocks[i];

		if (!block->words) {
			block->words = calloc(1, OBP_PARAM_BYTES_MAX);
			if (!block->words)
				break;
			block->stream = stream;
			block->home = at->home;
			oldest = block;
			break;
		}
		if (block->stream != stream || block->home != at->home)
			continue;
		if (block->func == func)
			return block;
		if (!oldest || block->used < oldest->used)
			oldest = block;
	}
	return oldest;
}

/* Fills `runs`. Returns their number; *ret_words: what they take in the record. */
static uint32_t runs_find(
	const uint64_t *old, const uint64_t *new, uint32_t n_words, uint32_t *ret_words)
{
	uint32_t n = 0, end = 0, words = 0;

	for (uint32_t i = 0; i < n_words; i++) {
		if (ob_likely(old[i] == new[i]))
			continue;
		if (n && i <= end + GAP)
			runs[n - 1].n = (uint16_t)(i + 1 - runs[n - 1].first);
		else
			runs[n++] = (struct run){ .first = (uint16_t)i, .n = 1 };
		end = i + 1;
	}
	for (uint32_t i = 0; i < n; i++)
		words += 1u + runs[i].n;
	*ret_words = words;
	return n;
}

static void runs_write(uint32_t n, uint64_t *kept, const uint64_t *packed, uint64_t *dst)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct run run = runs[i];

		*dst++ = (uint64_t)run.first | (uint64_t)run.n << 32;
		memcpy(dst, packed + run.first, run.n * sizeof *dst);
		memcpy(kept + run.first, packed + run.first, run.n * sizeof *dst);
		dst += run.n;
	}
}

static CUresult send(struct obc_stream *at, const struct obf_func *func,
	const struct obf_launch *launch, uint32_t flags, const uint64_t *packed,
	struct block *block)
{
	uint32_t words, n;
	struct obp_launch_changed_req *req;
	struct obc_slot slot;
	uint64_t *data;

	n = runs_find(block->words, packed, (func->param_bytes + 7) / 8, &words);
	req = obc_begin_op_launch_changed(&slot, words, &data);
	if (!req)
		return obc_log_error();
	req->func = func->backend_id;
	req->stream = at->base.handle;
	memcpy(req->grid, launch->grid, sizeof req->grid);
	memcpy(req->block, launch->block, sizeof req->block);
	memcpy(req->cluster, launch->cluster, sizeof req->cluster);
	req->shared = launch->dynamic_shared;
	req->flags = flags;
	req->priority = launch->priority;
	req->kept = (uint32_t)(block - blocks);
	req->param_bytes = func->param_bytes;
	runs_write(n, block->words, packed, data);
	block->func = func;
	block->used = ++launches;
	obc_stream_mark(at, slot.number);
	return obc_log_commit(&slot);
}

bool obc_kept_launch(struct obc_stream *at, const struct obf_func *func,
	const struct obf_launch *launch, uint32_t flags, const uint64_t *packed,
	CUresult *ret_result)
{
	struct block *block;

	if (!ob_opt_on(OB_OPT_CHANGES) || obc_lines_known < OBP_LINE_launch_changed)
		return false;
	pthread_mutex_lock(&lock);
	block = block_find(at, func);
	if (block)
		*ret_result = send(at, func, launch, flags, packed, block);
	pthread_mutex_unlock(&lock);
	return block != NULL;
}
