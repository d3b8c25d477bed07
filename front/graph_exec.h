/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_exec: an executable graph. Child graphs are dissolved into one list of nodes, which has the
 * same order for graphs of the same shape. The list is then ordered by the dependencies and cut into
 * parts:
 *
 *   prepared   nodes that need only the device. The backend has them (graph_make), and launches
 *              them at once.
 *   in turn    the others: copies of host memory, host functions, events, stream memory
 *              operations. A launch gives each to the stream, as the program's call would.
 *
 * A launch gives the parts to the stream one after the other. One thread at a time, as in CUDA.
 *
 * The nodes in the bodies of conditional nodes are in the list too. Each body is a scope, whose nodes
 * depend on one another only; scope 0 is the graph itself. A part with a conditional node is always
 * prepared, and has its bodies in it.
 */
#ifndef OBF_GRAPH_EXEC_H
#define OBF_GRAPH_EXEC_H

#include "front/backend.h"
#include "front/graph.h"

struct obf_stream;

struct obf_exec_node {
	struct obf_node_params params; /* owned; never a child graph */
	CUgraphNode handle;            /* NULL: has none */
	uint32_t *deps;                /* owned; indices in the list */
	uint32_t n_deps, room;
	uint32_t scope; /* the body that it is in */
	uint32_t end;   /* the first of the two nodes around a child graph: the second. Else 0 */
	uint32_t part;  /* its part */
	uint32_t index; /* its place in the part */
	bool disabled;
};

struct obf_exec_part {
	uint32_t first, n; /* in exec->order */
	uint32_t total;    /* nodes, those in bodies included */
	uint32_t n_conds;
	void *begun; /* for the conditions (graph.h); becomes `made` */
	void *made;  /* the backend's; NULL: given to the stream in turn */
	bool lent;   /* `begun` is the graph's */
	bool prints;
	bool mirrored;        /* kernels have parameters that point to mirrors (mirror.h) */
	unsigned mirror_ends; /* obf_mirror_ends when the parameters were replaced */
};

struct obf_exec_scope {
	uint32_t node, branch; /* the body of this conditional node */
	uint32_t first, n;     /* in exec->order */
};

struct obf_exec_cond {
	CUgraphConditionalHandle handle; /* the program's */
	CUgraphConditionalHandle own;    /* of this executable graph */
	unsigned start, flags;
	uint32_t part; /* of its node */
};

struct obf_exec_name {
	CUgraphNode handle;
	uint32_t node;
};

struct obf_exec {
	CUgraphExec handle;
	unsigned long long flags;
	struct obf_ctx *ctx; /* NULL: no node needs one */
	struct obf_exec_node *nodes;
	uint32_t n, room;
	uint32_t *order;
	struct obf_exec_scope *scopes;
	uint32_t n_scopes, scope; /* the scope to which nodes are added */
	struct obf_exec_cond *conds;
	uint32_t n_conds;
	bool translates; /* own handles differ from those of the program */
	struct obf_exec_part *parts;
	uint32_t n_parts;
	struct obf_exec_name *names; /* sorted by handle */
	uint32_t n_names;
	/* of a graph with memory nodes or conditions: it may have one only */
	CUgraph graph;
	bool has_memory;
	struct obf_graph *users; /* holds the references to user objects */
	/*
	 * recorded after each launch that is given in turn, for the next one in another stream
	 */
	CUevent done;
	unsigned long long stream_id;
};

struct obf_exec *obf_exec_find(CUgraphExec handle);
/*
 * ret_node: where it failed, or NULL. CUDA_ERROR_INVALID_VALUE: the dependencies have a circle.
 */
CUresult obf_exec_new(struct obf_graph *graph, unsigned long long flags, struct obf_exec **ret,
	CUgraphNode *ret_node);
void obf_exec_free(struct obf_exec *exec);
/* The list of nodes of a graph, for a comparison. It has no parts. Freed by obf_exec_free. */
CUresult obf_exec_list(struct obf_graph *graph, struct obf_exec **ret);
/* The index of a node of the graph that was instantiated. False: it has none. */
bool obf_exec_node_at(const struct obf_exec *exec, CUgraphNode handle, uint32_t *ret);
/*
 * Gives a node other parameters and takes them over. CUDA_ERROR_INVALID_VALUE: type, context or
 * kind of memory differ from before.
 */
CUresult obf_exec_set(struct obf_exec *exec, uint32_t node, struct obf_node_params *params);
/* A graph with the same nodes, for a launch into a captured stream. */
CUresult obf_exec_graph(const struct obf_exec *exec, CUgraph *ret);
CUresult obf_exec_launch(struct obf_exec *exec, struct obf_stream *stream);

/* ---- steps of obf_exec_new (graph_list.c, graph_parts.c) ---- */

CUresult obf_exec_list_make(
	struct obf_exec *exec, const struct obf_graph *graph, CUgraphNode *ret_node);
/* CUDA_ERROR_INVALID_VALUE: a circle. */
CUresult obf_exec_order_make(struct obf_exec *exec, CUgraphNode *ret_node);
CUresult obf_exec_parts_make(struct obf_exec *exec, struct obf_graph *graph, CUgraphNode *ret_node);

/* ---- nodes and parts (graph_parts.c) ---- */

/* Whether the node needs only the device. */
bool obf_exec_is_task(const struct obf_node_params *params);
/* The node as the backend gets it, without dependencies. */
CUresult obf_exec_task(
	const struct obf_exec *exec, struct obf_node_params *params, struct obf_graph_task *ret);
/*
 * The arguments of a kernel with the handles of this executable graph, for one launch of the
 * function. Pointers to pinned memory in them may be replaced.
 */
CUresult obf_exec_args(const struct obf_exec *exec, struct obf_kernel_params *kernel,
	const struct obf_func *func, uint8_t **ret);
/* Replaces words that are a handle of `from` by the one of `to`. */
void obf_exec_handles_replace(const struct obf_func *func, uint8_t *args,
	const struct obf_graph *from, const struct obf_exec *to);
/* Before a launch of a prepared part: a mirror ended since the parameters were replaced. */
CUresult obf_exec_part_renew(struct obf_exec *exec, struct obf_exec_part *part);

#endif
