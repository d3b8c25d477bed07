/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Bearer tokens, with which clients authenticate without a certificate. The text is
 * "obt_ID_SECRET", with 8 hexadecimal digits of ID and 64 of SECRET: 256 random bits. A token file
 * has one line for each token and does not contain the secret:
 *
 *     ID SHA-256-OF-THE-SECRET SCOPE EXPIRY [LIMITS] NAME
 *
 * EXPIRY is in seconds since 1970, or 0 for never; [LIMITS] are the bearer's own limits
 * (transport/allow.h), in brackets, or absent. The server reads the file at every hello, so that a
 * change applies to the next session. Files are replaced as a whole. No state; any thread.
 */
#ifndef OBT_TOKEN_H
#define OBT_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/allow.h"
#include "transport/digest.h"
#include "transport/stream.h"

#define OBT_TOKEN_ID      9u     /* bytes of an id, NUL included */
#define OBT_TOKEN_TEXT    80u    /* bytes of a token's text, NUL included */
#define OBT_TOKEN_NAME    64u    /* bytes of a name, NUL included */
#define OBT_TOKENS_MAX    10000u /* in one file */
#define OBT_TOKENS_LOCK_S 10u

/*
 * USE: run programs. LOOK: see the devices only. To a balancer also SERVE: register a server, and
 * ADMIN: everything that an operator does.
 */
enum obt_scope { OBT_SCOPE_USE, OBT_SCOPE_LOOK, OBT_SCOPE_SERVE, OBT_SCOPE_ADMIN };

struct obt_token {
	char id[OBT_TOKEN_ID];
	uint8_t hash[OBT_SHA256_BYTES];
	enum obt_scope scope;
	uint64_t expiry; /* seconds since 1970; 0: never */
	struct obt_allow allow;
	char name[OBT_TOKEN_NAME];
};

struct obt_tokens {
	struct obt_token *list; /* n; freed by obt_tokens_fini */
	size_t n;
};

const char *obt_scope_name(enum obt_scope scope);
bool obt_scope_find(const char *name, enum obt_scope *ret);

/* Reads a file; one that does not exist is empty. OB_ERR_IO, _LIMIT, _ARGUMENT (a malformed line). */
enum ob_err obt_tokens_read(const char *path, struct obt_tokens *ret, struct ob_cause *ret_cause);
/* The same for an open file; closes it. `name` is for ret_cause. */
enum ob_err obt_tokens_read_fd(
	int fd, const char *name, struct obt_tokens *ret, struct ob_cause *ret_cause);
/*
 * Locks the file for a change: read, write, then close *ret_fd. With `make` one that does not exist
 * is made, empty and readable by its owner only. Waits for OBT_TOKENS_LOCK_S at most. OB_ERR_IO.
 */
enum ob_err obt_tokens_lock(const char *path, bool make, int *ret_fd, struct ob_cause *ret_cause);
/*
 * Replaces the file in one step; owner, group and mode stay. A new file is readable by its owner
 * only. OB_ERR_IO; OB_ERR_DENIED: this user cannot keep its owner.
 */
enum ob_err obt_tokens_write(
	const char *path, const struct obt_tokens *tokens, struct ob_cause *ret_cause);
void obt_tokens_fini(struct obt_tokens *tokens);

/*
 * Adds a new token; its text, which is stored nowhere, goes to ret_text. allow NULL: no limits of
 * its own. OB_ERR_LIMIT: OBT_TOKENS_MAX. OB_ERR_NO_MEMORY. OB_ERR_IO: no random bytes.
 */
enum ob_err obt_tokens_add(struct obt_tokens *tokens, const char *name, enum obt_scope scope,
	uint64_t expiry, const struct obt_allow *allow, char ret_text[OBT_TOKEN_TEXT]);
/* False: there is no such id. */
bool obt_tokens_remove(struct obt_tokens *tokens, const char *id);
/*
 * Finds the token with this text, which stays in `tokens`. OB_ERR_DENIED: *ret_cause is for its
 * bearer. Compares every token of
 * the file in constant time, so that the delay reveals nothing. now: seconds since 1970.
 */
enum ob_err obt_tokens_check(const struct obt_tokens *tokens, const char *text, uint64_t now,
	const struct obt_token **ret, struct ob_cause *ret_cause);

/*
 * Gets OUTBOARD_TOKEN for a hello on this stream; "" if it is not set. OB_ERR_DENIED: it is
 * set, and the stream would carry it in clear to another machine.
 */
enum ob_err obt_token_show(const struct obt_stream *stream, char ret_text[OBT_TOKEN_TEXT]);

#endif
