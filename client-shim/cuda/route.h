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

#endif
