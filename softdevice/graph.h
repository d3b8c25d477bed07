/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_graph: a part of a graph with conditional nodes, which one op runs. The condition of such a
 * node is a word of device memory, whose address is the handle that kernels get.
 *
 * A launch runs the nodes as they were then, so a graph may be changed or dropped while launches
 * are queued. One thread at a time uses a graph; its queued launches hold references.
 */
#ifndef OBD_GRAPH_H
#define OBD_GRAPH_H

#include "front/backend.h"

struct obd_ctx;

/* The context ends: its graphs are empty, and launches of them fail. */
void obd_graphs_forget(struct obd_ctx *ctx);

/* The front end's backend table (front/backend.h). */
CUresult obd_graph_condition(struct obf_ctx *front, void **begun, unsigned start, unsigned flags,
	CUgraphConditionalHandle *ret);
CUresult obd_graph_make(struct obf_ctx *front, const struct obf_graph_part *part, void **ret);
void obd_graph_drop(void *made);
CUresult obd_graph_launch(void *made, struct obf_stream *stream, bool prints);
CUresult obd_graph_upload(void *made, struct obf_stream *stream);
CUresult obd_graph_set(void *made, uint32_t index, const struct obf_graph_task *what);
CUresult obd_graph_enable(void *made, uint32_t index, bool on);

#endif
