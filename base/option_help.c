/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/option_help.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

#define NAMES_MAX   27 /* widest column of names; a longer name has a line of its own */
#define NAME_BYTES  128
#define USAGE_BYTES 1024

/* Prints text from column `at` on, wrapped between columns `indent` and OB_HELP_COLUMNS. */
static void wrap(FILE *out, const char *text, size_t at, size_t indent)
{
	size_t column = at;

	while (*text) {
		size_t blanks = strspn(text, " "), n = strcspn(text + blanks, " ");

		if (!n)
			break;
		if (column + blanks + n > OB_HELP_COLUMNS && column > indent) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
			blanks = 0;
		}
		fprintf(out, "%*s%.*s", (int)blanks, "", (int)n, text + strspn(text, " "));
		column += blanks + n;
		text += strspn(text, " ") + n;
	}
	fputc('\n', out);
}

/* The column of the text in "  name  text": lines of a list are wrapped there. */
static size_t hanging(const char *line)
{
	size_t at = strspn(line, " ");

	while (line[at] && strncmp(line + at, "  ", 2) != 0)
		at++;
	at += strspn(line + at, " ");
	return line[at] ? at : strspn(line, " ");
}

/* Paragraphs; a line that begins with a blank is an item of a list. */
static void paragraphs(FILE *out, const char *text)
{
	char line[USAGE_BYTES];

	while (*text) {
		size_t n = strcspn(text, "\n");

		snprintf(line, sizeof line, "%.*s", (int)n, text);
		wrap(out, line, 0, line[0] == ' ' ? hanging(line) : 0);
		text += n + (text[n] == '\n');
	}
}

static void append(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void append(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

static void usage_made(const struct ob_command *command, char *ret_text, size_t size)
{
	ret_text[0] = '\0';
	if (command->commands)
		append(ret_text, size, " VERB ...");
	for (const struct ob_option *o = command->options; o && o->name; o++)
		if (!o->hidden && o->kind != OB_HEADING) {
			append(ret_text, size, " [OPTION]...");
			break;
		}
	for (const struct ob_operand *p = command->operands; p && p->name; p++) {
		const char *name = p->words ? p->words : p->name;

		if (p->kind == OB_OPERAND_ONE)
			append(ret_text, size, " %s", name);
		else if (p->kind == OB_OPERAND_OPTIONAL)
			append(ret_text, size, " [%s]", name);
		else if (p->kind == OB_OPERAND_MANY)
			append(ret_text, size, " [%s]...", name);
		else
			append(ret_text, size, " [--] %s [ARG]...", name);
	}
	if (ret_text[0])
		memmove(ret_text, ret_text + 1, strlen(ret_text));
}

bool ob_help_usage(const struct ob_command *command, size_t n, char *ret_text, size_t size)
{
	const char *line = command->usage;

	if (!line) {
		usage_made(command, ret_text, size);
		return n == 0;
	}
	for (; n && line; n--) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (line)
		snprintf(ret_text, size, "%.*s", (int)strcspn(line, "\n"), line);
	return line;
}

static void usage_print(const struct ob_command *command, FILE *out)
{
	char line[USAGE_BYTES], whole[2 * USAGE_BYTES];

	for (size_t n = 0; ob_help_usage(command, n, line, sizeof line); n++) {
		snprintf(whole, sizeof whole, "%s %s%s%s", n ? "      " : "usage:", command->name,
			line[0] ? " " : "", line);
		wrap(out, whole, 0, 11);
	}
}

void ob_help_explain(const struct ob_option *o, char ret_text[OB_HELP_TEXT])
{
	char parts[256] = "";

	if (o->kind == OB_NUMBER && o->max < UINT32_MAX)
		append(parts, sizeof parts, "; %llu to %llu", (unsigned long long)o->min,
			(unsigned long long)o->max);
	if (o->kind == OB_REAL)
		append(parts, sizeof parts, "; %g to %g", o->low, o->high);
	if (o->environment && o->fallback)
		append(parts, sizeof parts, "; default $%s, else %s", o->environment, o->fallback);
	else if (o->environment)
		append(parts, sizeof parts, "; default $%s", o->environment);
	else if (o->fallback)
		append(parts, sizeof parts, "; default %s", o->fallback);
	snprintf(ret_text, OB_HELP_TEXT, "%s%s%s%s", o->help ? o->help : "",
		parts[0] ? o->help ? " (" : "(" : "", parts[0] ? parts + 2 : "",
		parts[0] ? ")" : "");
}

static size_t name_print(const struct ob_option *o, char *ret_text, size_t size)
{
	char letter[8] = "";

	if (o->letter)
		snprintf(letter, sizeof letter, "-%c, ", o->letter);
	return (size_t)snprintf(ret_text, size, "  %s--%s%s%s", letter, o->name, o->arg ? " " : "",
		o->arg ? o->arg : "");
}

/* Width of the column of names. */
static size_t names_width(const struct ob_command *command)
{
	char name[NAME_BYTES];
	size_t width = 0;

	for (const struct ob_option *o = command->options; o && o->name; o++) {
		size_t n = o->hidden || o->kind == OB_HEADING
			? 0
			: name_print(o, name, sizeof name) + 2;

		width = n <= NAMES_MAX ? ob_max(width, n) : width;
	}
	return width ? width : NAMES_MAX;
}

/* One row: a name, and its explanation in the second column. */
static void row(FILE *out, const char *name, const char *text, size_t width)
{
	size_t n = strlen(name);

	fputs(name, out);
	if (!*text) {
		fputc('\n', out);
		return;
	}
	if (n + 2 > width) {
		fputc('\n', out);
		n = 0;
	}
	fprintf(out, "%*s", (int)(width - n), "");
	wrap(out, text, width, width);
}

static void options_print(const struct ob_command *command, FILE *out)
{
	const struct ob_option version = { .name = "version", .help = "print the version" },
			       help = { .name = "help", .help = "print this text", .letter = 'h' };
	size_t width = names_width(command);
	char name[NAME_BYTES], text[OB_HELP_TEXT];
	bool first = true;

	for (const struct ob_option *o = command->options; o && o->name; o++) {
		if (o->hidden)
			continue;
		if (o->kind == OB_HEADING) {
			fprintf(out, "\n%s:\n", o->name);
			first = false;
			continue;
		}
		if (first)
			fputs("\nOptions:\n", out);
		first = false;
		name_print(o, name, sizeof name);
		ob_help_explain(o, text);
		row(out, name, text, width);
	}
	if (command->commands)
		return;
	fputs(first ? "\nOptions:\n" : "\n", out);
	name_print(&help, name, sizeof name);
	row(out, name, help.help, width);
	name_print(&version, name, sizeof name);
	if (command->version)
		row(out, name, version.help, width);
}

static void operands_print(const struct ob_command *command, FILE *out)
{
	bool first = true;
	char name[NAME_BYTES];

	for (const struct ob_operand *p = command->operands; p && p->name; p++) {
		if (!p->help)
			continue;
		if (first)
			fputc('\n', out);
		first = false;
		snprintf(name, sizeof name, "  %s", p->name);
		row(out, name, p->help, ob_max(names_width(command), (size_t)12));
	}
}

static void commands_print(const struct ob_command *command, FILE *out)
{
	const char *group = NULL;
	char name[NAME_BYTES];
	size_t width = 0;

	for (size_t i = 0; command->commands[i]; i++)
		width = ob_max(width, strlen(ob_command_short_name(command->commands[i])) + 4);
	for (size_t i = 0; command->commands[i]; i++) {
		const struct ob_command *c = command->commands[i];
		const char *over = c->group ? c->group : "Verbs";

		if (!group || strcmp(group, over) != 0) {
			char heading[256];

			snprintf(heading, sizeof heading, "%s:", over);
			fputc('\n', out);
			wrap(out, heading, 0, 0);
			fputc('\n', out);
		}
		group = over;
		snprintf(name, sizeof name, "  %s", ob_command_short_name(c));
		row(out, name, c->summary, width);
	}
	fprintf(out, "\n'%s VERB --help' says more.\n", command->name);
}

void ob_help_print(const struct ob_command *command, FILE *out)
{
	usage_print(command, out);
	if (command->about) {
		fputc('\n', out);
		paragraphs(out, command->about);
	} else if (!command->commands) {
		fprintf(out, "\n%c%s.\n", toupper((unsigned char)command->summary[0]),
			command->summary + 1);
	}
	operands_print(command, out);
	if (command->commands)
		commands_print(command, out);
	if (command->options || !command->commands)
		options_print(command, out);
	if (command->notes) {
		fputc('\n', out);
		paragraphs(out, command->notes);
	}
}
