/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "loadbalancer/balancer/values.h"

#define HASH_TEXT 18u /* bytes of "-" and a hash in hexadecimal, NUL included */

/*
 * A change within the timestamp's granularity after a reading is invisible, so a file that was
 * changed recently is read each time.
 */
#define FILE_YOUNG_S 2

struct obl_auth {
	const char *file;
	struct obt_tokens tokens;
	struct stat seen;
	bool kept; /* `tokens` is the file as `seen` */
};

static bool file_same(const struct obl_auth *auth, const struct stat *now)
{
	return auth->kept && now->st_ino == auth->seen.st_ino && now->st_dev == auth->seen.st_dev &&
		now->st_size == auth->seen.st_size &&
		now->st_mtim.tv_sec == auth->seen.st_mtim.tv_sec &&
		now->st_mtim.tv_nsec == auth->seen.st_mtim.tv_nsec;
}

static enum ob_err tokens_load(struct obl_auth *auth, struct ob_cause *ret_cause)
{
	struct obt_tokens fresh = { 0 };
	struct stat now = { 0 };
	bool there = stat(auth->file, &now) == 0;
	enum ob_err err;

	if (there && file_same(auth, &now))
		return OB_ERR_NONE;
	err = obt_tokens_read(auth->file, &fresh, ret_cause);
	if (err)
		return err;
	obt_tokens_fini(&auth->tokens);
	auth->tokens = fresh;
	auth->seen = now;
	auth->kept = there && time(NULL) - now.st_mtim.tv_sec > FILE_YOUNG_S;
	return OB_ERR_NONE;
}

enum ob_err obl_auth_open(const char *file, struct obl_auth **ret, struct ob_cause *ret_cause)
{
	struct obl_auth *auth = calloc(1, sizeof *auth);
	enum ob_err err;

	if (!auth)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory for tokens");
	auth->file = file;
	err = file ? tokens_load(auth, ret_cause) : OB_ERR_NONE;
	if (err)
		free(auth);
	else
		*ret = auth;
	return err;
}

void obl_auth_close(struct obl_auth *auth)
{
	if (auth)
		obt_tokens_fini(&auth->tokens);
	free(auth);
}

/* ---- rights ---- */

static bool allows(enum obt_scope scope, enum obl_right right)
{
	switch (right) {
	case OBL_RIGHT_ASK:
		return scope == OBT_SCOPE_USE || scope == OBT_SCOPE_ADMIN;
	case OBL_RIGHT_LOOK:
		return scope != OBT_SCOPE_SERVE;
	case OBL_RIGHT_SERVE:
		return scope == OBT_SCOPE_SERVE;
	case OBL_RIGHT_ADMIN:
		return scope == OBT_SCOPE_ADMIN;
	}
	return false;
}

static const char *what_needs(enum obl_right right)
{
	static const char *const texts[] = {
		[OBL_RIGHT_ASK] = "asking for GPUs needs a token of scope 'use'",
		[OBL_RIGHT_LOOK] = "looking at the pool needs a token of scope 'look' or 'use'",
		[OBL_RIGHT_SERVE] = "a server that joins the pool needs a token of scope 'serve'",
		[OBL_RIGHT_ADMIN] = "this command needs a token of scope 'admin'",
	};

	return texts[right];
}

/*
 * "alice/laptop" belongs to tenant "alice". Characters that a name may not have become '-'; then a
 * hash of the original follows, so that two people never share a tenant.
 */
static void tenant_of(const char *name, char ret[OBP_POOL_NAME_MAX])
{
	size_t n = strcspn(name, "/");
	uint64_t hash = ob_hash(OB_HASH_START, name, n);
	bool same = n > 0 && n < OBP_POOL_NAME_MAX && name[0] != '.';

	snprintf(ret, OBP_POOL_NAME_MAX - HASH_TEXT, "%.*s", (int)n, name);
	for (char *c = ret; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    *c)) {
			*c = '-';
			same = false;
		}
	if (ret[0] == '.')
		ret[0] = '-';
	if (same && n < OBP_POOL_NAME_MAX - HASH_TEXT)
		return;
	snprintf(ret + strlen(ret), HASH_TEXT, "-%016llx", (unsigned long long)hash);
}

static enum ob_err token_check(struct obl_auth *auth, struct obl_address *address, const char *text,
	enum obl_right right, struct obl_identity *ret, struct ob_cause *ret_cause)
{
	uint64_t now = ob_clock_ns();
	uint32_t wait_s = obl_address_wait_s(address, now);
	const struct obt_token *token;
	struct ob_cause cause;
	enum ob_err err;

	if (wait_s)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT,
			"too many wrong tokens from this address; try again in %u s", wait_s);
	if (tokens_load(auth, &cause)) {
		/* for the operator; the peer gets less detail */
		ob_error("tokens: %s", cause.text);
		return ob_cause_set(ret_cause, OB_ERR_IO,
			"the balancer cannot read its tokens; tell its operator");
	}
	err = obt_tokens_check(&auth->tokens, text, (uint64_t)time(NULL), &token, ret_cause);
	if (err) {
		obl_address_wrong(address, now);
		return err;
	}
	obl_address_right(address);
	if (!allows(token->scope, right))
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"%s; this one has scope '%s' ('outboard token create --scope' makes "
			"tokens)",
			what_needs(right), obt_scope_name(token->scope));
	tenant_of(token->name, ret->tenant);
	snprintf(ret->who, sizeof ret->who, "token %s %s", token->id, token->name);
	ret->all = token->scope != OBT_SCOPE_USE;
	ret->allow = token->allow;
	return OB_ERR_NONE;
}

enum ob_err obl_auth_check(struct obl_auth *auth, struct obl_address *address, const char *token,
	enum obl_right right, struct obl_identity *ret, struct ob_cause *ret_cause)
{
	*ret = (struct obl_identity){
		.tenant = OBL_TENANT_DEFAULT, .who = "anonymous", .all = true
	};
	if (!auth->file || (address->unix_socket && !token[0]))
		return OB_ERR_NONE;
	if (!token[0])
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"%s: set OUTBOARD_TOKEN, or run 'outboard login'", what_needs(right));
	return token_check(auth, address, token, right, ret, ret_cause);
}

enum obp_pool_refusal obl_auth_refusal(enum ob_err err)
{
	return err == OB_ERR_DENIED ? OBP_POOL_DENIED : OBP_POOL_LATER;
}

void obl_auth_refuse(struct obl_link *link, enum ob_err err, const struct ob_cause *cause)
{
	enum obp_pool_refusal code = obl_auth_refusal(err);

	obl_link_refuse(link, code, code == OBP_POOL_LATER ? OBL_RETRY_MS : 0, cause->text);
}
