/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/graph.h"

#include <stdlib.h>
#include <string.h>

#include "front/private.h"

static struct ob_ids graph_ids = OB_IDS_INIT(OBF_KIND_GRAPH, OBF_GRAPH_MAX);
static struct ob_ids node_ids = OB_IDS_INIT(OBF_KIND_GRAPH_NODE, OBF_GRAPH_NODE_MAX);

uint64_t obf_graph_mark(void)
{
	static _Atomic uint64_t last;

	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

struct obf_graph *obf_graph_find(CUgraph handle)
{
	return ob_ids_get(&graph_ids, (uint64_t)(uintptr_t)handle);
}

struct obf_node *obf_node_find(CUgraphNode handle)
{
	return ob_ids_get(&node_ids, (uint64_t)(uintptr_t)handle);
}

/* ---- edges ---- */

static bool edge_put(struct obf_edges *edges, struct obf_node *node, const CUgraphEdgeData *data)
{
	if (edges->n == edges->room) {
		size_t room = edges->room ? edges->room * 2 : 2;
		struct obf_edge *list = realloc(edges->list, room * sizeof *list);

		if (!list)
			return false;
		edges->list = list;
		edges->room = room;
	}
	edges->list[edges->n++] =
		(struct obf_edge){ node, data ? *data : (CUgraphEdgeData){ .type = 0 } };
	return true;
}

/* SIZE_MAX: there is no such edge. data NULL: whatever its data. */
static size_t edge_at(
	const struct obf_edges *edges, const struct obf_node *node, const CUgraphEdgeData *data)
{
	for (size_t i = 0; i < edges->n; i++)
		if (edges->list[i].node == node &&
			(!data || memcmp(&edges->list[i].data, data, sizeof *data) == 0))
			return i;
	return SIZE_MAX;
}

/* The order of the others stays: it is the order in which the program gave them. */
static void edge_drop(struct obf_edges *edges, size_t at)
{
	memmove(&edges->list[at], &edges->list[at + 1], (edges->n - at - 1) * sizeof *edges->list);
	edges->n--;
}

static CUresult edge_add(struct obf_node *from, struct obf_node *to, const CUgraphEdgeData *data)
{
	if (!edge_put(&to->in, from, data))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (edge_put(&from->out, to, data))
		return CUDA_SUCCESS;
	to->in.n--;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static void edge_remove(struct obf_node *from, struct obf_node *to, const CUgraphEdgeData *data)
{
	edge_drop(&to->in, edge_at(&to->in, from, data));
	edge_drop(&from->out, edge_at(&from->out, to, data));
}

static bool data_valid(const CUgraphEdgeData *data)
{
	static const unsigned char none[5];

	return !data ||
		(data->type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
			memcmp(data->reserved, none, sizeof none) == 0);
}

/* Both ends of an edge that the program names. */
static CUresult ends_find(const struct obf_graph *graph, CUgraphNode from, CUgraphNode to,
	struct obf_node **ret_from, struct obf_node **ret_to)
{
	*ret_from = obf_node_find(from);
	*ret_to = obf_node_find(to);
	if (!*ret_from || !*ret_to || (*ret_from)->graph != graph || (*ret_to)->graph != graph ||
		*ret_from == *ret_to)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult obf_graph_connect(struct obf_graph *graph, const CUgraphNode *from, const CUgraphNode *to,
	const CUgraphEdgeData *edges, size_t n)
{
	struct obf_node *a, *b;
	CUresult result = CUDA_SUCCESS;
	size_t made = 0;

	for (; made < n && result == CUDA_SUCCESS; made++) {
		const CUgraphEdgeData *data = edges ? &edges[made] : NULL;

		result = ends_find(graph, from[made], to[made], &a, &b);
		if (result == CUDA_SUCCESS &&
			(!data_valid(data) || edge_at(&b->in, a, NULL) != SIZE_MAX))
			result = CUDA_ERROR_INVALID_VALUE;
		if (result == CUDA_SUCCESS)
			result = edge_add(a, b, data);
		if (result != CUDA_SUCCESS)
			break;
	}
	for (; result != CUDA_SUCCESS && made > 0; made--) {
		ends_find(graph, from[made - 1], to[made - 1], &a, &b);
		edge_remove(a, b, NULL);
	}
	return result;
}

CUresult obf_graph_disconnect(struct obf_graph *graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edges, size_t n)
{
	struct obf_node *a, *b;
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		result = ends_find(graph, from[i], to[i], &a, &b);
		if (result == CUDA_SUCCESS &&
			edge_at(&b->in, a, edges ? &edges[i] : NULL) == SIZE_MAX)
			result = CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		ends_find(graph, from[i], to[i], &a, &b);
		if (edge_at(&b->in, a, NULL) == SIZE_MAX)
			result = CUDA_ERROR_INVALID_VALUE; /* named twice */
		else
			edge_remove(a, b, NULL);
	}
	return result;
}

/* ---- nodes ---- */

struct obf_graph *obf_graph_outer(const struct obf_graph *graph)
{
	return graph->parent ? graph->parent->graph : NULL;
}

/* Notes in the graph and in all that contain it what a node has brought. */
static void contents_note(struct obf_graph *graph, unsigned depth, bool memory)
{
	for (; graph; graph = obf_graph_outer(graph), depth += depth > 0) {
		graph->depth = ob_max(graph->depth, depth);
		graph->has_memory |= memory;
	}
}

/* A graph must not contain itself, and the levels of child graphs are limited. */
static bool child_fits(const struct obf_graph *graph, const struct obf_graph *child)
{
	unsigned depth = child->depth + 1;

	for (; graph; graph = obf_graph_outer(graph), depth++)
		if (graph == child || depth >= OBF_GRAPH_DEPTH)
			return false;
	return true;
}

static CUresult node_new(
	struct obf_graph *graph, struct obf_node_params *params, struct obf_node **ret)
{
	struct obf_node *node = calloc(1, sizeof *node);
	uint64_t id = node ? ob_ids_add(&node_ids, node) : 0;

	if (id && graph->n_nodes == graph->nodes_room) {
		size_t room = graph->nodes_room ? graph->nodes_room * 2 : 8;
		struct obf_node **nodes = realloc(graph->nodes, room * sizeof(void *));

		if (nodes) {
			graph->nodes = nodes;
			graph->nodes_room = room;
		}
	}
	if (!id || graph->n_nodes == graph->nodes_room) {
		if (id)
			ob_ids_remove(&node_ids, id);
		free(node);
		obf_params_free(params);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	node->handle = (CUgraphNode)(uintptr_t)id;
	node->graph = graph;
	node->index = graph->n_nodes;
	node->params = *params;
	node->params.lent = false;
	graph->nodes[graph->n_nodes++] = node;
	if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
		params->child->parent = node;
		contents_note(graph, params->child->depth + 1, params->child->has_memory);
	}
	if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
		params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		contents_note(graph, 0, true);
	*ret = node;
	return CUDA_SUCCESS;
}

/* Frees the node's memory. Its edges and its place in the graph are not touched. */
static void node_release(struct obf_node *node)
{
	ob_ids_remove(&node_ids, (uint64_t)(uintptr_t)node->handle);
	obf_params_free(&node->params);
	free(node->in.list);
	free(node->out.list);
	free(node);
}

void obf_node_free(struct obf_node *node)
{
	struct obf_graph *graph = node->graph;

	while (node->in.n)
		edge_remove(node->in.list[0].node, node, NULL);
	while (node->out.n)
		edge_remove(node, node->out.list[0].node, NULL);
	for (size_t i = node->index + 1; i < graph->n_nodes; i++) {
		graph->nodes[i - 1] = graph->nodes[i];
		graph->nodes[i - 1]->index = i - 1;
	}
	graph->n_nodes--;
	node_release(node);
}

CUresult obf_node_add(struct obf_graph *graph, struct obf_node_params *params,
	const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n, struct obf_node **ret)
{
	struct obf_node *node;
	uint64_t mark = obf_graph_mark();
	CUresult result = n && !deps ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		struct obf_node *dep = obf_node_find(deps[i]);

		if (!dep || dep->graph != graph || dep->mark == mark ||
			!data_valid(edges ? &edges[i] : NULL))
			result = CUDA_ERROR_INVALID_VALUE;
		else
			dep->mark = mark;
	}
	if (params->type == CU_GRAPH_NODE_TYPE_GRAPH && !child_fits(graph, params->child))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = obf_graph_memory_add(graph, params);
	if (result != CUDA_SUCCESS) {
		obf_params_free(params);
		return result;
	}
	result = node_new(graph, params, &node);
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		result = edge_add(obf_node_find(deps[i]), node, edges ? &edges[i] : NULL);
		if (result != CUDA_SUCCESS)
			obf_node_free(node);
	}
	if (result == CUDA_SUCCESS)
		*ret = node;
	return result;
}

/* ---- graphs ---- */

CUresult obf_graph_new(struct obf_graph **ret)
{
	struct obf_graph *graph = calloc(1, sizeof *graph);
	uint64_t id = graph ? ob_ids_add(&graph_ids, graph) : 0;

	if (!id) {
		free(graph);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	graph->handle = (CUgraph)(uintptr_t)id;
	*ret = graph;
	return CUDA_SUCCESS;
}

void obf_graph_free(struct obf_graph *graph)
{
	if (!graph)
		return;
	ob_ids_remove(&graph_ids, (uint64_t)(uintptr_t)graph->handle);
	for (size_t i = 0; i < graph->n_nodes; i++)
		node_release(graph->nodes[i]);
	obf_conds_free(graph);
	obf_graph_users_end(graph);
	free(graph->nodes);
	free(graph);
}

static CUresult nodes_clone(const struct obf_graph *graph, struct obf_graph *clone)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < graph->n_nodes && result == CUDA_SUCCESS; i++) {
		struct obf_node_params params;
		struct obf_node *node;

		result = obf_params_clone(&graph->nodes[i]->params, &params);
		if (result == CUDA_SUCCESS)
			result = node_new(clone, &params, &node);
		if (result == CUDA_SUCCESS)
			node->original = graph->nodes[i]->handle;
	}
	for (size_t i = 0; i < graph->n_nodes; i++) {
		const struct obf_edges *in = &graph->nodes[i]->in;

		for (size_t k = 0; k < in->n && result == CUDA_SUCCESS; k++)
			result = edge_add(clone->nodes[in->list[k].node->index], clone->nodes[i],
				&in->list[k].data);
	}
	return result;
}

CUresult obf_graph_clone(const struct obf_graph *graph, struct obf_graph **ret)
{
	struct obf_graph *clone;
	bool refused = graph->has_memory || graph->has_cond || graph->n_conds;
	CUresult result = refused ? CUDA_ERROR_NOT_SUPPORTED : obf_graph_new(&clone);

	if (result != CUDA_SUCCESS)
		return result;
	clone->original = graph->handle;
	result = nodes_clone(graph, clone);
	if (result == CUDA_SUCCESS)
		result = obf_graph_users_clone(graph, clone);
	if (result == CUDA_SUCCESS)
		*ret = clone;
	else
		obf_graph_free(clone);
	return result;
}
