/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_control: the control connection of a session, and what follows from its end. It carries
 * pings, the results of host functions, questions for free memory, and the client's last words.
 * Owned by the loop, whose thread alone calls the functions here; other threads send on the
 * connection through hostfunc.h.
 */
#ifndef OBS_CONTROL_H
#define OBS_CONTROL_H

#include <stdint.h>

#include "protocol/conn.h"
#include "protocol/control.h"
#include "transport/stream.h"

struct obs_session;

/* from the client's leaving to the end of the process: the executor may still read the goodbye */
#define OBS_GONE_MS 200u

/* A connection of the loop: one that joins, or the control connection. */
struct obs_connection {
	struct obp_conn conn;
	uint64_t deadline;        /* for joining */
	int fd;                   /* -1: free */
	struct obt_stream stream; /* on it */
	struct obp_message join;  /* the join message that admission received */
};

/* Closes the connection and frees its place. */
void obs_connection_close(struct obs_connection *connection);

struct obs_control {
	struct obs_session *session;
	struct obs_connection connection; /* fd -1: none */
	uint64_t lost; /* since when the connection is missing, ns; 0: it is not */
	/* when the process ends because the client has left; OB_NEVER: it is here */
	uint64_t gone_deadline;
	struct obp_message message; /* received last */
};

void obs_control_init(struct obs_control *control, struct obs_session *session);
/*
 * Makes the connection the session's control connection, and its place free. Refused if the session
 * cannot be resumed and already has or had one. received: replies that the client has.
 */
void obs_control_join(
	struct obs_control *control, struct obs_connection *connection, uint64_t received);
/* The connection can be read: handles what has arrived. */
void obs_control_read(struct obs_control *control);
/* The client has left: ends the process after OBS_GONE_MS. */
void obs_control_client_left(struct obs_control *control);

#endif
