/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obi_ptx_graph: which functions and .shared variables a kernel reaches.
 *
 * The static shared memory of a kernel is what its own body declares plus what it can reach by
 * name: module-level .shared variables and the bodies of the .func functions that it calls.
 * Functions and shared variables are nodes, names in a body are edges, and the graph is walked from
 * each kernel at the end. Calls through pointers are not followed: if the sum is too small, the
 * driver refuses the launch instead of the front end.
 */
#ifndef OBI_PTX_GRAPH_H
#define OBI_PTX_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define OBI_PTX_GRAPH_BUCKETS   4096u
#define OBI_PTX_GRAPH_NO_KERNEL UINT32_MAX

/*
 * Names point into the caller's text. One thread. The functions below that return bool return false
 * when the graph is full.
 */
struct obi_ptx_graph {
	struct ob_buf nodes, edges;           /* struct node; uint32_t */
	uint32_t hash[OBI_PTX_GRAPH_BUCKETS]; /* index + 1 */
	uint32_t stamp;
	uint32_t first_edge; /* of the current body */
};

void obi_ptx_graph_init(struct obi_ptx_graph *graph);
void obi_ptx_graph_fini(struct obi_ptx_graph *graph);

/* A .shared variable at module level. */
bool obi_ptx_graph_variable(
	struct obi_ptx_graph *graph, const char *name, size_t size, uint64_t bytes);
/* A declaration of a function. */
bool obi_ptx_graph_function(struct obi_ptx_graph *graph, const char *name, size_t size);
/* A body: the names in it, of which those of nodes count, and its own shared memory. */
void obi_ptx_graph_body_begin(struct obi_ptx_graph *graph);
bool obi_ptx_graph_body_name(struct obi_ptx_graph *graph, const char *name, size_t size);
/* kernel: the caller's index, or OBI_PTX_GRAPH_NO_KERNEL */
bool obi_ptx_graph_body_end(struct obi_ptx_graph *graph, const char *name, size_t size,
	uint32_t kernel, uint64_t shared);

typedef void obi_ptx_graph_fn(void *user, uint32_t kernel, uint32_t shared);
/* Calls fn for each kernel with the bytes of all it reaches; saturates. OB_ERR_NO_MEMORY. */
enum ob_err obi_ptx_graph_sum(struct obi_ptx_graph *graph, obi_ptx_graph_fn *fn, void *user);

#endif
