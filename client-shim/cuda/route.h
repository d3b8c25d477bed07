/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_route: the backend's table (front/backend.h) while the program uses several servers. Each
 * function finds the server of its object, makes it the thread's current one for the call and calls
 * the client's own function. What concerns two servers is done here:
 *
 *   stream_wait_event   the calling thread waits for the event, then the stream goes on
 *   copies              through this process (route_copy.c)
 *   peers               there are none between two servers
 *   graphs              a graph with memory of two servers is refused
 *
 * With one server the table is not used. Any thread.
 */
#ifndef OBC_ROUTE_H
#define OBC_ROUTE_H

#include "client-shim/session/server.h"
#include "front/backend.h"

/* The table that is attached; in the library's constructor. */
void obc_route_prepare(struct obf_backend *backend);
/* From now on its functions are routed. During cuInit. ready: for the table. */
void obc_route_install(CUresult (*ready)(void));

/* ---- for route_copy.c ---- */

struct obc_visit {
	bool visiting;
	struct obf_visit visit;
};
struct obc_visit obc_visit_begin(struct obf_ctx *ctx);
void obc_visit_end(const struct obc_visit *visit);

/*
 * Until the end of the block the calling thread uses the context's server. If that is another one,
 * the context is current, too.
 */
#define OBC_VISIT(ctx)                                                                      \
	__attribute__((cleanup(obc_visit_end), unused)) struct obc_visit obc_visit_before = \
		obc_visit_begin(ctx)

/* The server of memory; `otherwise` if the address is that of no device. */
uint32_t obc_route_at(uint64_t addr, uint32_t otherwise);

/* ---- route_copy.c: for struct obf_backend ---- */

CUresult obc_route_write(
	struct obf_stream *stream, uint64_t dst, const void *src, size_t size, bool blocking);
CUresult obc_route_read(
	struct obf_stream *stream, void *dst, uint64_t src, size_t size, bool blocking);
CUresult obc_route_copy(struct obf_stream *stream, const struct obf_copy *copy, bool blocking);
CUresult obc_route_array_copy(
	struct obf_stream *stream, const struct obf_array_copy *copy, bool blocking);
CUresult obc_route_fill(struct obf_stream *stream, const struct obf_fill *fill);

#endif
