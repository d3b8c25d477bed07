/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* outboard token: makes, lists and revokes the bearer tokens of a server's token file. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "tools/command.h"
#include "transport/token.h"

#define DAYS_DEFAULT 90u
#define DAYS_MAX     36500u
#define DAY          86400u
#define LIMIT        256

static int usage(void)
{
	puts("usage: outboard token create --file FILE [--name NAME] [--scope use|look] [--days N] "
	     "[LIMITS]\n"
	     "       outboard token list --file FILE\n"
	     "       outboard token revoke --file FILE ID...\n"
	     "\n"
	     "FILE is what 'outboard-server --tokens FILE' reads at each new session; it holds no "
	     "token, only their hashes.\n"
	     "\n"
	     "  --name NAME   whose it is, for the audit log\n"
	     "  --scope SCOPE use: run programs (default); look: see the devices only\n"
	     "  --days N      days until it expires, 0 never (default 90)\n"
	     "  --sessions N  sessions that its bearer may have at the same time (default: as the "
	     "server's --token-sessions)\n"
	     "\n"
	     "Limits of each session of its bearer; where the server's own are lower, those "
	     "count:\n"
	     "  --max-memory SIZE, --max-host-memory SIZE, --max-outstanding SIZE, --max-handles "
	     "N, --max-modules N, --max-lanes N,\n"
	     "  --idle-timeout S, --share F, --max-priority low|normal|high    as those of "
	     "outboard-server\n"
	     "\n"
	     "'create' prints the token once; clients set OUTBOARD_TOKEN to it.");
	return 0;
}

static int create(const char *file, struct obt_tokens *tokens, const char *name,
	enum obt_scope scope, uint64_t days, const struct obt_allow *allow)
{
	struct ob_cause cause;
	char text[OBT_TOKEN_TEXT];

	if (obt_tokens_add(tokens, name, scope, days ? (uint64_t)time(NULL) + days * DAY : 0, allow,
		    text)) {
		fprintf(stderr,
			"outboard token: no token can be made: the file has %u already, or there "
			"is no memory\n",
			OBT_TOKENS_MAX);
		return OBX_EXIT_UNWELL;
	}
	if (obt_tokens_write(file, tokens, &cause)) {
		fprintf(stderr, "outboard token: %s\n", cause.text);
		return OBX_EXIT_UNWELL;
	}
	puts(text);
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

static int take_back(const char *file, struct obt_tokens *tokens, char **ids, int n)
{
	struct ob_cause cause;

	if (n == 0)
		return obx_usage_error("token", "revoke needs the ids to revoke");
	for (int i = 0; i < n; i++)
		if (!obt_tokens_remove(tokens, ids[i])) {
			fprintf(stderr,
				"outboard token: there is no token %s in %s; nothing was revoked\n",
				ids[i], file);
			return OBX_EXIT_UNWELL;
		}
	if (obt_tokens_write(file, tokens, &cause)) {
		fprintf(stderr, "outboard token: %s\n", cause.text);
		return OBX_EXIT_UNWELL;
	}
	return 0;
}

int obx_token_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "file", required_argument, NULL, 'f' },
		{ "name", required_argument, NULL, 'n' },
		{ "scope", required_argument, NULL, 's' },
		{ "days", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ "max-memory", required_argument, NULL, LIMIT },
		{ "max-host-memory", required_argument, NULL, LIMIT },
		{ "max-outstanding", required_argument, NULL, LIMIT },
		{ "max-handles", required_argument, NULL, LIMIT },
		{ "max-modules", required_argument, NULL, LIMIT },
		{ "max-lanes", required_argument, NULL, LIMIT },
		{ "idle-timeout", required_argument, NULL, LIMIT },
		{ "share", required_argument, NULL, LIMIT },
		{ "max-priority", required_argument, NULL, LIMIT },
		{ "sessions", required_argument, NULL, LIMIT },
		{ 0 },
	};
	const char *file = NULL, *name = "-", *verb;
	enum obt_scope scope = OBT_SCOPE_USE;
	struct obt_tokens tokens;
	uint64_t days = DAYS_DEFAULT;
	struct ob_cause cause;
	struct obt_allow allow = { { 0 } };
	int c, index = 0, status;

	while ((c = getopt_long(argc, argv, ":h", options, &index)) != -1) {
		switch (c) {
		case 'f':
			file = optarg;
			break;
		case 'n':
			name = optarg;
			break;
		case 's':
			if (!obt_scope_find(optarg, &scope))
				return obx_usage_error(
					"token", "--scope is use or look, not '%s'", optarg);
			break;
		case 'd':
			if (!ob_text_parse_number(optarg, 0, DAYS_MAX, &days))
				return obx_usage_error("token",
					"--days is a number from 0 to %u, not '%s'", DAYS_MAX,
					optarg);
			break;
		case LIMIT:
			if (obt_allow_set(&allow, options[index].name, optarg, &cause))
				return obx_usage_error("token", "--%s takes %s, not '%s'",
					options[index].name, cause.text, optarg);
			break;
		case 'h':
			return usage();
		default:
			return obx_option_wrong("token", c, argv);
		}
	}
	verb = optind < argc ? argv[optind++] : "";
	if (!*verb)
		return obx_usage_error("token", "say create, list or revoke");
	if (strcmp(verb, "create") != 0 && strcmp(verb, "list") != 0 && strcmp(verb, "revoke") != 0)
		return obx_word_unknown("token", "verb", verb,
			(const char *const[]){ "create", "list", "revoke" }, 3);
	if (!file)
		return obx_usage_error(
			"token", "--file is missing: the file that the server's --tokens names");
	/* Only `create` may make the file. */
	if (verb[0] != 'c' && access(file, F_OK) != 0) {
		fprintf(stderr,
			"outboard token: %s: %s. 'outboard token create --file %s' makes it\n",
			file, strerror(errno), file);
		return OBX_EXIT_UNWELL;
	}
	if (obt_tokens_read(file, &tokens, &cause)) {
		fprintf(stderr, "outboard token: %s\n", cause.text);
		return OBX_EXIT_UNWELL;
	}
	if (verb[0] == 'c')
		status = create(file, &tokens, name, scope, days, &allow);
	else if (verb[0] == 'l')
		status = list(&tokens);
	else
		status = take_back(file, &tokens, argv + optind, argc - optind);
	obt_tokens_fini(&tokens);
	return status;
}
