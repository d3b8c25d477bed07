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

#include "transport/stream.h"
#include "transport/token.h"

#define OBS_WHO_MAX     320u /* bytes, NUL included */
#define OBS_ADDRESS_MAX 64u

struct obs_options;
struct obp_hello;

struct obs_identity {
	/* "token 01ab23cd alice", "certificate CN=alice", "uid 1000", "anonymous" */
	char who[OBS_WHO_MAX];
	char from[80]; /* "10.0.0.7:4711", "unix" */
	/*
	 * what is counted as one: "10.0.0.7", "2001:db8:0:1::/64", "uid 1000"; filled by admission
	 */
	char address[OBS_ADDRESS_MAX];
	bool proved; /* `who` comes from a token or a certificate */
	bool local;  /* a unix socket or a loopback address */
	enum obt_scope scope;
	struct obt_allow allow; /* of its token */
};

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
