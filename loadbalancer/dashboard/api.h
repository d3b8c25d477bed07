/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What each HTTP request gets: the page, /metrics, /healthz, and under /api/v1 documents, history,
 * the stream and commands (docs/DASHBOARD.md). A token is taken from the Authorization header only,
 * so that no other site can make a browser send it. Owned by the HTTP server (web.h); the loop's
 * thread.
 */
#ifndef OBL_DASHBOARD_API_H
#define OBL_DASHBOARD_API_H

#include <microhttpd.h>

#include "loadbalancer/dashboard/documents.h"
#include "loadbalancer/dashboard/history.h"
#include "loadbalancer/dashboard/reply.h"
#include "loadbalancer/dashboard/stream.h"

#define OBL_BODY_MAX         4096u /* bytes of a request's body */
#define OBL_WEB_COMMAND_S    15u   /* a command that takes longer is answered 504 */
#define OBL_WEB_COMMANDS_MAX 64u   /* that wait for the registry or a server */

struct obl_web_command;

struct obl_api {
	const struct obl_source *source;
	struct obl_documents documents;
	struct obl_streams streams;
	struct obl_history history;
	struct obl_web_command *commands; /* whose connections wait */
	unsigned n_commands;
	/* called when a command has ended and the library must run */
	void (*wake)(void *user);
	void *wake_user;
};

void obl_api_init(struct obl_api *api, const struct obl_source *source, uint32_t look_ms,
	void (*wake)(void *user), void *wake_user);
/* Resumes all that waits, before the library is stopped. */
void obl_api_close(struct obl_api *api);
/* After the library was stopped. */
void obl_api_fini(struct obl_api *api);

/* The library's access handler; user: the API. */
enum MHD_Result obl_api_answer(void *user, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **state);
/* Its notification that a request has ended. */
void obl_api_completed(void *user, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode why);
/* Streams and time-outs; to be called every second at least. True: the library must run. */
bool obl_api_tick(struct obl_api *api, uint64_t now_ns);

#endif
