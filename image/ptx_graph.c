/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "image/ptx_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"

#define NODE_MAX (1u << 20)
#define EDGE_MAX (8u << 20)

struct node {
	const char *name;
	size_t name_size;
	uint32_t next; /* in the hash chain, index + 1 */
	uint32_t first_edge, n_edges;
	uint32_t seen;   /* stamp: the body or walk that visited it last */
	uint32_t kernel; /* index of the kernel, or OBI_PTX_GRAPH_NO_KERNEL */
	uint64_t shared; /* bytes: a variable's own, or declared in the body */
};

static struct node *node_at(const struct obi_ptx_graph *graph, uint32_t index)
{
	return (struct node *)(void *)graph->nodes.data + index;
}

static uint32_t *hash_slot(struct obi_ptx_graph *graph, const char *name, size_t size)
{
	return &graph->hash[ob_hash(OB_HASH_START, name, size) % OBI_PTX_GRAPH_BUCKETS];
}

static struct node *node_find(struct obi_ptx_graph *graph, const char *name, size_t size)
{
	for (uint32_t i = *hash_slot(graph, name, size); i; i = node_at(graph, i - 1)->next) {
		struct node *node = node_at(graph, i - 1);

		if (node->name_size == size && memcmp(node->name, name, size) == 0)
			return node;
	}
	return NULL;
}

/*
 * Returns the node of this name, creating it if necessary. NULL: the graph is full. Pointers are
 * valid until the next call.
 */
static struct node *node_add(struct obi_ptx_graph *graph, const char *name, size_t size)
{
	struct node *node = node_find(graph, name, size);

	if (node)
		return node;
	uint32_t *slot = hash_slot(graph, name, size);
	node = ob_buf_extend(&graph->nodes, sizeof(*node));
	if (!node)
		return NULL;
	*node = (struct node){
		.name = name, .name_size = size, .next = *slot, .kernel = OBI_PTX_GRAPH_NO_KERNEL
	};
	*slot = (uint32_t)(graph->nodes.size / sizeof(*node));
	return node;
}

void obi_ptx_graph_init(struct obi_ptx_graph *graph)
{
	memset(graph, 0, sizeof(*graph));
	ob_buf_init(&graph->nodes, NODE_MAX * sizeof(struct node));
	ob_buf_init(&graph->edges, EDGE_MAX * sizeof(uint32_t));
}

void obi_ptx_graph_fini(struct obi_ptx_graph *graph)
{
	ob_buf_fini(&graph->nodes);
	ob_buf_fini(&graph->edges);
}

bool obi_ptx_graph_variable(
	struct obi_ptx_graph *graph, const char *name, size_t size, uint64_t bytes)
{
	struct node *node = node_add(graph, name, size);

	if (node)
		node->shared = bytes;
	return node != NULL;
}

bool obi_ptx_graph_function(struct obi_ptx_graph *graph, const char *name, size_t size)
{
	return node_add(graph, name, size) != NULL;
}

static uint32_t n_edges(const struct obi_ptx_graph *graph)
{
	return (uint32_t)(graph->edges.size / sizeof(uint32_t));
}

void obi_ptx_graph_body_begin(struct obi_ptx_graph *graph)
{
	graph->first_edge = n_edges(graph);
	graph->stamp++;
}

bool obi_ptx_graph_body_name(struct obi_ptx_graph *graph, const char *name, size_t size)
{
	struct node *node = graph->nodes.size ? node_find(graph, name, size) : NULL;

	if (!node || node->seen == graph->stamp)
		return true;
	uint32_t index = (uint32_t)(node - node_at(graph, 0));

	node->seen = graph->stamp;
	return ob_buf_append(&graph->edges, &index, sizeof(index));
}

bool obi_ptx_graph_body_end(struct obi_ptx_graph *graph, const char *name, size_t size,
	uint32_t kernel, uint64_t shared)
{
	struct node *node = node_add(graph, name, size);

	if (!node)
		return false;
	node->kernel = kernel;
	node->shared = shared;
	node->first_edge = graph->first_edge;
	node->n_edges = n_edges(graph) - graph->first_edge;
	return true;
}

/* Sums the shared memory of all nodes reachable from `root`; `stack` has room for every node. */
static uint64_t reachable_shared(struct obi_ptx_graph *graph, uint32_t root, uint32_t *stack)
{
	uint32_t stamp = ++graph->stamp, depth = 0;
	const uint32_t *edges = (const uint32_t *)(const void *)graph->edges.data;
	uint64_t sum = 0;

	stack[depth++] = root;
	node_at(graph, root)->seen = stamp;
	while (depth) {
		const struct node *node = node_at(graph, stack[--depth]);

		if (node->shared) {
			sum = ob_round_up(sum, 16) + node->shared;
			if (sum > UINT32_MAX)
				return UINT32_MAX;
		}
		for (uint32_t i = 0; i < node->n_edges; i++) {
			struct node *to = node_at(graph, edges[node->first_edge + i]);

			if (to->seen != stamp) {
				to->seen = stamp;
				stack[depth++] = (uint32_t)(to - node_at(graph, 0));
			}
		}
	}
	return sum;
}

enum ob_err obi_ptx_graph_sum(struct obi_ptx_graph *graph, obi_ptx_graph_fn *fn, void *user)
{
	uint32_t n = (uint32_t)(graph->nodes.size / sizeof(struct node));
	uint32_t *stack = malloc((n ? n : 1) * sizeof(*stack));

	if (!stack)
		return OB_ERR_NO_MEMORY;
	for (uint32_t i = 0; i < n; i++) {
		const struct node *node = node_at(graph, i);

		if (node->kernel == OBI_PTX_GRAPH_NO_KERNEL)
			continue;
		fn(user, node->kernel,
			(uint32_t)(node->n_edges ? reachable_shared(graph, i, stack)
						 : node->shared));
	}
	free(stack);
	return OB_ERR_NONE;
}
