/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Who the client is, and whether it may come in. With --tokens or --tls-client-ca every new session on tcp:// and tls:// proves itself by one of
 * the two; a unix socket is guarded by its file's permissions. Called once by the worker, between hello and welcome.
 */
#ifndef OBS_AUTH_H
#define OBS_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/control.h"
#include "server/options.h"
#include "transport/stream.h"
#include "transport/token.h"

#define OBS_WHO_MAX 320u            /* bytes, NUL included */

struct obs_identity {
	char who[OBS_WHO_MAX];      /* "token 01ab23cd alice", "certificate CN=alice", "uid 1000", "anonymous" */
	char from[80];              /* "10.0.0.7:4711", "unix" */
	enum obt_scope scope;
	struct obt_allow allow;     /* of its token */
};

/* Where the connection comes from, and who when that follows from it. True: a unix socket. */
bool obs_auth_origin(int fd, struct obs_identity *ret);
/* Fills *ret in any case. False: the client may not come in; the reason is in ret_why, in words for the client. */
bool obs_auth_check(const struct obs_options *options, const struct obt_stream *stream, const struct obp_hello *hello, struct obs_identity *ret,
                    char *ret_why, size_t why_size);

#endif
