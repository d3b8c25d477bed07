/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/progress.h"

#include "client-shim/session/log.h"
#include "protocol/obc_calls.h"

OBC_PER_SERVER struct obc_ctx obc_ctxs_first[OBC_CTX_MAX];

uint64_t obc_ctx_launches(void)
{
	return obc_log_count(OBP_OP_LAUNCH) + obc_log_count(OBP_OP_LAUNCH_CHANGED) +
		obc_log_count(OBP_OP_GRAPH_LAUNCH);
}

void obc_ctx_settled(struct obc_ctx *home, uint64_t launches, bool all)
{
	/*
	 * A stream is counted before its first launch, so a thread that sees the count of the
	 * launch sees the stream.
	 */
	if (all || !atomic_load(&home->other_streams))
		obc_raise(&home->settled, launches);
}
