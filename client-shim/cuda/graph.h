/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_graph: a part of an executable graph that the server has. It is sent once, node by node, and
 * named by an id of the client in each launch. For struct obf_backend. Any thread, but one part is
 * used by one thread at a time.
 */
#ifndef OBC_GRAPH_H
#define OBC_GRAPH_H

#include "front/backend.h"
#include "front/stream.h"

#define OBC_GRAPH_MAX (1u << 16) /* parts of a session */

/*
 * Waits for the server's answer: a kernel gets the handle of the server's driver. Conditions are made
 * rarely, once for each conditional node of the program.
 */
CUresult obc_graph_condition(struct obf_ctx *ctx, void **begun, unsigned start, unsigned flags,
	CUgraphConditionalHandle *ret);
/* Waits for the server's answer, since a driver may refuse a graph. */
CUresult obc_graph_make(struct obf_ctx *ctx, const struct obf_graph_part *part, void **ret);
void obc_graph_drop(void *made);
uint32_t obc_graph_server(const void *made); /* the number of its server */
/* One record without a reply. */
CUresult obc_graph_launch(void *made, struct obf_stream *stream, bool prints);
CUresult obc_graph_upload(void *made, struct obf_stream *stream);
CUresult obc_graph_set(void *made, uint32_t index, const struct obf_graph_task *task);
CUresult obc_graph_enable(void *made, uint32_t index, bool on);
/* A launch of its own, of a node that is no part (launch.c). */
CUresult obc_launch_packed(struct obf_stream *stream, struct obf_func *func,
	const struct obf_launch *launch, void *packed);

#endif
