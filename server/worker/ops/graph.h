/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_graph: a part of a graph that the client sends node by node, and that the driver makes a graph
 * of. Owned by the session's table; the worker's thread only.
 */
#ifndef OBS_OPS_GRAPH_H
#define OBS_OPS_GRAPH_H

#include "server/worker/ops/ops.h"

#define OBS_NODE_BYTES      256u /* charged for a node or a body, about what a driver needs */
/* for a condition, whose word of device memory no other budget counts: a block and a guard block */
#define OBS_CONDITION_BYTES 1280u

enum obs_node_kind {
	OBS_NODE_EMPTY,
	OBS_NODE_KERNEL,
	OBS_NODE_COPY,
	OBS_NODE_FILL,
	OBS_NODE_CONDITIONAL
};

struct obs_node {
	CUgraphNode driver;
	enum obs_node_kind kind;
	uint32_t scope;
	uint32_t n_bodies;
	const CUgraph *bodies; /* of a conditional node; the driver's */
};

struct obs_graph {
	CUgraph driver;
	/* where nodes are added: `driver`, or a body of a conditional node. Counted in `scope` */
	CUgraph into;
	uint32_t scope;
	CUgraphConditionalHandle *handles;
	uint32_t n_handles;
	CUgraphExec exec; /* NULL: graph_make has not succeeded */
	CUresult failed;  /* of the first call that failed since graph_begin */
	struct obs_node *nodes;
	uint32_t n, room;
};

/* A client may name a graph that ended with its context. NULL: the result was reported. */
struct obs_graph *obs_graph_get(struct obs_exec *x, const struct obp_record *rec, uint64_t id);

#endif
