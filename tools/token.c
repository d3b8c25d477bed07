/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* outboard token: makes, lists and revokes the bearer tokens of a server's token file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "tools/command.h"
#include "tools/login_file.h"
#include "transport/tls.h"
#include "transport/token.h"

#define DAYS_DEFAULT 90u
#define DAYS_MAX     36500u
#define DAY          86400u

struct settings {
	const char *action, *file, *name, *pool;
	struct ob_texts certs;
	enum obt_scope scope;
	uint32_t days;
	struct obt_allow allow;
	struct ob_words ids;
};

static enum ob_err take_scope(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	(void)option;
	(void)ret_cause;
	return obt_scope_find(text, target) ? OB_ERR_NONE : OB_ERR_ARGUMENT;
}

static enum ob_err take_limit(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	return obt_allow_set(target, option->name, text, ret_cause);
}

#define LIMIT(option_name, value_name)                                                  \
	OB_OPTION(option_name, OB_PARSED, struct settings, allow), .arg = (value_name), \
								   .take = take_limit

static const struct ob_option options[] = {
	{ OB_OPTION("file", OB_FILE, struct settings, file), .arg = "FILE",
		.help = "the file that the server's --tokens names" },
	{ OB_OPTION("name", OB_TEXT, struct settings, name), .arg = "NAME",
		.help = "create: whose it is, for the audit log" },
	{ OB_OPTION("scope", OB_PARSED, struct settings, scope), .arg = "SCOPE", .take = take_scope,
		.words = "use|look|serve|admin", .fallback = "use",
		.help = "create: what it allows. use: run programs; look: see the devices only. "
			"With a balancer also serve: let a server join the pool; admin: "
			"everything, "
			"and the operators' commands" },
	{ OB_OPTION("days", OB_NUMBER, struct settings, days), .arg = "N", .max = DAYS_MAX,
		.fallback = "90", .help = "create: days until it expires, 0: never" },
	{ OB_OPTION("pool", OB_TEXT, struct settings, pool), .arg = "URL[,URL]",
		.help = "create: print the string for 'outboard login': these balancers, their "
			"pins, and the token" },
	{ OB_OPTION("cert", OB_TEXTS, struct settings, certs), .arg = "FILE",
		.help = "create: with --pool: the balancers' certificate; given several times, "
			"one for each of them in order" },
	{ LIMIT("sessions", "N"),
		.help = "create: sessions that its bearer may have at the same time",
		.fallback = "the server's --token-sessions" },
	{ .name = "Limits of each session of its bearer; lower ones of the server prevail",
		.kind = OB_HEADING },
	{ LIMIT("max-memory", "SIZE"), .help = "memory on each device" },
	{ LIMIT("max-host-memory", "SIZE"), .help = "memory of the server" },
	{ LIMIT("max-outstanding", "SIZE"),
		.help = "results that the server holds until the client has received them" },
	{ LIMIT("max-handles", "N"), .help = "streams, events, functions, memory handles" },
	{ LIMIT("max-modules", "N"), .help = "loaded modules at a time" },
	{ LIMIT("max-lanes", "N"), .help = "threads of the program that use CUDA" },
	{ LIMIT("idle-timeout", "S"), .help = "seconds without a call after which a session ends" },
	{ LIMIT("share", "F"), .help = "share of the device's time, 0.01 to 1" },
	{ LIMIT("max-priority", "WHICH"), .words = "low|normal|high",
		.help = "the highest priority that a client may ask for: low, normal or high" },
	{ 0 },
};

static const struct ob_operand operands[] = {
	{ .name = "ACTION",
		.words = "create|list|revoke",
		.offset = offsetof(struct settings, action),
		.missing = "say create, list or revoke" },
	{ .name = "ID", .kind = OB_OPERAND_MANY, .offset = offsetof(struct settings, ids) },
	{ 0 },
};

/* Fills a login with the balancers of --pool and the pins of --cert. Returns OB_OPTIONS_GO or the exit code. */
static int balancers_take(const struct settings *s, struct obx_login *login)
{
	char list[OBX_LOGIN_LIST_MAX], *rest = list, *url;
	struct ob_cause cause;

	if (strlen(s->pool) >= sizeof list)
		return ob_usage_error(&obx_token_command, "--pool: the list is too long");
	snprintf(list, sizeof list, "%s", s->pool);
	while ((url = strsep(&rest, ",")) != NULL) {
		const char *file = s->certs.n == 0 ? NULL
			: s->certs.n == 1          ? s->certs.list[0]
			: login->n < s->certs.n    ? s->certs.list[login->n]
						   : NULL;
		uint8_t pin[OBT_TLS_PIN_BYTES];
		char hex[2 * OBT_TLS_PIN_BYTES + 1] = "";

		if (file && obt_tls_read_pin(file, pin))
			return ob_usage_error(&obx_token_command,
				"--cert: %s is not a certificate in PEM form", file);
		if (file)
			ob_text_hex(pin, sizeof pin, hex);
		if (obx_login_add(login, url, hex, &cause))
			return ob_usage_error(&obx_token_command, "--pool: %s", cause.text);
	}
	if (s->certs.n > 1 && s->certs.n != login->n)
		return ob_usage_error(&obx_token_command,
			"--cert is given %zu times, and --pool names %u balancers", s->certs.n,
			login->n);
	return OB_OPTIONS_GO;
}

/* The token alone, or the string for 'outboard login'. */
static void token_print(struct obx_login *login, const char *token)
{
	char text[OBX_LOGIN_TEXT_MAX];

	if (!login->n) {
		puts(token);
		return;
	}
	snprintf(login->token, sizeof login->token, "%s", token);
	obx_login_print(login, text);
	puts(text);
	explicit_bzero(text, sizeof text);
}

static int create(const struct settings *s, struct obt_tokens *tokens)
{
	static struct obx_login login;
	struct ob_cause cause;
	char text[OBT_TOKEN_TEXT];
	int code = s->pool ? balancers_take(s, &login) : OB_OPTIONS_GO;

	if (code != OB_OPTIONS_GO)
		return code;

	if (obt_tokens_add(tokens, s->name, s->scope,
		    s->days ? (uint64_t)time(NULL) + (uint64_t)s->days * DAY : 0, &s->allow,
		    text)) {
		fprintf(stderr,
			"outboard token: no token can be made: %s has the most tokens that a file "
			"holds, %u, or there is no memory. 'outboard token revoke' removes some\n",
			s->file, OBT_TOKENS_MAX);
		return OBX_EXIT_UNWELL;
	}
	if (obt_tokens_write(s->file, tokens, &cause)) {
		fprintf(stderr, "outboard token: %s\n", cause.text);
		return OBX_EXIT_UNWELL;
	}
	token_print(&login, text);
	return 0;
}

static int list(const struct obt_tokens *tokens)
{
	uint64_t now = (uint64_t)time(NULL);

	char limits[OBT_ALLOW_TEXT];

	printf("%-8s  %-5s  %-20s  %s\n", "ID", "SCOPE", "EXPIRES", "NAME");
	for (size_t i = 0; i < tokens->n; i++) {
		const struct obt_token *t = &tokens->list[i];
		time_t when = (time_t)t->expiry;
		char text[32] = "never";
		struct tm utc;

		if (t->expiry && gmtime_r(&when, &utc))
			strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
		obt_allow_print(&t->allow, limits);
		printf("%-8s  %-5s  %-20s  %s%s%s%s\n", t->id, obt_scope_name(t->scope), text,
			t->name, t->expiry && t->expiry <= now ? " (expired)" : "",
			limits[0] ? "  " : "", limits);
	}
	return 0;
}

static int take_back(const struct settings *s, struct obt_tokens *tokens)
{
	struct ob_cause cause;

	if (!s->ids.n)
		return ob_usage_error(&obx_token_command, "revoke needs the ids to revoke");
	for (size_t i = 0; i < s->ids.n; i++)
		if (!obt_tokens_remove(tokens, s->ids.list[i])) {
			fprintf(stderr,
				"outboard token: there is no token %s in %s; nothing was revoked. "
				"'outboard token list' shows the ids\n",
				s->ids.list[i], s->file);
			return OBX_EXIT_UNWELL;
		}
	if (obt_tokens_write(s->file, tokens, &cause)) {
		fprintf(stderr, "outboard token: %s\n", cause.text);
		return OBX_EXIT_UNWELL;
	}
	return 0;
}

/* Reads the file and does what the action says. Returns the exit code. */
static int act(const struct settings *s)
{
	struct obt_tokens tokens;
	struct ob_cause cause;
	int code;

	if (obt_tokens_read(s->file, &tokens, &cause)) {
		fprintf(stderr, "outboard token: %s\n", cause.text);
		return OBX_EXIT_UNWELL;
	}
	if (strcmp(s->action, "create") == 0)
		code = create(s, &tokens);
	else if (strcmp(s->action, "list") == 0)
		code = list(&tokens);
	else
		code = take_back(s, &tokens);
	obt_tokens_fini(&tokens);
	return code;
}

/* Two changes at a time would lose one of them. */
static int act_locked(const struct settings *s)
{
	bool made = access(s->file, F_OK) != 0;
	struct ob_cause cause;
	struct stat st;
	int fd, code;

	if (obt_tokens_lock(s->file, strcmp(s->action, "create") == 0, &fd, &cause)) {
		fprintf(stderr, "outboard token: %s\n", cause.text);
		return OBX_EXIT_UNWELL;
	}
	code = act(s);
	if (code && made && fstat(fd, &st) == 0 && st.st_size == 0)
		unlink(s->file);
	close(fd);
	return code;
}

static int token_main(int argc, char **argv)
{
	struct settings s = { .name = "-", .scope = OBT_SCOPE_USE, .days = DAYS_DEFAULT };
	int code = ob_options_parse(&obx_token_command, &s, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	if (!s.file)
		return ob_usage_error(&obx_token_command,
			"--file is missing: the file that the server's --tokens names");
	/* Only `create` may make the file. */
	if (strcmp(s.action, "create") != 0 && access(s.file, F_OK) != 0) {
		fprintf(stderr,
			"outboard token: %s: %s. 'outboard token create --file %s' makes it\n",
			s.file, strerror(errno), s.file);
		return OBX_EXIT_UNWELL;
	}
	return strcmp(s.action, "list") == 0 ? act(&s) : act_locked(&s);
}

const struct ob_command obx_token_command = {
	.name = "outboard token",
	.group = OBX_GROUP_REMOTE,
	.summary = "make, list and revoke tokens that let clients in",
	.usage = "create --file FILE [--name NAME] [--scope SCOPE] [--days N] [--pool URL] "
		 "[LIMITS]\n"
		 "list --file FILE\n"
		 "revoke --file FILE ID...",
	.about = "FILE is what 'outboard-server --tokens FILE' reads at each new session; it holds "
		 "no token, only their hashes. 'create' prints the token once; clients set "
		 "OUTBOARD_TOKEN to it. With --pool it prints one string, which users of the pool "
		 "give "
		 "to 'outboard login'.",
	.options = options,
	.operands = operands,
	.main = token_main,
};
