/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cuGraphDebugDotPrint: the graph in the language of Graphviz. */
#include <stdio.h>

#include "front/graph.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

#define FLAGS_ALL ((1u << 16) - 1)

static bool says(unsigned flags, CUgraphDebugDot_flags flag)
{
	return (flags & ((unsigned)flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0;
}

static const char *type_name(CUgraphNodeType type)
{
	static const char *const names[] = { "KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY",
		"WAIT_EVENT", "EVENT_RECORD", "EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC",
		"MEM_FREE", "BATCH_MEM_OP", "CONDITIONAL" };

	return (unsigned)type < ob_count(names) ? names[type] : "?";
}

static void kernel_print(FILE *out, const struct obf_node_params *params, unsigned flags)
{
	const struct obf_launch *launch = &params->kernel.launch;
	struct obf_func *func;

	if (obf_params_func(params, &func) == CUDA_SUCCESS)
		fprintf(out, "\\n%s", func->name);
	if (says(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
		fprintf(out, "\\ngrid {%u,%u,%u} block {%u,%u,%u} shared %u", launch->grid[0],
			launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
			launch->block[2], launch->dynamic_shared);
	if (says(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES))
		fprintf(out, "\\ncooperative %d priority %d", launch->cooperative,
			launch->priority);
}

static const char *conditional_name(CUgraphConditionalNodeType type)
{
	return type == CU_GRAPH_COND_TYPE_IF       ? "IF"
		: type == CU_GRAPH_COND_TYPE_WHILE ? "WHILE"
						   : "SWITCH";
}

static void params_print(FILE *out, const struct obf_node_params *params, unsigned flags)
{
	const struct obf_copy *copy = &params->copy.copy;
	const struct obf_fill *fill = &params->fill.fill;
	const struct obf_cond_params *cond = &params->cond;

	switch ((int)params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		kernel_print(out, params, flags);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		if (says(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
			fprintf(out, "\\n%s to %s, %zu x %zu x %zu bytes",
				copy->src_device ? "device" : "host",
				copy->dst_device ? "device" : "host", copy->width, copy->height,
				copy->depth);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		if (says(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
			fprintf(out, "\\nvalue %u, %zu x %zu elements of %u bytes", fill->value,
				fill->width, fill->height, fill->element);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		if (says(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS))
			fprintf(out, "\\n%zu bytes", params->alloc.raw.bytesize);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		if (says(flags, CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS))
			fprintf(out, "\\n%u operations", params->batch.count);
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		if (says(flags, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS))
			fprintf(out, "\\n%s, condition %u, %u bodies", conditional_name(cond->type),
				cond->number, cond->size);
		break;
	default:
		break;
	}
}

struct print {
	FILE *out;
	unsigned last; /* number of a graph */
	unsigned flags;
};

static void graph_print(struct print *print, const struct obf_graph *graph, unsigned number);

/* A graph inside of a node stands next to it. */
static void inner_print(
	struct print *print, const struct obf_graph *graph, unsigned number, size_t node)
{
	unsigned inner = ++print->last;

	graph_print(print, graph, inner);
	if (graph->n_nodes)
		fprintf(print->out,
			"\"graph_%u_node_%zu\" -> \"graph_%u_node_0\" [style=dotted];\n", number,
			node, inner);
}

/* Each graph is a cluster. */
static void graph_print(struct print *print, const struct obf_graph *graph, unsigned number)
{
	FILE *out = print->out;

	fprintf(out, "subgraph cluster_%u {\nlabel=\"graph_%u\"\n", number, number);
	for (size_t i = 0; i < graph->n_nodes; i++) {
		const struct obf_node *node = graph->nodes[i];

		fprintf(out, "\"graph_%u_node_%zu\" [shape=\"record\" label=\"%zu\\n%s", number, i,
			i, type_name(node->params.type));
		if (says(print->flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
			fprintf(out, "\\n0x%llx", (unsigned long long)(uintptr_t)node->handle);
		params_print(out, &node->params, print->flags);
		fputs("\"];\n", out);
	}
	for (size_t i = 0; i < graph->n_nodes; i++)
		for (size_t k = 0; k < graph->nodes[i]->in.n; k++)
			fprintf(out, "\"graph_%u_node_%zu\" -> \"graph_%u_node_%zu\";\n", number,
				graph->nodes[i]->in.list[k].node->index, number, i);
	fputs("}\n", out);
	for (size_t i = 0; i < graph->n_nodes; i++) {
		const struct obf_node_params *params = &graph->nodes[i]->params;

		if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
			inner_print(print, params->child, number, i);
		for (unsigned k = 0;
			params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < params->cond.size;
			k++)
			inner_print(print, params->cond.bodies[k], number, i);
	}
}

CUresult obf_cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned flags)
{
	const struct obf_graph *graph = obf_graph_find(handle);
	CUresult result = obf_ready();
	struct print print = { .flags = flags };
	bool failed;

	if (result != CUDA_SUCCESS)
		return result;
	if (!graph || !path || flags & ~FLAGS_ALL)
		return CUDA_ERROR_INVALID_VALUE;
	print.out = fopen(path, "we");
	if (!print.out)
		return CUDA_ERROR_OPERATING_SYSTEM;
	fputs("digraph dot {\n", print.out);
	graph_print(&print, graph, 0);
	fputs("}\n", print.out);
	failed = ferror(print.out) != 0;
	return fclose(print.out) == 0 && !failed ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
