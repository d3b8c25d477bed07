/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The commands of a pool's operator: cordon, uncordon, drain, forget a server; kill, move a session. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/pool_verbs.h"

struct settings {
	const char *pool, *name, *to;
	uint32_t grace_s;
	bool yes;
};

#define GRACE_MAX     86400
#define GRACE_DEFAULT 3600

static const struct ob_option plain_options[] = { OBX_POOL_OPTION(struct settings, pool), { 0 } };

#define YES_OPTION                                                                    \
	{                                                                             \
		OB_OPTION("yes", OB_FLAG, struct settings, yes),                      \
			.letter = 'y',                                                \
			.help = "do not ask; without a terminal there is no question" \
	}

static const struct ob_option sure_options[] = { OBX_POOL_OPTION(struct settings, pool), YES_OPTION,
	{ 0 } };

static const struct ob_operand server_operand[] = {
	{ .name = "NAME", .offset = offsetof(struct settings, name), .missing = "name a server" },
	{ 0 },
};

/* Asks on a terminal. False: the answer is no. */
static bool is_sure(const struct settings *s, const char *what)
{
	char line[16] = "";

	if (s->yes || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return true;
	fprintf(stderr, "%s [y/N] ", what);
	if (fgets(line, sizeof line, stdin) && (line[0] == 'y' || line[0] == 'Y'))
		return true;
	fprintf(stderr, "nothing was done\n");
	return false;
}

/* Parses the command line and finds the pool. Returns OB_OPTIONS_GO or the exit code. */
static int begin(const struct ob_command *command, struct settings *s, struct obx_way *way,
	int argc, char **argv)
{
	int code = ob_options_parse(command, s, argc, argv);

	return code == OB_OPTIONS_GO ? obx_way_pool(command, s->pool, way) : code;
}

/* A command on a server that needs no question. */
static int server_main(const struct ob_command *command, const char *verb, int argc, char **argv)
{
	struct settings s = { .name = NULL };
	struct obx_way way;
	int code = begin(command, &s, &way, argc, argv);

	return code == OB_OPTIONS_GO ? obx_pool_command(command, way.pool, verb, s.name, "") : code;
}

static int cordon_main(int argc, char **argv)
{
	return server_main(&obx_server_cordon_command, "cordon", argc, argv);
}

const struct ob_command obx_server_cordon_command = {
	.name = "outboard server cordon",
	.summary = "put no new programs on a server",
	.about = "The server gets no new reservations. What runs on it goes on. 'uncordon' ends "
		 "that. It needs a token of scope admin.",
	.options = plain_options,
	.operands = server_operand,
	.main = cordon_main,
};

static int uncordon_main(int argc, char **argv)
{
	return server_main(&obx_server_uncordon_command, "uncordon", argc, argv);
}

const struct ob_command obx_server_uncordon_command = {
	.name = "outboard server uncordon",
	.summary = "put programs on a server again",
	.options = plain_options,
	.operands = server_operand,
	.main = uncordon_main,
};

static const struct ob_option drain_options[] = { OBX_POOL_OPTION(struct settings, pool),
	{ OB_OPTION("grace", OB_NUMBER, struct settings, grace_s), .arg = "SECONDS",
		.max = GRACE_MAX, .fallback = OB_VALUE_TEXT(GRACE_DEFAULT),
		.help = "how long the programs on it may go on" },
	YES_OPTION, { 0 } };

static int drain_main(int argc, char **argv)
{
	struct settings s = { .grace_s = GRACE_DEFAULT };
	struct obx_way way;
	char question[256], grace[16];
	int code = begin(&obx_server_drain_command, &s, &way, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	snprintf(question, sizeof question,
		"Drain server %.64s: no new programs, and those on it end within %u s?", s.name,
		s.grace_s);
	if (!is_sure(&s, question))
		return OBX_EXIT_UNWELL;
	snprintf(grace, sizeof grace, "%u", s.grace_s);
	return obx_pool_command(&obx_server_drain_command, way.pool, "drain", s.name, grace);
}

const struct ob_command obx_server_drain_command = {
	.name = "outboard server drain",
	.summary = "empty a server: for maintenance",
	.about = "The server gets no new reservations, and the sessions on it are ended after the "
		 "grace time. 'uncordon' takes that back. It needs a token of scope admin.",
	.options = drain_options,
	.operands = server_operand,
	.main = drain_main,
};

static int forget_main(int argc, char **argv)
{
	struct settings s = { .name = NULL };
	struct obx_way way;
	char question[256];
	int code = begin(&obx_server_forget_command, &s, &way, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	snprintf(question, sizeof question,
		"Forget server %.64s and all that is reserved on it? It must be off for good.",
		s.name);
	if (!is_sure(&s, question))
		return OBX_EXIT_UNWELL;
	return obx_pool_command(&obx_server_forget_command, way.pool, "forget", s.name, "");
}

const struct ob_command obx_server_forget_command = {
	.name = "outboard server forget",
	.summary = "remove a server that will not come back",
	.about = "Removes the server from the pool, with what is reserved on it. Only for a server "
		 "that is off for good: what may still run on it is not ended. It needs a token of "
		 "scope admin.",
	.options = sure_options,
	.operands = server_operand,
	.main = forget_main,
};

/* ---- session kill ---- */

static const struct ob_operand session_operand[] = {
	{ .name = "ID",
		.offset = offsetof(struct settings, name),
		.help = "the session's id, or its beginning",
		.missing = "name a session" },
	{ 0 },
};

/*
 * The id of the session that is meant by its beginning, and words about it. Returns OB_OPTIONS_GO or
 * the exit code.
 */
static int session_look(const struct ob_command *command, const struct settings *s,
	const struct obx_way *way, char ret_id[OBX_CELL_MAX], char *ret_about, size_t size)
{
	char program[OBX_CELL_MAX] = "", user[OBX_CELL_MAX] = "";
	json_t *document = NULL;
	const json_t *row;
	size_t n;
	int code = obx_document_get(command, way->pool, "sessions", "", &document);

	if (code)
		return code;
	snprintf(ret_id, OBX_CELL_MAX, "%s", s->name);
	row = obx_session_find(document, s->name, &n);
	if (n == 1) {
		obx_json_text(row, "id", ret_id);
		obx_json_text(row, "program", program);
		obx_json_text(row, "user", user);
	}
	json_decref(document);
	if (n > 1) {
		fprintf(stderr,
			"%s: %zu sessions have an id that begins with '%s'; write more of it\n",
			command->name, n, s->name);
		return OBX_EXIT_UNWELL;
	}
	snprintf(ret_about, size, "%s%s%s%s%s", ret_id, program[0] ? ", " : "", program,
		user[0] ? " of " : "", user);
	return OB_OPTIONS_GO;
}

static int kill_main(int argc, char **argv)
{
	struct settings s = { .name = NULL };
	char id[OBX_CELL_MAX], about[3 * OBX_CELL_MAX + 8], question[4 * OBX_CELL_MAX];
	struct obx_way way;
	int code = begin(&obx_session_kill_command, &s, &way, argc, argv);

	if (code == OB_OPTIONS_GO)
		code = session_look(&obx_session_kill_command, &s, &way, id, about, sizeof about);
	if (code != OB_OPTIONS_GO)
		return code;
	/* what is not in the list may be the number of one session: the balancer decides */
	snprintf(question, sizeof question, "End session %s?", about);
	if (!is_sure(&s, question))
		return OBX_EXIT_UNWELL;
	return obx_pool_command(&obx_session_kill_command, way.pool, "kill", id, "");
}

const struct ob_command obx_session_kill_command = {
	.name = "outboard session kill",
	.summary = "end the sessions of a program",
	.about = "Ends all sessions of a reservation on its servers; the program's next CUDA call "
		 "fails. One's own programs, or with a token of scope admin all.",
	.options = sure_options,
	.operands = session_operand,
	.main = kill_main,
};

/* ---- session move ---- */

static const struct ob_operand move_operands[] = {
	{ .name = "ID",
		.offset = offsetof(struct settings, name),
		.help = "the session's id, or its beginning",
		.missing = "name a session" },
	{ .name = "SERVER",
		.kind = OB_OPERAND_OPTIONAL,
		.offset = offsetof(struct settings, to),
		.help = "the server that it should go to; else the least loaded one that fits" },
	{ 0 },
};

static int move_main(int argc, char **argv)
{
	struct settings s = { .name = NULL };
	char id[OBX_CELL_MAX], about[3 * OBX_CELL_MAX + 8], question[4 * OBX_CELL_MAX];
	struct obx_way way;
	int code = begin(&obx_session_move_command, &s, &way, argc, argv);

	if (code == OB_OPTIONS_GO)
		code = session_look(&obx_session_move_command, &s, &way, id, about, sizeof about);
	if (code != OB_OPTIONS_GO)
		return code;
	snprintf(question, sizeof question, "End session %s and start its program again%s%s?",
		about, s.to ? " on " : " elsewhere", s.to ? s.to : "");
	if (!is_sure(&s, question))
		return OBX_EXIT_UNWELL;
	return obx_pool_command(&obx_session_move_command, way.pool, "move", id, s.to ? s.to : "");
}

const struct ob_command obx_session_move_command = {
	.name = "outboard session move",
	.summary = "start a program again on another server",
	.about = "Reserves a place on another server and tells the program's 'outboard run "
		 "--restartable', which ends the program and starts it again there. If it does not "
		 "answer within a minute, everything stays as it was. It needs a token of scope "
		 "admin.",
	.options = sure_options,
	.operands = move_operands,
	.main = move_main,
};

/* ---- the words above these verbs ---- */

const struct ob_command obx_server_command = {
	.name = "outboard server",
	.group = OBX_GROUP_POOL,
	.summary = "the servers of a pool: list, info, cordon, drain",
	.commands = (const struct ob_command *const[]){ &obx_server_list_command,
		&obx_server_info_command, &obx_server_cordon_command, &obx_server_uncordon_command,
		&obx_server_drain_command, &obx_server_forget_command, NULL },
};

const struct ob_command obx_gpu_command = {
	.name = "outboard gpu",
	.group = OBX_GROUP_POOL,
	.summary = "the GPUs of a pool",
	.commands = (const struct ob_command *const[]){ &obx_gpu_list_command, NULL },
};

const struct ob_command obx_session_command = {
	.name = "outboard session",
	.group = OBX_GROUP_POOL,
	.summary = "the programs that have reserved GPUs: list, info, kill, move",
	.commands = (const struct ob_command *const[]){ &obx_session_list_command,
		&obx_session_info_command, &obx_session_kill_command, &obx_session_move_command,
		NULL },
};
