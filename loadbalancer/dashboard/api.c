/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/dashboard/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/text.h"
#include "loadbalancer/dashboard/headers.h"
#include "loadbalancer/dashboard/reply.h"

#define API         "/api/v1/"
#define GET_METHODS "GET, HEAD"

/* A command that was given to the balancer. Freed when it has ended and its request too. */
struct obl_web_command {
	struct obl_api *api; /* NULL: the HTTP server was closed */
	struct obl_web_command *next, **link;
	struct MHD_Connection *connection; /* NULL: the request has ended */
	bool suspended, done;
	uint64_t begun_ns;
	uint32_t code; /* enum obp_pool_refusal; 0: done */
	char text[OBP_POOL_TEXT_MAX];
};

struct request {
	struct obl_web_command *command; /* that it waits for */
	size_t size;
	bool too_long;
	char body[]; /* OBL_BODY_MAX for POST */
};

void obl_api_init(struct obl_api *api, const struct obl_source *source, uint32_t look_ms,
	void (*wake)(void *user), void *wake_user)
{
	*api = (struct obl_api){ .source = source, .wake = wake, .wake_user = wake_user };
	obl_documents_init(&api->documents, source);
	obl_streams_init(&api->streams, source, &api->documents);
	obl_history_init(&api->history, look_ms);
}

/* ---- commands ---- */

static void command_unlink(struct obl_web_command *command)
{
	*command->link = command->next;
	if (command->next)
		command->next->link = command->link;
	command->api->n_commands--;
}

static void command_free(struct obl_web_command *command)
{
	command_unlink(command);
	free(command);
}

static void command_resume(struct obl_web_command *command)
{
	if (!command->suspended)
		return;
	command->suspended = false;
	MHD_resume_connection(command->connection);
}

static void command_done(void *user, uint32_t code, const char *text)
{
	struct obl_web_command *command = user;
	struct obl_api *api = command->api;

	if (!api) {
		free(command);
		return;
	}
	obl_documents_forget(&api->documents);
	command->done = true;
	command->code = code;
	snprintf(command->text, sizeof command->text, "%s", text ? text : "");
	if (!command->connection) {
		command_free(command);
	} else if (command->suspended) {
		command_resume(command);
		api->wake(api->wake_user);
	}
}

static enum MHD_Result command_reply(
	struct MHD_Connection *connection, const struct obl_web_command *command)
{
	static const unsigned statuses[] = { MHD_HTTP_OK, MHD_HTTP_CONFLICT,
		MHD_HTTP_SERVICE_UNAVAILABLE, MHD_HTTP_FORBIDDEN, MHD_HTTP_BAD_REQUEST,
		MHD_HTTP_INTERNAL_SERVER_ERROR };
	unsigned known = sizeof statuses / sizeof *statuses;

	if (!command->done)
		return obl_reply_error(connection, MHD_HTTP_GATEWAY_TIMEOUT,
			"the command has not ended in time",
			"it may still take effect: look at the list before you repeat it", NULL);
	if (command->code == 0)
		return obl_reply_done(connection, command->text);
	return obl_reply_error(connection,
		command->code < known ? statuses[command->code] : MHD_HTTP_INTERNAL_SERVER_ERROR,
		command->text[0] ? command->text : "the command was refused",
		command->code == OBP_POOL_LATER ? "try again in a few seconds"
						: "see the balancer's log for more",
		NULL);
}

static enum MHD_Result command_start(struct obl_api *api, struct MHD_Connection *connection,
	const struct obl_caller *caller, const struct obl_web_order *order, struct request *request)
{
	struct obl_web_command *command;

	if (api->n_commands >= OBL_WEB_COMMANDS_MAX || api->streams.closing)
		return obl_reply_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			"too many commands are under way", "try again in a few seconds", NULL);
	command = calloc(1, sizeof *command);
	if (!command)
		return MHD_NO;
	command->api = api;
	command->connection = connection;
	command->begun_ns = ob_clock_ns();
	command->next = api->commands;
	command->link = &api->commands;
	if (command->next)
		command->next->link = &command->next;
	api->commands = command;
	api->n_commands++;
	request->command = command;
	ob_info("command over HTTP by %s: %s %s %s", caller->who, order->verb, order->target,
		order->argument);
	api->source->command(api->source->user, caller, order->verb, order->target, order->argument,
		command_done, command);
	if (command->done)
		return command_reply(connection, command);
	command->suspended = true;
	MHD_suspend_connection(connection);
	return MHD_YES;
}

/* ---- who asks ---- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* False: a refusal was queued, with its result in *ret_result. */
static bool caller_find(struct obl_api *api, struct MHD_Connection *connection,
	struct obl_caller *ret, const char **ret_token, enum MHD_Result *ret_result)
{
	const char *token = obl_web_token_text(header(connection, "Authorization"));
	struct ob_cause cause = { .text = "the token is not known" };
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	int fd = info ? info->connect_fd : -1;
	enum ob_err err;

	*ret_token = token ? token : "";
	if (token && strlen(token) >= OBL_TOKEN_MAX) {
		*ret_result =
			obl_reply_error(connection, MHD_HTTP_UNAUTHORIZED, "the token is too long",
				"send a token made by 'outboard token create'", NULL);
		return false;
	}
	err = api->source->caller(api->source->user, fd, token, ret, &cause);
	if (err == OB_ERR_LIMIT) {
		*ret_result = obl_reply_error(connection, MHD_HTTP_TOO_MANY_REQUESTS, cause.text,
			"wait, and check the token", NULL);
		return false;
	}
	if (err == OB_ERR_IO) {
		*ret_result = obl_reply_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, cause.text,
			"try again; the balancer's log has the reason", NULL);
		return false;
	}
	if (err) {
		*ret_result = obl_reply_error(connection, MHD_HTTP_UNAUTHORIZED,
			token ? cause.text : "this balancer wants a token",
			"send 'Authorization: Bearer TOKEN' with a token of scope look, use or "
			"admin ('outboard token create' makes one)",
			NULL);
		return false;
	}
	/* A page of another site can add any header to requests to a name that it points here. */
	if (!ret->proven && !obl_web_host_own(header(connection, "Host"))) {
		*ret_result = obl_reply_error(connection, MHD_HTTP_FORBIDDEN,
			"without tokens the balancer answers only under its own name or address",
			"open it by its IP address, localhost or host name, or give the balancer "
			"--tokens",
			NULL);
		return false;
	}
	return true;
}

/* ---- GET ---- */

static enum MHD_Result metrics_reply(struct obl_api *api, struct MHD_Connection *connection)
{
	struct obl_caller caller;
	enum MHD_Result result;
	const char *token;

	if (!caller_find(api, connection, &caller, &token, &result))
		return result;
	if (!caller.all)
		return obl_reply_error(connection, MHD_HTTP_FORBIDDEN, "metrics are of all tenants",
			"use a token of scope look ('outboard token create --scope look')", NULL);
	return obl_reply_blob(&api->documents.readers, connection, OB_METRICS_TYPE,
		obl_documents_metrics(&api->documents, ob_clock_ns()));
}

static enum MHD_Result history_reply(struct obl_api *api, struct MHD_Connection *connection)
{
	static uint8_t uuids[OBL_HISTORY_ASK_MAX][16];
	const char *list = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "gpu");
	unsigned n = obl_web_gpus_read(list, uuids, OBL_HISTORY_ASK_MAX);
	char *text = NULL;
	size_t size = 0;

	if (n > OBL_HISTORY_ASK_MAX)
		return obl_reply_error(connection, MHD_HTTP_BAD_REQUEST,
			"'gpu' is not a list of at most 64 UUIDs",
			"write gpu=GPU-...,GPU-..., or leave it out for the whole pool", NULL);
	if (!obl_history_document(&api->history, uuids, n, &text, &size))
		text = NULL;
	return obl_reply_blob(&api->documents.readers, connection, OBL_TYPE_JSON,
		obl_documents_blob(&api->documents, text, size));
}

/* Who the caller is, for the page. */
static enum MHD_Result caller_reply(
	struct MHD_Connection *connection, const struct obl_caller *caller)
{
	struct obl_reply_json reply;

	if (!obl_reply_json_begin(&reply))
		return MHD_NO;
	ob_json_text(&reply.json, "tenant", caller->tenant);
	ob_json_text(&reply.json, "scope", caller->scope);
	ob_json_bool(&reply.json, "sees_all", caller->all);
	ob_json_bool(&reply.json, "may_command", caller->admin);
	return obl_reply_json_end(connection, &reply);
}

static enum MHD_Result api_get(
	struct obl_api *api, struct MHD_Connection *connection, const char *what)
{
	unsigned kind = obl_document_kind(what);
	struct obl_caller caller;
	enum MHD_Result result;
	const char *token, *text;
	uint64_t since = 0;

	if (!caller_find(api, connection, &caller, &token, &result))
		return result;
	if (strcmp(what, "stream") == 0)
		return obl_stream_open(&api->streams, connection, &caller, token,
			header(connection, "Last-Event-ID"));
	if (strcmp(what, "history") == 0)
		return history_reply(api, connection);
	if (strcmp(what, "caller") == 0)
		return caller_reply(connection, &caller);
	if (kind == OBL_DOCUMENT_KINDS)
		return obl_reply_error(connection, MHD_HTTP_NOT_FOUND,
			"the API has no such document",
			"there are fleet, info, servers, gpus, sessions, queue, quota, events, "
			"history, caller and stream under /api/v1/",
			NULL);
	text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "since");
	if (kind == OBL_DOCUMENT_EVENTS && text &&
		!ob_text_parse_number(text, 0, UINT64_MAX, &since))
		return obl_reply_error(connection, MHD_HTTP_BAD_REQUEST,
			"'since' is not a whole number", "write the number of an event", NULL);
	return obl_reply_blob(&api->documents.readers, connection, OBL_TYPE_JSON,
		obl_documents_get(&api->documents, &caller, kind, since, ob_clock_ns()));
}

static enum MHD_Result get(struct obl_api *api, struct MHD_Connection *connection, const char *path)
{
	if (strncmp(path, API, sizeof API - 1) == 0)
		return api_get(api, connection, path + sizeof API - 1);
	if (strcmp(path, "/metrics") == 0)
		return metrics_reply(api, connection);
	if (strcmp(path, "/healthz") == 0)
		return obl_reply_text(connection, "text/plain", "ok\n", 3);
	for (const struct obl_asset *asset = obl_assets; asset->path; asset++)
		if (strcmp(path, asset->path) == 0)
			return obl_reply_asset(connection, asset);
	return obl_reply_error(connection, MHD_HTTP_NOT_FOUND, "there is nothing at this address",
		"the dashboard is at /, the API at /api/v1/, metrics at /metrics", NULL);
}

/* ---- POST ---- */

static enum MHD_Result post(struct obl_api *api, struct MHD_Connection *connection,
	const char *path, struct request *request)
{
	static const char json[] = "application/json";
	const char *type = header(connection, "Content-Type"), *token;
	struct ob_cause cause = { 0 };
	struct obl_caller caller;
	struct obl_web_order order;
	enum MHD_Result result;

	if (!obl_web_order_find(path, &order))
		return obl_reply_error(connection, MHD_HTTP_NOT_FOUND,
			"there is no such command, or the name in it is malformed",
			"POST to /api/v1/servers/NAME/cordon, uncordon or drain, or to "
			"/api/v1/sessions/ID/kill or move",
			NULL);
	/* Neither can be sent by a form or script of another site without its being asked first. */
	if (!type || strncmp(type, json, sizeof json - 1) != 0)
		return obl_reply_error(connection, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
			"a command's Content-Type must be application/json",
			"add the header; the body may be empty", NULL);
	if (!obl_web_origin_own(header(connection, "Origin"), header(connection, "Host")))
		return obl_reply_error(connection, MHD_HTTP_FORBIDDEN,
			"the request comes from a page of another site",
			"use the dashboard of this balancer", NULL);
	if (!caller_find(api, connection, &caller, &token, &result))
		return result;
	if (!caller.admin)
		return obl_reply_error(connection, MHD_HTTP_FORBIDDEN,
			"this token may look, not command",
			"use a token of scope admin ('outboard token create --scope admin')", NULL);
	if (obl_web_body_read(request->body, request->size, &order, &cause))
		return obl_reply_error(connection, MHD_HTTP_BAD_REQUEST, cause.text,
			"drain takes {\"grace_s\": SECONDS}, move {\"server\": NAME}; the others "
			"take no body",
			NULL);
	return command_start(api, connection, &caller, &order, request);
}

/* ---- requests ---- */

static bool body_too_large(struct MHD_Connection *connection)
{
	const char *text = header(connection, "Content-Length");
	uint64_t length;

	return text &&
		(!ob_text_parse_number(text, 0, UINT64_MAX, &length) || length > OBL_BODY_MAX);
}

static enum MHD_Result too_large(struct MHD_Connection *connection)
{
	return obl_reply_error(connection, MHD_HTTP_CONTENT_TOO_LARGE,
		"the body of a request is at most 4 KiB", "send less", NULL);
}

static enum MHD_Result header_count(
	void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	obl_web_framing_add(user, name, value);
	return MHD_YES;
}

/* The first call for a request: its headers are there, its body is not. */
static enum MHD_Result begin(struct MHD_Connection *connection, const char *path,
	const char *version, bool reads, bool posts, void **state)
{
	struct obl_web_framing framing = { 0 };
	struct ob_cause cause;

	MHD_get_connection_values(connection, MHD_HEADER_KIND, header_count, &framing);
	if (obl_web_framing_check(&framing, version, &cause))
		return obl_reply_doubtful(connection, cause.text);
	if (!reads && !posts)
		return obl_reply_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			"this method is not supported", "use GET, or POST for commands",
			strncmp(path, API, sizeof API - 1) == 0 ? GET_METHODS ", POST"
								: GET_METHODS);
	if (body_too_large(connection))
		return too_large(connection);
	*state = calloc(1, sizeof(struct request) + (posts ? OBL_BODY_MAX : 0));
	return *state ? MHD_YES : MHD_NO;
}

enum MHD_Result obl_api_answer(void *user, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **state)
{
	bool posts = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
	bool reads = strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
		strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
	struct request *request = *state;

	if (!request)
		return begin(connection, url, version, reads, posts, state);
	if (*size) {
		if (!posts || *size > OBL_BODY_MAX - request->size)
			request->too_long = true;
		else
			memcpy(request->body + request->size, data, *size);
		request->size += request->too_long ? 0 : *size;
		*size = 0;
		return MHD_YES;
	}
	if (request->command)
		return command_reply(connection, request->command);
	if (request->too_long)
		return too_large(connection);
	if (strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 && strcmp(url, API "stream") == 0)
		return obl_reply_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			"a stream has no end, so HEAD has no answer", "use GET", "GET");
	return posts ? post(user, connection, url, request) : get(user, connection, url);
}

void obl_api_completed(void *user, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode why)
{
	struct request *request = *state;

	(void)user;
	(void)connection;
	(void)why;
	if (!request)
		return;
	if (request->command && request->command->done)
		command_free(request->command);
	else if (request->command)
		request->command->connection = NULL;
	free(request);
	*state = NULL;
}

/* ---- time ---- */

bool obl_api_tick(struct obl_api *api, uint64_t now_ns)
{
	bool run = obl_streams_tick(&api->streams, now_ns);

	for (struct obl_web_command *command = api->commands; command; command = command->next) {
		if (!command->suspended ||
			now_ns - command->begun_ns < OBL_WEB_COMMAND_S * OB_SECOND)
			continue;
		command_resume(command);
		run = true;
	}
	return run;
}

void obl_api_close(struct obl_api *api)
{
	obl_streams_close(&api->streams);
	for (struct obl_web_command *command = api->commands; command; command = command->next)
		command_resume(command);
}

void obl_api_fini(struct obl_api *api)
{
	while (api->commands) {
		struct obl_web_command *command = api->commands;

		command_unlink(command);
		command->api = NULL; /* freed when it ends */
	}
	obl_documents_fini(&api->documents);
	obl_history_fini(&api->history);
}
