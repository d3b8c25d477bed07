/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The login at an etcd with authentication: gets a token for a user and a password, again when etcd
 * refuses the token. The password is read from its file for each login, so that it can be changed.
 * Embedded in its owner. Loop's thread only.
 */
#ifndef OBL_LOGIN_H
#define OBL_LOGIN_H

#include "loadbalancer/registry/endpoints.h"
#include "loadbalancer/registry/http.h"

#define OBL_LOGIN_MS     5000u /* time-out: etcd takes long to hash a password, on purpose */
#define OBL_PASSWORD_MAX 512u
#define OBL_TOKEN_MAX    900u

struct obl_login {
	struct obl_http *http;
	struct obl_endpoints *endpoints;
	char *user_name, *password_file; /* NULL: no authentication */
	char *token;                     /* NULL: none */
	struct obl_http_request *request;
	uint32_t endpoint, failures; /* of logins, in a row */
	uint64_t after;              /* ns: no attempt before */
	bool unwanted;               /* etcd has said that it has no authentication */
	/* Called when a login fails; endpoint -1: that is not the endpoint's fault. */
	void (*failed)(void *user, int endpoint, const char *why);
	void *user;
};

/* user_name NULL: none. The rest of the members is the caller's to set. */
void obl_login_init(struct obl_login *login, const char *user_name, const char *password_file);
void obl_login_fini(struct obl_login *login);
/* A call can be made: there is a token, or none is needed. */
bool obl_login_ready(const struct obl_login *login);
/* Logs in, unless a login goes on or the last one failed just now. */
void obl_login_start(struct obl_login *login, uint64_t now);
/* Whether an error of etcd's says that the token is not valid; then obl_login_forget helps. */
bool obl_login_refused(const struct obl_login *login, int code, const char *text);
/* Drops the token. */
void obl_login_forget(struct obl_login *login);

#endif
