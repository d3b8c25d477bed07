/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Launches whose parameters are those of a block that the session keeps, with changes. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/layers/hold.h"
#include "server/worker/ops/ops.h"

#define WORDS_MAX (OBP_PARAM_BYTES_MAX / 8)

/* Applies the runs of changed words. False: they are malformed. */
static bool changes_apply(uint64_t *words, const uint64_t *changes, uint32_t n)
{
	for (uint32_t i = 0; i < n;) {
		uint32_t first = (uint32_t)changes[i], length = (uint32_t)(changes[i] >> 32);

		i++;
		if (length > n - i || first > WORDS_MAX || length > WORDS_MAX - first)
			return false;
		memcpy(words + first, changes + i, length * sizeof *words);
		i += length;
	}
	return true;
}

static uint64_t *block_new(struct obs_session *session)
{
	uint64_t *block = calloc(1, OBP_PARAM_BYTES_MAX);

	if (!block)
		obs_session_fatal(
			session, OB_ERR_NO_MEMORY, "no memory for the parameters of launches");
	obs_hold_add(OBS_HOLD_TRANSPORT, OBP_PARAM_BYTES_MAX);
	return block;
}

/*
 * The changes are applied in any case, also when the launch fails: later launches count on them. In
 * a context that cannot be entered this is called with x->refused set.
 */
void obs_op_launch_changed(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_launch_changed_req *req, const uint64_t *changes)
{
	uint64_t **kept = &x->session->kept[req->kept];
	struct obp_launch_req launch = { .func = req->func,
		.stream = req->stream,
		.shared = req->shared,
		.flags = req->flags,
		.priority = req->priority,
		.param_bytes = req->param_bytes };

	if (ob_unlikely(!*kept))
		*kept = block_new(x->session);
	if (!changes_apply(*kept, changes, req->n_words)) {
		obs_violation(x, rec, "malformed changes of parameters");
		return;
	}
	if (ob_unlikely(x->refused != CUDA_SUCCESS)) {
		obs_async_result(x, rec, x->refused);
		return;
	}
	memcpy(launch.grid, req->grid, sizeof launch.grid);
	memcpy(launch.block, req->block, sizeof launch.block);
	memcpy(launch.cluster, req->cluster, sizeof launch.cluster);
	obs_op_launch(x, rec, &launch, *kept);
}
