/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The identity of a client, as established by admission (auth.h). Passed to the supervisor and to
 * the worker. Plain data.
 */
#ifndef OBS_IDENTITY_H
#define OBS_IDENTITY_H

#include <stdbool.h>

#include "transport/allow.h"
#include "transport/token.h"

#define OBS_WHO_MAX     320u /* bytes, NUL included */
#define OBS_ADDRESS_MAX 64u

struct obs_identity {
	/* "token 01ab23cd alice", "certificate CN=alice", "uid 1000", "anonymous" */
	char who[OBS_WHO_MAX];
	char from[80]; /* "10.0.0.7:4711", "unix" */
	/*
	 * what limits by address count as one address: "10.0.0.7", "2001:db8:0:1::/64", "uid 1000";
	 * set by admission
	 */
	char address[OBS_ADDRESS_MAX];
	bool proved; /* authenticated: `who` is from a token or a certificate */
	bool local;  /* a unix socket or a loopback address */
	enum obt_scope scope;
	struct obt_allow allow; /* from its token */
};

#endif
