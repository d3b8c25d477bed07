/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The bytes of CUgraphNodeParams that a type of node does not use. */
#include "front/graph.h"

/* Bytes of the union that a type uses. */
static size_t used_bytes(const CUgraphNodeParams *params)
{
	switch ((int)params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return sizeof params->kernel;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return sizeof params->memcpy;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return sizeof params->memset;
	case CU_GRAPH_NODE_TYPE_HOST:
		return sizeof params->host;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return sizeof params->graph;
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return 0;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return sizeof params->eventWait;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return sizeof params->alloc;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return sizeof params->free;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return sizeof params->conditional;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return sizeof params->memOp;
	default:
		return sizeof params->reserved1;
	}
}

bool obf_params_unused_zero(const CUgraphNodeParams *params)
{
	const uint8_t *bytes = (const uint8_t *)params->reserved1;
	uint8_t any = 0;

	for (size_t i = used_bytes(params); i < sizeof params->reserved1; i++)
		any |= bytes[i];
	return !any && !params->reserved0[0] && !params->reserved0[1] && !params->reserved0[2] &&
		!params->reserved2;
}
