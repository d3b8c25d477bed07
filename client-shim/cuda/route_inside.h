/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The files of client-shim/cuda/route.h: each routes a part of the backend's table.
 *
 *   route.c           functions with one object; virtual memory
 *   route_between.c   waits, peers, launches, host memory, managed memory
 *   route_copy.c      copies and fills
 *   route_graph.c     graphs
 *   route_share.c     sharing with other processes
 *
 * Any thread.
 */
#ifndef OBC_ROUTE_INSIDE_H
#define OBC_ROUTE_INSIDE_H

#include "client-shim/session/server.h"
#include "front/backend.h"

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
/* Whether two devices are of different servers. */
bool obc_route_apart(int device, int other);
/*
 * Looks at the packed parameters of a kernel of server `here`, which may be NULL: an address of another
 * server is worth a warning, once.
 */
void obc_route_packed_look(const struct obf_func *func, const void *packed, uint32_t here);

/* In the context `at`: `type` route_NAME PARAMS calls FUNCTION with the other arguments. */
#define OBC_IN_CONTEXT(type, name, params, at, function, ...) \
	static type route_##name params                       \
	{                                                     \
		OBC_VISIT(at);                                \
		return function(__VA_ARGS__);                 \
	}
/* The same for functions that concern no context of the thread. */
#define OBC_ROUTE_AT(type, name, params, at, function, ...) \
	static type route_##name params                     \
	{                                                   \
		OBC_AT_SERVER(at);                          \
		return function(__VA_ARGS__);               \
	}

/* Each replaces its functions of the table. */
void obc_route_between_install(struct obf_backend *backend);
void obc_route_copy_install(struct obf_backend *backend);
void obc_route_graph_install(struct obf_backend *backend);
void obc_route_share_install(struct obf_backend *backend);

#endif
