/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Stream memory operations, for the calls and for the nodes of graphs. */
#ifndef OBF_VALUE_H
#define OBF_VALUE_H

#include "front/front.h"

#define OBF_VALUES_MAX 256u /* operations of one cuStreamBatchMemOp, as CUDA documents */

/*
 * Checks one operation of a batch. ret->bytes 0: it needs no work, because the operations of a
 * stream are executed in their order and each write is a barrier.
 */
CUresult obf_value_take(
	const struct obf_ctx *ctx, const CUstreamBatchMemOpParams *op, struct obf_value *ret);

#endif
