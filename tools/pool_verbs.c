/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The verbs that show a pool: server list and info, gpu list, session list and info, queue, quota, events. */
#include "tools/pool_verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tools/command.h"
#include "tools/pool_look.h"
#include "tools/pool_tables.h"
#include "tools/servers.h"

struct settings {
	struct obx_look look; /* first */
	const char *server;
	const char *name, *limits;
	uint64_t since;
};

static const struct ob_option look_options[] = { OBX_LOOK_OPTIONS, { 0 } };
static const struct ob_option list_options[] = { OBX_LOOK_OPTIONS,
	OBX_SERVER_LIST_OPTION(struct settings, server), { 0 } };

/* Parses the command line and shows a document. Returns the exit code. */
static int look_main(
	const struct ob_command *command, int argc, char **argv, struct obx_question *question)
{
	struct settings s = { .name = NULL };
	int code = ob_options_parse(command, &s, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	if (s.name)
		question->target = s.name;
	question->since = s.since;
	return obx_look(command, &s.look, question);
}

/* Prints one list of the document as a table. */
static int table_show(const char *key, const json_t *document, const struct obx_column *columns,
	struct obx_paper paper)
{
	return obx_table_print(json_object_get(document, key), document, columns, paper)
		? 0
		: obx_document_wrong(key);
}

/* ---- server list, gpu list: of a pool, or of a list of servers ---- */

static int servers_show(
	struct obx_question *question, const json_t *document, struct obx_paper paper)
{
	(void)question;
	return table_show("servers", document, obx_servers_columns, paper);
}

static int gpus_show(struct obx_question *question, const json_t *document, struct obx_paper paper)
{
	(void)question;
	return table_show("gpus", document, obx_gpus_columns, paper);
}

/* The same of servers without a pool, if --server names them. */
static int list_main(const struct ob_command *command, int argc, char **argv,
	struct obx_question *question, bool details)
{
	struct settings s = { .name = NULL };
	int code = ob_options_parse(command, &s, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	if (!s.server)
		return obx_look(command, &s.look, question);
	if (s.look.json || s.look.watch)
		return ob_usage_error(command,
			"--json and --watch are for a pool; 'outboard top --server' has them for "
			"one server");
	return obx_servers_look(command->name + sizeof "outboard", s.server, details);
}

static int server_list_main(int argc, char **argv)
{
	struct obx_question question = { .what = "servers", .target = "", .show = servers_show };

	return list_main(&obx_server_list_command, argc, argv, &question, false);
}

const struct ob_command obx_server_list_command = {
	.name = "outboard server list",
	.summary = "the servers of a pool, or of a list",
	.about = "Lists the servers of the pool: state, sessions, labels, address. With --server "
		 "it asks these servers instead, without a pool.",
	.options = list_options,
	.main = server_list_main,
};

static int gpu_list_main(int argc, char **argv)
{
	struct obx_question question = { .what = "gpus", .target = "", .show = gpus_show };

	return list_main(&obx_gpu_list_command, argc, argv, &question, true);
}

const struct ob_command obx_gpu_list_command = {
	.name = "outboard gpu list",
	.summary = "the GPUs of a pool, or of a list of servers",
	.about = "Lists the GPUs of the pool: memory, what is reserved of it and used, programs, "
		 "temperature. With --server it asks these servers instead, without a pool.",
	.options = list_options,
	.main = gpu_list_main,
};

/* ---- server info ---- */

static int server_check(struct obx_question *question, const json_t *document)
{
	const json_t *servers = json_object_get(document, "servers");

	if (!json_is_array(servers))
		return obx_document_wrong("servers");
	if (json_array_size(servers))
		return 0;
	fprintf(stderr,
		"outboard server info: the pool has no server '%s'; 'outboard server list' shows "
		"them\n",
		question->target);
	return OBX_EXIT_UNWELL;
}

static int server_show(
	struct obx_question *question, const json_t *document, struct obx_paper paper)
{
	(void)question;
	obx_table_details(json_array_get(json_object_get(document, "servers"), 0), document,
		obx_server_details, paper);
	putchar('\n');
	return table_show("gpus", document, obx_gpus_columns, paper);
}

static const struct ob_operand server_operand[] = {
	{ .name = "NAME", .offset = offsetof(struct settings, name), .missing = "name a server" },
	{ 0 },
};

static int server_info_main(int argc, char **argv)
{
	struct obx_question question = {
		.what = "fleet", .check = server_check, .show = server_show
	};

	return look_main(&obx_server_info_command, argc, argv, &question);
}

const struct ob_command obx_server_info_command = {
	.name = "outboard server info",
	.summary = "one server of a pool, with its GPUs",
	.options = look_options,
	.operands = server_operand,
	.main = server_info_main,
};

/* ---- sessions ---- */

static int sessions_show(
	struct obx_question *question, const json_t *document, struct obx_paper paper)
{
	unsigned long long others = obx_json_number(document, "other_reservations");
	int code = table_show("reservations", document, obx_sessions_columns, paper);

	(void)question;
	if (!code && others)
		printf("and %llu of other tenants\n", others);
	return code;
}

static int session_list_main(int argc, char **argv)
{
	struct obx_question question = { .what = "sessions", .target = "", .show = sessions_show };

	return look_main(&obx_session_list_command, argc, argv, &question);
}

const struct ob_command obx_session_list_command = {
	.name = "outboard session list",
	.summary = "the programs that have reserved GPUs",
	.options = look_options,
	.main = session_list_main,
};

const json_t *obx_session_find(const json_t *document, const char *start, size_t *ret_n)
{
	const json_t *row, *found = NULL;
	char id[OBX_CELL_MAX];
	size_t i, n = strlen(start);

	*ret_n = 0;
	json_array_foreach(json_object_get(document, "reservations"), i, row)
	{
		obx_json_text(row, "id", id);
		if (strncmp(id, start, n) == 0) {
			found = row;
			++*ret_n;
		}
	}
	return found;
}

/* Finds the only session whose id begins so. NULL: an error was printed; *ret_code. */
static const json_t *session_only(const json_t *document, const char *start, int *ret_code)
{
	size_t n;
	const json_t *row = obx_session_find(document, start, &n);

	*ret_code = OBX_EXIT_UNWELL;
	if (!json_is_array(json_object_get(document, "reservations")))
		*ret_code = obx_document_wrong("reservations");
	else if (n != 1)
		fprintf(stderr,
			"outboard session info: %zu sessions have an id that begins with '%s'; "
			"'outboard session list' shows them\n",
			n, start);
	return n == 1 ? row : NULL;
}

static int session_check(struct obx_question *question, const json_t *document)
{
	int code;

	return session_only(document, question->target, &code) ? 0 : code;
}

static int session_show(
	struct obx_question *question, const json_t *document, struct obx_paper paper)
{
	size_t n;
	const json_t *row = obx_session_find(document, question->target, &n);

	obx_table_details(row, document, obx_session_details, paper);
	putchar('\n');
	return obx_table_print(json_object_get(row, "parts"), document, obx_parts_columns, paper)
		? 0
		: obx_document_wrong("parts");
}

/* Asks for the whole id of the session whose id begins so. Returns 0 or the exit code. */
static int session_complete(const char *pool, const char *start, char ret_id[OBX_CELL_MAX])
{
	json_t *document = NULL;
	const json_t *row;
	int code = obx_document_get(&obx_session_info_command, pool, "sessions", "", &document);

	if (code)
		return code;
	row = session_only(document, start, &code);
	if (row) {
		obx_json_text(row, "id", ret_id);
		code = 0;
	}
	json_decref(document);
	return code;
}

static const struct ob_operand session_operand[] = {
	{ .name = "ID",
		.offset = offsetof(struct settings, name),
		.help = "the session's id, or its beginning",
		.missing = "name a session" },
	{ 0 },
};

static int session_info_main(int argc, char **argv)
{
	struct obx_question question = {
		.what = "sessions", .check = session_check, .show = session_show
	};
	struct settings s = { .name = NULL };
	struct obx_way way;
	char id[OBX_CELL_MAX];
	int code = ob_options_parse(&obx_session_info_command, &s, argc, argv);

	if (code == OB_OPTIONS_GO)
		code = obx_way_pool(&obx_session_info_command, s.look.pool, &way);
	if (code != OB_OPTIONS_GO)
		return code;
	code = session_complete(way.pool, s.name, id);
	question.target = id;
	return code ? code : obx_look_at(&obx_session_info_command, way.pool, &s.look, &question);
}

const struct ob_command obx_session_info_command = {
	.name = "outboard session info",
	.summary = "one program that has reserved GPUs",
	.options = look_options,
	.operands = session_operand,
	.main = session_info_main,
};

/* ---- queue ---- */

static int queue_show(struct obx_question *question, const json_t *document, struct obx_paper paper)
{
	unsigned long long others = obx_json_number(document, "other_requests");
	int code = table_show("queue", document, obx_queue_columns, paper);

	(void)question;
	if (!code && others)
		printf("and %llu of other tenants\n", others);
	return code;
}

static int queue_main(int argc, char **argv)
{
	struct obx_question question = { .what = "queue", .target = "", .show = queue_show };

	return look_main(&obx_queue_command, argc, argv, &question);
}

const struct ob_command obx_queue_command = {
	.name = "outboard queue",
	.group = OBX_GROUP_POOL,
	.summary = "the programs that wait for GPUs of a pool",
	.options = look_options,
	.main = queue_main,
};

/* ---- quotas ---- */

static int quota_show(struct obx_question *question, const json_t *document, struct obx_paper paper)
{
	(void)question;
	return table_show("tenants", document, obx_quota_columns, paper);
}

static const struct ob_operand quota_operands[] = {
	{ .name = "TENANT",
		.kind = OB_OPERAND_OPTIONAL,
		.offset = offsetof(struct settings, name),
		.help = "only this one" },
	{ .name = "LIMITS",
		.kind = OB_OPERAND_OPTIONAL,
		.offset = offsetof(struct settings, limits),
		.help = "sets its quota (docs/POOL.md); none: removes it" },
	{ 0 },
};

static int quota_main(int argc, char **argv)
{
	struct obx_question question = { .what = "quota", .target = "", .show = quota_show };
	struct settings s = { .name = NULL };
	struct obx_way way;
	int code = ob_options_parse(&obx_quota_command, &s, argc, argv);

	if (code == OB_OPTIONS_GO)
		code = obx_way_pool(&obx_quota_command, s.look.pool, &way);
	if (code != OB_OPTIONS_GO)
		return code;
	if (s.limits)
		return obx_pool_command(&obx_quota_command, way.pool, "quota", s.name,
			strcmp(s.limits, "none") == 0 ? "" : s.limits);
	if (s.name)
		question.target = s.name;
	return obx_look_at(&obx_quota_command, way.pool, &s.look, &question);
}

const struct ob_command obx_quota_command = {
	.name = "outboard quota",
	.group = OBX_GROUP_POOL,
	.summary = "what each tenant of a pool uses and may use",
	.options = look_options,
	.operands = quota_operands,
	.main = quota_main,
};

/* ---- events ---- */

/* Later looks show something only when there are new events. */
static int events_check(struct obx_question *question, const json_t *document)
{
	const json_t *events = json_object_get(document, "events"), *event;
	bool *followed = question->context, first = !*followed;
	size_t i;

	json_array_foreach(events, i, event) question->since =
		ob_max(question->since, (uint64_t)obx_json_number(event, "number"));
	*followed = true;
	return first || json_array_size(events) || !json_is_array(events) ? 0 : OBX_LOOK_NOTHING;
}

static int events_show(
	struct obx_question *question, const json_t *document, struct obx_paper paper)
{
	(void)question;
	return table_show("events", document, obx_events_columns, paper);
}

static const struct ob_option events_options[] = { OBX_LOOK_OPTIONS,
	{ OB_OPTION("since", OB_NUMBER, struct settings, since), .arg = "N", .max = UINT64_MAX,
		.help = "only events with a higher number" },
	{ 0 } };

static int events_main(int argc, char **argv)
{
	bool followed = false;
	struct obx_question question = { .what = "events",
		.target = "",
		.check = events_check,
		.show = events_show,
		.append = true,
		.context = &followed };

	return look_main(&obx_events_command, argc, argv, &question);
}

const struct ob_command obx_events_command = {
	.name = "outboard events",
	.group = OBX_GROUP_POOL,
	.summary = "what happened in a pool",
	.about = "Lists the last events of the pool: servers that joined or were lost, commands of "
		 "operators, refused requests. With --watch it goes on with new ones.",
	.options = events_options,
	.main = events_main,
};

/* ---- check, info, top ---- */

int obx_pool_gpus(const struct ob_command *command, const char *pool)
{
	const struct obx_look look = { .pool = pool };
	struct obx_question question = { .what = "gpus", .target = "", .show = gpus_show };

	return obx_look_at(command, pool, &look, &question);
}

static int fleet_show(struct obx_question *question, const json_t *document, struct obx_paper paper)
{
	int code;

	(void)question;
	obx_fleet_head(document, paper);
	putchar('\n');
	code = table_show("servers", document, obx_servers_columns, paper);
	putchar('\n');
	if (!code)
		code = table_show("gpus", document, obx_gpus_columns, paper);
	putchar('\n');
	if (!code)
		code = sessions_show(question, document, paper);
	if (!code && obx_json_number(document, "queue_length")) {
		putchar('\n');
		code = queue_show(question, document, paper);
	}
	return code;
}

int obx_pool_top(const struct ob_command *command, const char *pool, const struct obx_look *look)
{
	struct obx_question question = { .what = "fleet", .target = "", .show = fleet_show };

	return obx_look_at(command, pool, look, &question);
}
