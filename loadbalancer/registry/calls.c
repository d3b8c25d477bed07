/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/calls.h"

#include <stdio.h>

#include "loadbalancer/registry/alloc.h"
#include "loadbalancer/registry/etcd_error.h"

struct obl_call {
	TAILQ_ENTRY(obl_call) all;
	struct obl_calls *calls;
	enum obl_call_kind kind;
	const char *path;
	struct ob_buf body;
	size_t answer_max;
	obl_reply_done *done;
	void *user;
	struct obl_http_request *request; /* NULL: waits */
	uint32_t endpoint, attempts;
	uint64_t started, deadline, due; /* ns */
	bool refused_token;              /* once already */
	bool over;                       /* fails at the next tick, with cause */
	struct ob_cause cause;
	int code;
};

static void attempt(struct obl_call *call, uint64_t now);
static void attempt_waiting(struct obl_calls *calls, uint64_t now);

/* ---- the end of a call ---- */

/* The call is no longer at etcd. */
static void leave(struct obl_call *call)
{
	if (call->request && call->kind != OBL_CALL_URGENT)
		call->calls->n_sent--;
	call->request = NULL;
}

static void call_free(struct obl_call *call)
{
	struct obl_calls *calls = call->calls;

	if (call->request)
		obl_http_cancel(call->request);
	leave(call);
	calls->bytes -= call->body.size;
	TAILQ_REMOVE(&calls->list, call, all);
	ob_buf_fini(&call->body);
	free(call);
}

static void end(struct obl_call *call, struct obl_reply *reply)
{
	obl_reply_done *done = call->done;
	void *user = call->user;

	reply->started_ns = call->started;
	call_free(call);
	done(user, reply);
}

static void end_failed(struct obl_call *call)
{
	struct ob_cause cause = call->cause;
	struct obl_reply reply = { .err = cause.code, .cause = &cause, .code = call->code };

	end(call, &reply);
}

/* ---- answers ---- */

static const char *url_of(const struct obl_call *call)
{
	return call->calls->endpoints.list[call->endpoint].url;
}

static void note_failure(struct obl_calls *calls, const struct ob_cause *cause)
{
	calls->failure = *cause;
	calls->failure_ns = ob_clock_ns();
}

/* The answer is an error of etcd's: *ret_again says whether to try again. */
static void take_error(struct obl_call *call, int code, const char *text, bool *ret_again)
{
	struct obl_calls *calls = call->calls;
	bool not_executed = obl_etcd_not_executed(code, text);
	const char *hint = "";

	call->code = code;
	*ret_again = false;
	if (obl_login_refused(&calls->login, code, text) && !call->refused_token) {
		call->refused_token = true;
		obl_login_forget(&calls->login);
		*ret_again = true;
	} else if (code == OBL_GRPC_UNAVAILABLE) {
		obl_calls_endpoint_failed(calls, call->endpoint, text);
		*ret_again = not_executed || call->kind != OBL_CALL_ONCE;
	} else {
		obl_endpoints_ok(&calls->endpoints, call->endpoint);
	}
	if (strstr(text, "user name is empty"))
		hint = ": give a user and a password file";
	else if (code == OBL_GRPC_UNAVAILABLE && url_of(call)[4] == 's' &&
		!strstr(text, "etcdserver"))
		hint = ": etcd's certificate must be valid for server and client authentication";
	ob_cause_set(&call->cause, not_executed ? OB_ERR_REFUSED : OB_ERR_TIMEOUT,
		"etcd at %s answers: %.300s%s", url_of(call), text, hint);
	note_failure(calls, &call->cause);
}

static void take_broken(struct obl_call *call, const char *what)
{
	obl_calls_endpoint_failed(call->calls, call->endpoint, what);
	ob_cause_set(&call->cause, OB_ERR_PROTOCOL,
		"%s answered in a way that etcd 3.4 or newer does not (%s): is it an etcd?",
		url_of(call), what);
}

/* True: the call has ended. */
static bool take_body(struct obl_call *call, const struct obl_http_answer *answer, bool *ret_again)
{
	json_t *root = json_loadb(answer->body, answer->size, 0, NULL);
	struct obl_reply reply = { .root = root };
	const char *text;
	int code;

	if (!json_is_object(root)) {
		take_broken(call, answer->status == 200 ? "not a JSON object" : "an HTTP error");
		*ret_again = call->kind != OBL_CALL_ONCE;
	} else if (obl_etcd_error(root, &code, &text)) {
		take_error(call, code, text, ret_again);
	} else if (answer->status != 200) {
		take_broken(call, "an HTTP error");
		*ret_again = call->kind != OBL_CALL_ONCE;
	} else {
		obl_endpoints_ok(&call->calls->endpoints, call->endpoint);
		end(call, &reply);
		json_decref(root);
		return true;
	}
	json_decref(root);
	return false;
}

/* Transport errors. */
static void take_failure(
	struct obl_call *call, const struct obl_http_answer *answer, bool *ret_again)
{
	bool unsent = answer->err == OB_ERR_CONNECT || answer->err == OB_ERR_TLS;
	/* An answer that is too large was made by a call that may have been executed. */
	enum ob_err err = unsent              ? OB_ERR_CONNECT
		: answer->err == OB_ERR_LIMIT ? OB_ERR_PROTOCOL
					      : answer->err;

	obl_calls_endpoint_failed(call->calls, call->endpoint, answer->why);
	ob_cause_set(&call->cause, err == OB_ERR_CLOSED ? OB_ERR_TIMEOUT : err, "etcd at %s: %s",
		url_of(call), answer->why);
	*ret_again = unsent || (call->kind != OBL_CALL_ONCE && err != OB_ERR_PROTOCOL);
}

static void take_answer(struct obl_call *call, const struct obl_http_answer *answer)
{
	struct obl_calls *calls = call->calls;
	uint64_t now = ob_clock_ns();
	bool again = false;

	leave(call);
	call->code = 0;
	if (answer->err != OB_ERR_NONE)
		take_failure(call, answer, &again);
	else if (take_body(call, answer, &again))
		return;
	if (!again || call->attempts > 4 * calls->endpoints.n || now >= call->deadline ||
		!obl_endpoints_retry(&calls->endpoints, now))
		end_failed(call);
	else
		attempt(call, now);
}

static void answered(void *user, const struct obl_http_answer *answer)
{
	struct obl_calls *calls = ((struct obl_call *)user)->calls;

	take_answer(user, answer);
	attempt_waiting(calls, ob_clock_ns());
}

/* ---- attempts ---- */

/* As many as possible are at etcd: the call waits here, where its time-out does not run yet. */
static bool is_full(const struct obl_call *call)
{
	return call->kind != OBL_CALL_URGENT && call->calls->n_sent >= OBL_CALLS_MAX;
}

static void attempt(struct obl_call *call, uint64_t now)
{
	struct obl_calls *calls = call->calls;
	struct obl_endpoints *endpoints = &calls->endpoints;
	char url[OBL_ENDPOINT_URL_MAX + 64];
	struct obl_http_call http = { .url = url,
		.body = call->body.data,
		.size = call->body.size,
		.timeout_ms = calls->timeout_ms,
		.answer_max = call->answer_max,
		.once = call->kind == OBL_CALL_ONCE,
		.done = answered,
		.user = call };

	call->due = obl_endpoints_when(endpoints, now);
	if (call->due > now || is_full(call))
		return; /* attempt_waiting goes on */
	if (!obl_login_ready(&calls->login)) {
		obl_login_start(&calls->login, now);
		return;
	}
	call->endpoint = endpoints->current;
	call->attempts++;
	call->started = now;
	snprintf(url, sizeof url, "%s%s", endpoints->list[call->endpoint].url, call->path);
	http.token = calls->login.token;
	call->request = obl_http_start(calls->http, &http);
	if (call->kind != OBL_CALL_URGENT)
		calls->n_sent++;
}

void obl_calls_start(struct obl_calls *calls, enum obl_call_kind kind, const char *path,
	struct ob_buf *body, size_t answer_max, obl_reply_done *done, void *user)
{
	struct obl_call *call = obl_alloc(1, sizeof *call);
	uint64_t now = ob_clock_ns();

	call->calls = calls;
	call->kind = kind;
	call->path = path;
	call->body = *body;
	call->answer_max = answer_max;
	call->done = done;
	call->user = user;
	call->deadline = now + OBL_CALL_TIMEOUTS * calls->timeout_ms * OB_MS;
	TAILQ_INSERT_TAIL(&calls->list, call, all);
	*body = (struct ob_buf){ 0 };
	calls->bytes += call->body.size;
	obl_alloc_check(call->body.failed ? NULL : call);
	if (calls->bytes > OBL_CALL_BYTES_MAX) {
		call->over = true;
		ob_cause_set(&call->cause, OB_ERR_LIMIT,
			"more than %u MiB of the registry's operations are pending",
			OBL_CALL_BYTES_MAX >> 20);
		return;
	}
	obl_endpoints_called(&calls->endpoints);
	attempt(call, now);
}

void obl_calls_refuse(
	struct obl_calls *calls, const struct ob_cause *cause, obl_reply_done *done, void *user)
{
	struct obl_call *call = obl_alloc(1, sizeof *call);

	call->calls = calls;
	call->done = done;
	call->user = user;
	call->cause = *cause;
	call->over = true;
	TAILQ_INSERT_TAIL(&calls->list, call, all);
}

struct obl_http_request *obl_calls_stream(struct obl_calls *calls, const char *path,
	const struct ob_buf *body, struct obl_http_call *call, uint32_t *ret_endpoint)
{
	char url[OBL_ENDPOINT_URL_MAX + 64];
	uint64_t now = ob_clock_ns();

	if (obl_endpoints_when(&calls->endpoints, now) > now)
		return NULL;
	if (!obl_login_ready(&calls->login)) {
		obl_login_start(&calls->login, now);
		return NULL;
	}
	*ret_endpoint = calls->endpoints.current;
	snprintf(url, sizeof url, "%s%s", calls->endpoints.list[*ret_endpoint].url, path);
	call->url = url;
	call->body = body->data;
	call->size = body->size;
	call->timeout_ms = calls->timeout_ms;
	call->token = calls->login.token;
	return obl_http_start(calls->http, call);
}

/* A call that has waited until its deadline was never sent. */
static void end_late(struct obl_call *call)
{
	if (call->cause.code == OB_ERR_NONE || call->cause.code == OB_ERR_CONNECT)
		ob_cause_set(&call->cause, OB_ERR_CONNECT, "not sent to etcd in time: %s",
			obl_calls_failure_text(call->calls, "too many operations wait"));
	end_failed(call);
}

/* The next call that has something to do; `done` may have changed the list. */
static struct obl_call *next_due(struct obl_calls *calls, uint64_t now)
{
	bool open =
		obl_login_ready(&calls->login) && obl_endpoints_when(&calls->endpoints, now) <= now;
	struct obl_call *call;

	for (call = TAILQ_FIRST(&calls->list); call; call = TAILQ_NEXT(call, all)) {
		bool may_go = open && now >= call->due && !is_full(call);

		if (!call->request && (call->over || now >= call->deadline || may_go))
			return call;
	}
	return NULL;
}

static size_t count(const struct obl_calls *calls)
{
	size_t n = 0;

	for (const struct obl_call *call = TAILQ_FIRST(&calls->list); call;
		call = TAILQ_NEXT(call, all))
		n++;
	return n;
}

/* Not the calls that are started meanwhile: a user may repeat at once what was refused. */
static void attempt_waiting(struct obl_calls *calls, uint64_t now)
{
	size_t n = count(calls);
	struct obl_call *call;

	while (n-- > 0 && (call = next_due(calls, now))) {
		if (call->over)
			end_failed(call);
		else if (now >= call->deadline)
			end_late(call);
		else
			attempt(call, now);
	}
}

void obl_calls_tick(struct obl_calls *calls, uint64_t now)
{
	if (!obl_login_ready(&calls->login) && !TAILQ_EMPTY(&calls->list))
		obl_login_start(&calls->login, now);
	attempt_waiting(calls, now);
}

/* ---- endpoints ---- */

void obl_calls_endpoint_failed(struct obl_calls *calls, uint32_t endpoint, const char *why)
{
	struct ob_cause cause;

	ob_cause_set(&cause, OB_ERR_CONNECT, "etcd at %s: %.300s",
		calls->endpoints.list[endpoint].url, why);
	ob_debug("%s", cause.text);
	note_failure(calls, &cause);
	obl_endpoints_failed(&calls->endpoints, endpoint, ob_clock_ns());
	if (calls->failed)
		calls->failed(calls->user, endpoint);
}

static void login_failed(void *user, int endpoint, const char *why)
{
	struct obl_calls *calls = user;
	struct ob_cause cause;

	if (endpoint >= 0) {
		obl_calls_endpoint_failed(calls, (uint32_t)endpoint, why);
		return;
	}
	ob_cause_set(&cause, OB_ERR_DENIED, "%s", why);
	note_failure(calls, &cause);
}

const char *obl_calls_failure_text(const struct obl_calls *calls, const char *otherwise)
{
	bool lately =
		calls->failure.code && ob_clock_ns() < calls->failure_ns + OBL_FAILURE_LATELY_NS;

	return lately ? calls->failure.text : otherwise;
}

void obl_calls_init(struct obl_calls *calls, const char *user_name, const char *password_file)
{
	TAILQ_INIT(&calls->list);
	calls->login = (struct obl_login){ .http = calls->http,
		.endpoints = &calls->endpoints,
		.failed = login_failed,
		.user = calls };
	obl_login_init(&calls->login, user_name, password_file);
}

void obl_calls_close(struct obl_calls *calls)
{
	struct obl_call *call;
	size_t n = count(calls);

	while (n-- > 0 && (call = TAILQ_FIRST(&calls->list))) {
		ob_cause_set(
			&call->cause, OB_ERR_CLOSED, "the registry was closed before it answered");
		end_failed(call);
	}
}

void obl_calls_fini(struct obl_calls *calls)
{
	struct obl_call *call;

	while ((call = TAILQ_FIRST(&calls->list)))
		call_free(call);
	obl_login_fini(&calls->login);
}
