/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Calls that list nodes and edges. With NULL for the array they count. With room for more than there
 * are, the rest is set to NULL; *n is the number of all, or of those written. An array without room
 * is an error if there is something to list.
 */
#include "front/graph.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

/* An array of the program that is filled one by one. */
struct out {
	CUgraphNode *nodes, *to;
	CUgraphEdgeData *edges;
	size_t room, n;
	bool lossy; /* the data of an edge would be lost */
};

static void out_put(struct out *out, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data)
{
	size_t at = out->n++;

	if (at >= out->room)
		return;
	if (out->nodes)
		out->nodes[at] = from;
	if (out->to)
		out->to[at] = to;
	if (out->edges && data)
		out->edges[at] = *data;
	else if (data)
		out->lossy |= data->from_port || data->to_port || data->type;
}

/* counts: the arrays are NULL. */
static CUresult out_end(struct out *out, bool counts, size_t *n)
{
	if (counts) {
		*n = out->n;
		return CUDA_SUCCESS;
	}
	if (out->n && out->room == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (out->lossy)
		return CUDA_ERROR_LOSSY_QUERY;
	for (size_t i = out->n; i < out->room; i++) {
		out->nodes[i] = NULL;
		if (out->to)
			out->to[i] = NULL;
		if (out->edges)
			out->edges[i] = (CUgraphEdgeData){ .type = 0 };
	}
	*n = ob_min(out->n, out->room);
	return CUDA_SUCCESS;
}

static CUresult nodes_list(CUgraph handle, CUgraphNode *nodes, size_t *n, bool roots)
{
	const struct obf_graph *graph = obf_graph_find(handle);
	CUresult result = obf_ready();
	struct out out = { .nodes = nodes };

	if (result != CUDA_SUCCESS)
		return result;
	if (!graph || !n)
		return CUDA_ERROR_INVALID_VALUE;
	out.room = nodes ? *n : 0;
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (!roots || graph->nodes[i]->in.n == 0)
			out_put(&out, graph->nodes[i]->handle, NULL, NULL);
	return out_end(&out, !nodes, n);
}

CUresult obf_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	return nodes_list(graph, nodes, n, false);
}

CUresult obf_cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	return nodes_list(graph, nodes, n, true);
}

CUresult obf_cuGraphGetEdges_v2(
	CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *n)
{
	const struct obf_graph *graph = obf_graph_find(handle);
	CUresult result = obf_ready();
	struct out out = { .nodes = from, .to = to, .edges = edges };

	if (result != CUDA_SUCCESS)
		return result;
	if (!graph || !n || !from != !to || (edges && !from))
		return CUDA_ERROR_INVALID_VALUE;
	out.room = from ? *n : 0;
	for (size_t i = 0; i < graph->n_nodes; i++) {
		const struct obf_node *node = graph->nodes[i];

		for (size_t k = 0; k < node->out.n; k++)
			out_put(&out, node->handle, node->out.list[k].node->handle,
				&node->out.list[k].data);
	}
	return out_end(&out, !from, n);
}

CUresult obf_cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
	return obf_cuGraphGetEdges_v2(graph, from, to, NULL, n);
}

static CUresult ends_list(
	CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *n, bool in)
{
	const struct obf_node *node = obf_node_find(handle);
	CUresult result = obf_ready();
	struct out out = { .nodes = nodes, .edges = edges };
	const struct obf_edges *list;

	if (result != CUDA_SUCCESS)
		return result;
	if (!node || !n || (edges && !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	list = in ? &node->in : &node->out;
	out.room = nodes ? *n : 0;
	for (size_t i = 0; i < list->n; i++)
		out_put(&out, list->list[i].node->handle, NULL, &list->list[i].data);
	return out_end(&out, !nodes, n);
}

CUresult obf_cuGraphNodeGetDependencies_v2(
	CUgraphNode node, CUgraphNode *deps, CUgraphEdgeData *edges, size_t *n)
{
	return ends_list(node, deps, edges, n, true);
}

CUresult obf_cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *deps, size_t *n)
{
	return ends_list(node, deps, NULL, n, true);
}

CUresult obf_cuGraphNodeGetDependentNodes_v2(
	CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *n)
{
	return ends_list(node, nodes, edges, n, false);
}

CUresult obf_cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
	return ends_list(node, nodes, NULL, n, false);
}

CUresult obf_cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *ret)
{
	const struct obf_node *node = obf_node_find(handle);
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!node || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = node->params.type;
	return CUDA_SUCCESS;
}

CUresult obf_cuGraphNodeFindInClone(CUgraphNode *ret, CUgraphNode original, CUgraph handle)
{
	const struct obf_graph *clone = obf_graph_find(handle);
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || !clone || !clone->original || !obf_node_find(original))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < clone->n_nodes; i++) {
		if (clone->nodes[i]->original == original) {
			*ret = clone->nodes[i]->handle;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}
