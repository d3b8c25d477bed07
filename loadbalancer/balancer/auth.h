/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Who sends a message, and what that allows. With a token file each message that needs a right
 * carries a token; Unix sockets are protected by their file's permissions, and need none. The
 * tenant is the token's name up to the first '/'. Without a token file everybody is tenant
 * "default" and may do everything: such a balancer listens on this machine only, or was told
 * --insecure. Loop's thread only.
 */
#ifndef OBL_AUTH_H
#define OBL_AUTH_H

#include "base/cause.h"
#include "loadbalancer/balancer/link.h"
#include "protocol/pool.h"
#include "transport/token.h"

#define OBL_TENANT_DEFAULT "default"
#define OBL_WHO_MAX        (OBT_TOKEN_NAME + OBT_TOKEN_ID + 8)

enum obl_right {
	OBL_RIGHT_ASK,   /* scope use, admin */
	OBL_RIGHT_LOOK,  /* scope use, look, admin */
	OBL_RIGHT_SERVE, /* scope serve */
	OBL_RIGHT_ADMIN  /* scope admin */
};

struct obl_identity {
	char tenant[OBP_POOL_NAME_MAX];
	char who[OBL_WHO_MAX];  /* "token 01ab23cd alice", "anonymous" */
	bool all;               /* may look at everything: scope look or admin, or no tokens */
	struct obt_allow allow; /* the token's own limits */
};

struct obl_auth; /* the token file, read again when it has changed */

/* file: NULL: none. OB_ERR_IO and as obt_tokens_read: *ret_cause. */
enum ob_err obl_auth_open(const char *file, struct obl_auth **ret, struct ob_cause *ret_cause);
void obl_auth_close(struct obl_auth *auth);
/*
 * Checks the token of a message. OB_ERR_DENIED; OB_ERR_LIMIT (the address has shown too many wrong
 * tokens), OB_ERR_IO (the tokens cannot be read): the same token may be good later. *ret_cause tells
 * its bearer what is needed. Wrong tokens make the address wait.
 */
enum ob_err obl_auth_check(struct obl_auth *auth, struct obl_address *address, const char *token,
	enum obl_right right, struct obl_identity *ret, struct ob_cause *ret_cause);
/* What a peer is told of an error of obl_auth_check: OBP_POOL_DENIED is final, OBP_POOL_LATER not. */
enum obp_pool_refusal obl_auth_refusal(enum ob_err err);
/* Sends REFUSED with it, and OBL_RETRY_MS if it is not final. */
void obl_auth_refuse(struct obl_link *link, enum ob_err err, const struct ob_cause *cause);

#endif
