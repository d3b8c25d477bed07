/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Who the client is, and whether it may come in. With --tokens or --tls-client-ca every new session
 * on tcp:// and tls:// proves itself by one of the two; a unix socket is guarded by its file's
 * permissions. Admission process, its one thread.
 */
#ifndef OBS_AUTH_H
#define OBS_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "server/common/identity.h"
#include "transport/stream.h"

struct obs_options;
struct obp_hello;

/* Where the connection comes from, and who when that follows from it. True: a unix socket. */
bool obs_auth_origin(int fd, struct obs_identity *ret);
/*
 * Fills *ret in any case. False: the client may not come in; the reason is in ret_why, in words for
 * the client.
 */
bool obs_auth_check(const struct obs_options *options, const struct obt_stream *stream,
	const struct obp_hello *hello, struct obs_identity *ret, char *ret_why, size_t why_size);
/*
 * Opens the token file, or -1 with errno. Other than open() where this process may open no files.
 */
extern int (*obs_auth_open_tokens)(const char *path);
/* The token file is read. False: *ret_why. */
bool obs_auth_open(const struct obs_options *options, char *ret_why, size_t why_size);

#endif
