/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Graphs and their nodes (graph.c, graph_params.c). Executable graphs are in graph_exec.h.
 *
 * A graph owns its nodes, and a node owns its parameters, which are deep copies: of a kernel's
 * arguments, of a child graph, of the operations of a batch. Handles are ids. As in CUDA, two
 * threads must not use one graph at the same time; the exception is a capture, which has a lock
 * (captured.h).
 */
#ifndef OBF_GRAPH_H
#define OBF_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/front.h"

#define OBF_GRAPH_MAX      (1u << 20) /* graphs of a process, child graphs included */
#define OBF_GRAPH_NODE_MAX (1u << 20) /* nodes of a process */
#define OBF_GRAPH_DEPTH    32u        /* child graphs in child graphs */
#define OBF_NODE_ATTRS     17u        /* ids of attributes of kernel nodes are below */
#define OBF_CONDS_MAX      4096u      /* conditions of a graph */
#define OBF_BODIES_MAX     256u       /* bodies of a conditional node */

struct obf_cond;
struct obf_graph;
struct obf_graph_alloc;
struct obf_node;

struct obf_kernel_params {
	CUfunction func; /* as the program gave it: a function, or NULL and `kern` */
	CUkernel kern;
	CUcontext ctx;
	struct obf_launch launch;
	uint32_t bytes;  /* of the packed arguments */
	uint8_t *packed; /* owned */
	void **params;   /* owned; into `packed` */
	/*
	 * in an executable graph: the arguments with the device's addresses and handles; owned.
	 * NULL: those in `packed`
	 */
	uint8_t *sent;
	bool prints; /* the module can print */
	uint32_t attr_mask;
	CUkernelNodeAttrValue *attrs; /* owned; by id; NULL: none was set */
};

struct obf_copy_params {
	CUDA_MEMCPY3D raw;
	CUcontext ctx;
	struct obf_copy copy;
	bool empty; /* an extent of 0 */
};

struct obf_fill_params {
	CUDA_MEMSET_NODE_PARAMS_v2 raw;
	struct obf_fill fill;
	bool device; /* else pinned host memory */
	bool empty;
};

struct obf_alloc_params {
	CUDA_MEM_ALLOC_NODE_PARAMS raw; /* accessDescs: owned */
	struct obf_graph_alloc *alloc;  /* one reference */
};

struct obf_batch_params {
	CUcontext ctx;
	unsigned count, flags;
	CUstreamBatchMemOpParams *ops; /* owned */
};

struct obf_cond_params {
	struct obf_cond *cond; /* NULL in an executable graph */
	uint32_t number;       /* of the condition, in the order of their creation */
	CUgraphConditionalNodeType type;
	unsigned size;
	struct obf_graph **bodies; /* owned; NULL in an executable graph */
	CUgraph *handles;          /* owned; of the bodies, for the program */
};

struct obf_node_params {
	CUgraphNodeType type;
	struct obf_ctx *ctx; /* where the node runs */
	bool lent;           /* the child graph belongs to the program until a node has it */
	union {
		struct obf_kernel_params kernel;
		struct obf_copy_params copy;
		struct obf_fill_params fill;
		CUDA_HOST_NODE_PARAMS host;
		struct obf_graph *child; /* owned */
		CUevent event;
		struct obf_alloc_params alloc;
		struct obf_alloc_params release; /* raw.dptr and the allocation */
		struct obf_batch_params batch;
		struct obf_cond_params cond;
	};
};

struct obf_edge {
	struct obf_node *node; /* the other end */
	CUgraphEdgeData data;
};

struct obf_edges {
	struct obf_edge *list;
	size_t n, room;
};

struct obf_node {
	CUgraphNode handle;
	struct obf_graph *graph;
	size_t index; /* in graph->nodes */
	/* in a clone: the node that it was made from */
	CUgraphNode original;
	struct obf_edges in, out;
	uint64_t mark; /* for walks over the graph */
	struct obf_node_params params;
};

struct obf_graph_user; /* references to user objects (graph_user.c) */

struct obf_graph {
	CUgraph handle;
	struct obf_node **nodes; /* in the order of their creation */
	size_t n_nodes, nodes_room;
	/* the child graph node or conditional node that owns it; NULL: the program does */
	struct obf_node *parent;
	CUgraph original;        /* in a clone: the graph that it was made from */
	unsigned depth;          /* levels of child graphs in it */
	bool has_memory;         /* has allocation or free nodes */
	bool has_cond;           /* has conditional nodes, also within others */
	unsigned execs;          /* executable graphs of a graph that may have one only */
	struct obf_cond **conds; /* owned; of a graph without parent */
	uint32_t n_conds;
	/* the backend's part for which the conditions were made; NULL: none, or not needed */
	void *begun;
	bool begun_used; /* a part was made of it */
	bool begun_lent; /* the last executable graph has that part */
	struct obf_graph_user *users;
	size_t n_users;
};

/*
 * The value that decides what a conditional node executes. Kernels set it by its handle, which the
 * backend makes. It belongs to the graph that owns all others around it.
 *
 * A driver's handle belongs to one of its graphs, so the backend makes the handles of a graph in an
 * object (`begun`) of which the graph's first executable graph is made: there kernels use the handles
 * that the program has. A further executable graph has conditions of its own, and the handles in the
 * parameters of its kernels are replaced.
 */
struct obf_cond {
	CUgraphConditionalHandle handle;
	const struct obf_graph *graph; /* for nodes of it and of the graphs inside */
	struct obf_ctx *ctx;
	uint32_t number;
	unsigned start, flags;
	bool used;  /* a node has it */
	bool ended; /* with its graph, a body */
};

/* ---- graphs and nodes (graph.c) ---- */

CUresult obf_graph_new(struct obf_graph **ret);
void obf_graph_free(struct obf_graph *graph);
struct obf_graph *obf_graph_find(CUgraph handle);
struct obf_node *obf_node_find(CUgraphNode handle);
/* The graph that contains it as a child graph, or NULL. */
struct obf_graph *obf_graph_outer(const struct obf_graph *graph);
/* A deep copy. CUDA_ERROR_NOT_SUPPORTED: it has memory nodes or conditions. */
CUresult obf_graph_clone(const struct obf_graph *graph, struct obf_graph **ret);
/*
 * Adds a node and takes over *params, also when it fails. deps: nodes of the graph, without
 * repetition; edges may be NULL. CUDA_ERROR_INVALID_VALUE: one is not; a child graph contains the
 * graph, or makes it too deep; the memory has a free node already.
 */
CUresult obf_node_add(struct obf_graph *graph, struct obf_node_params *params,
	const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n, struct obf_node **ret);
void obf_node_free(struct obf_node *node);
/* Edges from[i] -> to[i]; all or none. */
CUresult obf_graph_connect(struct obf_graph *graph, const CUgraphNode *from, const CUgraphNode *to,
	const CUgraphEdgeData *edges, size_t n);
CUresult obf_graph_disconnect(struct obf_graph *graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edges, size_t n);
/* A number that no node's `mark` has yet. */
uint64_t obf_graph_mark(void);

/* ---- parameters (graph_params.c); *ret is owned by the caller ---- */

/* The context of a handle, or the current one for NULL. */
CUresult obf_params_ctx(CUcontext handle, struct obf_ctx **ret);
CUresult obf_params_kernel(const CUDA_KERNEL_NODE_PARAMS *params, struct obf_node_params *ret);
CUresult obf_params_launch(struct obf_ctx *ctx, CUfunction func, const struct obf_launch *launch,
	void **args, void **extra, struct obf_node_params *ret);
CUresult obf_params_copy(const CUDA_MEMCPY3D *copy, CUcontext ctx, struct obf_node_params *ret);
CUresult obf_params_copied(
	struct obf_ctx *ctx, const struct obf_copy *copy, struct obf_node_params *ret);
CUresult obf_params_fill(
	const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext ctx, struct obf_node_params *ret);
CUresult obf_params_host(const CUDA_HOST_NODE_PARAMS *host, struct obf_node_params *ret);
CUresult obf_params_event(CUgraphNodeType type, CUevent event, struct obf_node_params *ret);
CUresult obf_params_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch, struct obf_node_params *ret);
CUresult obf_params_child(CUgraph child, bool move, struct obf_node_params *ret);
/* The current form of the parameters of CUDA 10 and 11; returns `ret`. */
CUDA_KERNEL_NODE_PARAMS *obf_kernel_params_now(
	const CUDA_KERNEL_NODE_PARAMS_v1 *old, CUDA_KERNEL_NODE_PARAMS *ret);
/*
 * From the generic struct; memory nodes too, whose address is written back. Not for conditional
 * nodes, whose handle belongs to a graph.
 */
CUresult obf_params_any(CUgraphNodeParams *params, struct obf_node_params *ret);
/* As cuda.h demands: all bytes that the type does not use are 0 (graph_unused.c). */
bool obf_params_unused_zero(const CUgraphNodeParams *params);
CUresult obf_params_clone(const struct obf_node_params *params, struct obf_node_params *ret);
void obf_params_free(struct obf_node_params *params);
/* The function of a kernel node. It is looked up each time, since its module may have ended. */
CUresult obf_params_func(const struct obf_node_params *params, struct obf_func **ret);
/* CUDA_ERROR_INVALID_VALUE: a launch with this attribute is not possible. */
CUresult obf_params_attr_set(struct obf_node_params *params, CUkernelNodeAttrID attr,
	const CUkernelNodeAttrValue *value);
/* Does the node do the same as the other one? */
bool obf_params_equal(const struct obf_node_params *a, const struct obf_node_params *b);

/* ---- memory nodes (graph_memory.c) ---- */

CUresult obf_params_alloc(CUDA_MEM_ALLOC_NODE_PARAMS *alloc, struct obf_node_params *ret);
CUresult obf_params_release(CUdeviceptr addr, struct obf_node_params *ret);
/*
 * A graph is about to get this node. CUDA_ERROR_INVALID_VALUE: memory is freed twice in the graph,
 * or both in the graph of its allocation node and in another one.
 */
CUresult obf_graph_memory_add(const struct obf_graph *graph, const struct obf_node_params *params);
void obf_graph_alloc_ref(struct obf_graph_alloc *alloc);
void obf_graph_alloc_unref(struct obf_graph_alloc *alloc);
/*
 * Before a launch (check) and with it (apply). CUDA_ERROR_INVALID_VALUE: memory that the graph
 * allocates was not freed since, or memory that it frees is not allocated.
 */
CUresult obf_graph_memory_check(const struct obf_node_params *params, bool auto_free);
void obf_graph_memory_apply(const struct obf_node_params *params);
/* The program frees memory of a graph. CUDA_ERROR_INVALID_VALUE: none is allocated there. */
CUresult obf_graph_memory_free(uint64_t addr);

/* ---- conditional nodes (graph_cond.c) ---- */

/* The graph that owns all others around this one. */
struct obf_graph *obf_graph_root(const struct obf_graph *graph);
/*
 * Adds a conditional node and the graphs that are its bodies, and writes their handles to *params.
 * Arguments as for obf_node_add.
 */
CUresult obf_cond_node_add(CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps,
	const CUgraphEdgeData *edges, size_t n, CUDA_CONDITIONAL_NODE_PARAMS *params);
/* Whether the graph has a condition that no node uses. */
bool obf_conds_unused(const struct obf_graph *graph);
/* Frees the conditions with their graph. */
void obf_conds_free(struct obf_graph *graph);
/* A conditional node's part of the parameters. */
void obf_cond_params_free(struct obf_cond_params *params);
bool obf_cond_params_equal(const struct obf_cond_params *a, const struct obf_cond_params *b);

/* ---- user objects (graph_user.c) ---- */

CUresult obf_graph_users_clone(const struct obf_graph *from, struct obf_graph *to);
void obf_graph_users_end(struct obf_graph *graph);

#endif
