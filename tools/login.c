/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * outboard login, logout: store and remove the address, the pin and the token of a pool, so that
 * 'outboard run' needs no option.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "loadbalancer/pool_query.h"
#include "tools/command.h"
#include "tools/login_file.h"
#include "tools/reserve.h"

struct settings {
	const char *pool, *token, *pin, *name;
};

/* ---- asking on the terminal ---- */

static struct termios terminal; /* as it was */

static void on_signal(int number)
{
	tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
	raise(number); /* the handler was installed for one signal: now the default action */
}

/* Reads one line. False: end of input, or it is too long. */
static bool line_read(char *ret_line, size_t size)
{
	char *end;

	if (!fgets(ret_line, (int)size, stdin))
		return false;
	end = strchr(ret_line, '\n');
	if (end)
		*end = '\0';
	return end || feof(stdin);
}

/* The same from a terminal, without showing what is typed. */
static bool secret_read(const char *prompt, char *ret_line, size_t size)
{
	struct sigaction once = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
	struct termios quiet;
	bool ok;

	if (tcgetattr(STDIN_FILENO, &terminal) != 0)
		return line_read(ret_line, size);
	quiet = terminal;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	sigaction(SIGINT, &once, NULL);
	sigaction(SIGTERM, &once, NULL);
	sigaction(SIGHUP, &once, NULL);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
	fputs(prompt, stderr); /* from here on what is typed counts, and is hidden */
	ok = line_read(ret_line, size);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal);
	fputc('\n', stderr);
	return ok;
}

/*
 * Gets the pool's text: the argument, or a line of standard input. What the command line shows to
 * other users of the machine is overwritten.
 */
static bool text_get(const char *given, char ret_text[OBX_LOGIN_TEXT_MAX])
{
	if (given && strcmp(given, "-") != 0) {
		snprintf(ret_text, OBX_LOGIN_TEXT_MAX, "%s", given);
		if (strchr(given, '#'))
			explicit_bzero((char *)(uintptr_t)given, strlen(given));
		return true;
	}
	return given || !isatty(STDIN_FILENO)
		? line_read(ret_text, OBX_LOGIN_TEXT_MAX)
		: secret_read("The pool's address, or the string from its operator (not shown): ",
			  ret_text, OBX_LOGIN_TEXT_MAX);
}

/* ---- login ---- */

/* Adds what the options say to the login. Returns OB_OPTIONS_GO or the exit code. */
static int options_apply(const struct settings *s, struct obx_login *login)
{
	struct ob_cause cause;

	if (s->pin && *s->pin) {
		char url[OBX_LOGIN_URL_MAX];

		if (login->n != 1 || login->balancers[0].pin[0])
			return ob_usage_error(&obx_login_command,
				"--pin is for one address that has no pin; write URL?pin=HEX for "
				"each of several");
		memcpy(url, login->balancers[0].url, sizeof url);
		login->n = 0;
		if (obx_login_add(login, url, s->pin, &cause))
			return ob_usage_error(&obx_login_command, "%s", cause.text);
	}
	if (s->token && strlen(s->token) >= sizeof login->token)
		return ob_usage_error(
			&obx_login_command, "--token: it begins with obt_ and has 77 characters");
	if (s->token && *s->token) {
		snprintf(login->token, sizeof login->token, "%s", s->token);
		explicit_bzero((char *)(uintptr_t)s->token, strlen(s->token));
	} else if (!login->token[0] && !(s->pool && strcmp(s->pool, "-") == 0) &&
		isatty(STDIN_FILENO) &&
		!secret_read(
			"Token (not shown; empty: none): ", login->token, sizeof login->token)) {
		return OBX_EXIT_UNWELL;
	}
	return OB_OPTIONS_GO;
}

/* The name that the login gets: the option's, or the host of its first balancer. */
static int name_choose(const struct settings *s, struct obx_login *login)
{
	const char *url = login->balancers[0].url, *host = strstr(url, "://");

	if (s->name && !obx_login_name_valid(s->name))
		return ob_usage_error(&obx_login_command,
			"--name: letters, digits, '-', '_' and '.', %u at most",
			OBX_LOGIN_NAME_MAX - 1);
	if (s->name)
		snprintf(login->name, sizeof login->name, "%s", s->name);
	else if (host)
		snprintf(login->name, sizeof login->name, "%.*s", (int)strcspn(host + 3, ":"),
			host + 3);
	if (!obx_login_name_valid(login->name))
		snprintf(login->name, sizeof login->name, "pool");
	return OB_OPTIONS_GO;
}

/* Asks the pool with these settings, and no others. Returns 0 or the exit code. */
static int try_out(const struct obx_login *login)
{
	char list[OBX_LOGIN_LIST_MAX], pins[OBX_LOGIN_PINS_MAX], text[OBL_POOL_EXPLAIN_MAX];
	struct obl_pool pool = { .balancers = list, .timeout_ns = obl_pool_timeout_ns() };
	struct obp_pool_refused refused;
	struct ob_cause cause;
	char *json = NULL;
	size_t size;
	enum ob_err err;

	obx_login_list(login, list);
	obx_login_pins(login, pins);
	setenv("OUTBOARD_TOKEN", login->token, 1);
	if (pins[0])
		setenv("OUTBOARD_TLS_PIN", pins, 1);
	err = obl_pool_query(&pool, "info", "", 0, &json, &size, &refused, &cause);
	free(json);
	if (err == OB_ERR_REFUSED) {
		obl_pool_explain(&refused, 0, text);
		fprintf(stderr, "outboard login: %s\n", text);
		return obp_pool_exit_code(refused.code);
	}
	return err ? obx_pool_failed("outboard login", err, &cause) : 0;
}

static int store(const struct obx_login *login)
{
	static struct obx_logins logins;
	struct obx_login *old;
	struct ob_cause cause;
	enum ob_err err = obx_logins_read(&logins, &cause);

	if (err && err != OB_ERR_NOT_FOUND) {
		fprintf(stderr, "outboard login: %s\n", cause.text);
		return OBX_EXIT_UNWELL;
	}
	old = obx_login_find(&logins, login->name);
	if (!old && logins.n == OBX_LOGINS_MAX) {
		fprintf(stderr,
			"outboard login: %u pools are the most; 'outboard logout NAME' removes "
			"one\n",
			OBX_LOGINS_MAX);
		return OBX_EXIT_UNWELL;
	}
	*(old ? old : &logins.list[logins.n++]) = *login;
	memcpy(logins.chosen, login->name, sizeof logins.chosen);
	err = obx_logins_write(&logins, &cause);
	obx_logins_wipe(&logins);
	if (err)
		fprintf(stderr, "outboard login: %s\n", cause.text);
	return err ? OBX_EXIT_UNWELL : 0;
}

static const struct ob_option login_options[] = {
	{ OB_OPTION("name", OB_TEXT, struct settings, name), .arg = "NAME",
		.help = "a name for the pool, for --pool NAME (default: its host's name)" },
	{ OB_OPTION("token", OB_TEXT, struct settings, token), .arg = "TOKEN",
		.help = "the token; without it a terminal asks for it, and does not show it" },
	{ OB_OPTION("pin", OB_TEXT, struct settings, pin), .arg = "PIN",
		.help = "SHA-256 of the balancer's certificate, 64 hexadecimal digits" },
	{ 0 },
};

static const struct ob_operand login_operands[] = {
	{ .name = "POOL",
		.kind = OB_OPERAND_OPTIONAL,
		.offset = offsetof(struct settings, pool),
		.help = "the string that the pool's operator has given you, or an address; -: "
			"read it from standard input" },
	{ 0 },
};

static int login_main(int argc, char **argv)
{
	static struct obx_login login;
	struct settings s = { .pool = NULL };
	char text[OBX_LOGIN_TEXT_MAX];
	struct ob_cause cause;
	enum ob_err err;
	int code = ob_options_parse(&obx_login_command, &s, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	if (!text_get(s.pool, text))
		return ob_usage_error(&obx_login_command, "there is no pool on standard input");
	err = obx_login_parse(text, &login, &cause);
	explicit_bzero(text, sizeof text);
	if (err)
		return ob_usage_error(&obx_login_command, "the pool: %s", cause.text);
	code = options_apply(&s, &login);
	if (code == OB_OPTIONS_GO && strpbrk(login.token, " \t\r\n;#"))
		code = ob_usage_error(&obx_login_command,
			"that is no token: it begins with obt_ and has 77 characters");
	if (code == OB_OPTIONS_GO)
		code = name_choose(&s, &login);
	if (code != OB_OPTIONS_GO)
		return code;
	code = try_out(&login);
	if (!code)
		code = store(&login);
	if (!code)
		printf("logged in to %s: %s; 'outboard run -- PROGRAM' uses its GPUs\n", login.name,
			login.balancers[0].url);
	explicit_bzero(&login, sizeof login);
	return code;
}

const struct ob_command obx_login_command = {
	.name = "outboard login",
	.group = OBX_GROUP_POOL,
	.summary = "store the address and the token of a pool",
	.about =
		"Tries to reach the pool, and stores its address, pin and token in "
		"$XDG_CONFIG_HOME/outboard/pool.ini (~/.config/outboard/pool.ini), readable by you "
		"only. Afterwards 'outboard run -- PROGRAM' is enough. The last login is the "
		"default; --pool NAME takes another one.\n\nThe operator's string comes from "
		"'outboard token create --pool'. It holds the token: pipe it in ('outboard login "
		"-') rather than writing it on the command line, which other users can see.",
	.options = login_options,
	.operands = login_operands,
	.main = login_main,
};

/* ---- logout ---- */

struct leaving {
	const char *name;
	bool all;
};

static const struct ob_option logout_options[] = {
	{ OB_OPTION("all", OB_FLAG, struct leaving, all), .help = "all pools" },
	{ 0 },
};

static const struct ob_operand logout_operands[] = {
	{ .name = "NAME",
		.kind = OB_OPERAND_OPTIONAL,
		.offset = offsetof(struct leaving, name),
		.help = "the pool; without it the default one" },
	{ 0 },
};

/* Removes the file. Returns the exit code. */
static int file_remove(void)
{
	char path[OBX_LOGIN_PATH_MAX];

	if (!obx_logins_path(path) || unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	fprintf(stderr, "outboard logout: %s: %s\n", path, strerror(errno));
	return OBX_EXIT_UNWELL;
}

static int logout_main(int argc, char **argv)
{
	static struct obx_logins logins;
	struct leaving l = { .name = NULL };
	struct obx_login *login;
	struct ob_cause cause;
	enum ob_err err;
	int code = ob_options_parse(&obx_logout_command, &l, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	if (l.all)
		return file_remove();
	err = obx_logins_read(&logins, &cause);
	login = err ? NULL : obx_login_find(&logins, l.name);
	if (!login) {
		fprintf(stderr, "outboard logout: %s\n",
			err && err != OB_ERR_NOT_FOUND ? cause.text
						       : "there is no such login; 'outboard config "
							 "show' shows what is used");
		return OBX_EXIT_UNWELL;
	}
	printf("logged out of %s\n", login->name);
	*login = logins.list[--logins.n];
	explicit_bzero(&logins.list[logins.n], sizeof logins.list[0]);
	if (!logins.n)
		return file_remove();
	if (!obx_login_find(&logins, NULL))
		memcpy(logins.chosen, logins.list[0].name, sizeof logins.chosen);
	err = obx_logins_write(&logins, &cause);
	obx_logins_wipe(&logins);
	if (err)
		fprintf(stderr, "outboard logout: %s\n", cause.text);
	return err ? OBX_EXIT_UNWELL : 0;
}

const struct ob_command obx_logout_command = {
	.name = "outboard logout",
	.group = OBX_GROUP_POOL,
	.summary = "remove what 'outboard login' has stored",
	.options = logout_options,
	.operands = logout_operands,
	.main = logout_main,
};
