/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Authentication. With --tokens or --tls-client-ca each new session on tcp:// and tls:// needs one
 * of the two; a unix socket is protected by its file's permissions. Admission process, one thread.
 */
#ifndef OBS_AUTH_H
#define OBS_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cause.h"
#include "server/common/identity.h"
#include "transport/stream.h"

struct obs_options;
struct obp_hello;

/*
 * Fills in where the connection comes from, and the user of a unix socket's peer. True: it is a
 * unix socket.
 */
bool obs_auth_origin(int fd, struct obs_identity *ret);
/*
 * Authenticates the client. *ret is always filled. OB_ERR_DENIED: *ret_cause is for the client.
 */
enum ob_err obs_auth_check(const struct obs_options *options, const struct obt_stream *stream,
	const struct obp_hello *hello, struct obs_identity *ret, struct ob_cause *ret_cause);
/* Opens the token file, or -1 with errno. Replaced in a process that may open no files. */
extern int (*obs_auth_open_tokens)(const char *path);
/* Reads the token file. OB_ERR_IO and as obt_tokens_read: *ret_cause. */
enum ob_err obs_auth_open(const struct obs_options *options, struct ob_cause *ret_cause);

#endif
