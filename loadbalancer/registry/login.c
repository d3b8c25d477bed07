/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/login.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "loadbalancer/registry/alloc.h"
#include "loadbalancer/registry/etcd_error.h"

#define ANSWER_MAX      (64u << 10)
#define RETRY_FIRST_NS  (200 * OB_MS) /* doubled by each failure in a row */
#define RETRY_MAX_SHIFT 7u

void obl_login_init(struct obl_login *login, const char *user_name, const char *password_file)
{
	login->user_name = user_name ? obl_copy_text(user_name) : NULL;
	login->password_file = password_file ? obl_copy_text(password_file) : NULL;
}

void obl_login_fini(struct obl_login *login)
{
	if (login->request)
		obl_http_cancel(login->request);
	login->request = NULL;
	obl_login_forget(login);
	free(login->user_name);
	free(login->password_file);
}

bool obl_login_ready(const struct obl_login *login)
{
	return !login->user_name || login->unwanted || login->token;
}

bool obl_login_refused(const struct obl_login *login, int code, const char *text)
{
	if (!login->user_name)
		return false;
	return code == OBL_GRPC_UNAUTHENTICATED || strstr(text, "invalid auth token") ||
		strstr(text, "user name is empty") || strstr(text, "revision of auth store is old");
}

void obl_login_forget(struct obl_login *login)
{
	free(login->token);
	login->token = NULL;
	login->unwanted = false;
}

/* A token goes into a header: printable characters only. */
static bool is_token(const char *text)
{
	size_t n = 0;

	for (; text[n]; n++)
		if (text[n] <= ' ' || text[n] > '~' || n == OBL_TOKEN_MAX)
			return false;
	return n > 0;
}

static void login_failed(struct obl_login *login, int endpoint, const char *why)
{
	uint32_t shift = login->failures < RETRY_MAX_SHIFT ? login->failures : RETRY_MAX_SHIFT;

	login->failures++;
	login->after = ob_clock_ns() + (RETRY_FIRST_NS << shift);
	login->failed(login->user, endpoint, why);
}

static void take_answer(struct obl_login *login, const json_t *root)
{
	const char *token = json_string_value(json_object_get(root, "token")), *text;
	char why[400];
	int code;

	if (token && is_token(token)) {
		login->token = obl_copy_text(token);
		login->failures = 0;
	} else if (!obl_etcd_error(root, &code, &text)) {
		login_failed(login, (int)login->endpoint, "its answer to a login has no token");
	} else if (code == OBL_GRPC_PRECONDITION && strstr(text, "not enabled")) {
		if (!login->failures)
			ob_warn("etcd has no authentication: the user and the password file are "
				"not "
				"used");
		login->unwanted = true;
	} else if (code == OBL_GRPC_UNAVAILABLE) {
		login_failed(login, (int)login->endpoint, text);
	} else {
		snprintf(why, sizeof why,
			"etcd refuses the user \"%.64s\" (%.200s): check the user and the password "
			"file",
			login->user_name, text);
		ob_error("%s", why);
		login_failed(login, -1, why);
	}
}

static void login_done(void *user, const struct obl_http_answer *answer)
{
	struct obl_login *login = user;
	json_t *root;

	login->request = NULL;
	if (answer->err != OB_ERR_NONE) {
		login_failed(login, (int)login->endpoint, answer->why);
		return;
	}
	root = json_loadb(answer->body, answer->size, 0, NULL);
	take_answer(login, root);
	json_decref(root);
}

/* Reads the password, without the newline at its end. */
static enum ob_err read_password(
	const char *path, char ret_password[OBL_PASSWORD_MAX + 1], struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret_password, OBL_PASSWORD_MAX + 1);

	if (n < 0)
		return ob_cause_set_system(
			ret_cause, OB_ERR_IO, errno, "cannot read the password file %s", path);
	if (n > (ssize_t)OBL_PASSWORD_MAX)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT,
			"the password in %s is longer than %u bytes", path, OBL_PASSWORD_MAX);
	while (n > 0 && (ret_password[n - 1] == '\n' || ret_password[n - 1] == '\r'))
		n--;
	ret_password[n] = 0;
	return OB_ERR_NONE;
}

/* The body of the request; NULL: the user or the password is not UTF-8. */
static char *make_body(const struct obl_login *login, const char *password)
{
	json_t *root = json_pack("{s:s, s:s}", "name", login->user_name, "password", password);
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return text;
}

void obl_login_start(struct obl_login *login, uint64_t now)
{
	char url[OBL_ENDPOINT_URL_MAX + 64], password[OBL_PASSWORD_MAX + 1];
	OB_CLEANUP(ob_freep) char *body = NULL;
	struct obl_http_call call = { .url = url,
		.timeout_ms = OBL_LOGIN_MS,
		.answer_max = ANSWER_MAX,
		.done = login_done,
		.user = login };
	struct ob_cause cause;

	if (login->request || now < login->after || obl_endpoints_when(login->endpoints, now) > now)
		return;
	if (read_password(login->password_file, password, &cause) != OB_ERR_NONE) {
		login_failed(login, -1, cause.text);
		return;
	}
	body = make_body(login, password);
	explicit_bzero(password, sizeof password);
	if (!body) {
		login_failed(login, -1, "etcd's user name or password is not UTF-8");
		return;
	}
	login->endpoint = login->endpoints->current;
	snprintf(url, sizeof url, "%s/v3/auth/authenticate",
		login->endpoints->list[login->endpoint].url);
	call.body = body;
	call.size = strlen(body);
	login->request = obl_http_start(login->http, &call);
}
