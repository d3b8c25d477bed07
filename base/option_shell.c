/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/option_shell.h"

#include <ctype.h>
#include <string.h>

#include "base/option_help.h"

/* Calls `visit` for a command and all commands below it. */
static void each(const struct ob_command *command,
	void (*visit)(const struct ob_command *command, FILE *out), FILE *out)
{
	visit(command, out);
	for (size_t i = 0; command->commands && command->commands[i]; i++)
		each(command->commands[i], visit, out);
}

static bool shown(const struct ob_option *o)
{
	return !o->hidden && o->kind != OB_HEADING;
}

/* ---- description ---- */

static void field(const char *text, FILE *out)
{
	fputc('\t', out);
	for (; text && *text; text++) {
		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '\\')
			fputs("\\\\", out);
		else
			fputc(*text == '\t' ? ' ' : *text, out);
	}
}

static void describe_option(const struct ob_option *o, FILE *out)
{
	char text[OB_HELP_TEXT], letter[2] = { o->letter, '\0' };

	if (o->hidden)
		return;
	fputs(o->kind == OB_HEADING ? "heading" : "option", out);
	field(o->name, out);
	if (o->kind != OB_HEADING) {
		ob_help_explain(o, text);
		field(letter, out);
		field(o->arg, out);
		field(text, out);
		field(o->words, out);
	}
	fputc('\n', out);
}

static void describe(const struct ob_command *command, FILE *out)
{
	char line[OB_HELP_TEXT];

	fputs("command", out);
	field(command->name, out);
	field(command->summary, out);
	field(command->group, out);
	field(command->about, out);
	field(command->notes, out);
	fputc('\n', out);
	for (size_t n = 0; ob_help_usage(command, n, line, sizeof line); n++) {
		fputs("usage", out);
		field(line, out);
		fputc('\n', out);
	}
	for (const struct ob_operand *p = command->operands; p && p->name; p++) {
		fputs("operand", out);
		field(p->name, out);
		field(p->help, out);
		field(p->words, out);
		fputc('\n', out);
	}
	for (const struct ob_option *o = command->options; o && o->name; o++)
		describe_option(o, out);
}

void ob_describe_print(const struct ob_command *command, FILE *out)
{
	each(command, describe, out);
}

/* ---- what the three scripts share ---- */

/* "a|b|c" with blanks. */
static void words_print(const char *words, FILE *out)
{
	for (; words && *words; words++)
		fputc(*words == '|' ? ' ' : *words, out);
}

/* The name of a program as a part of a function's name. */
static void name_print(const char *name, FILE *out)
{
	for (; *name; name++)
		fputc(isalnum((unsigned char)*name) ? *name : '_', out);
}

static void below_print(const struct ob_command *command, FILE *out)
{
	for (size_t i = 0; command->commands && command->commands[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", ob_command_short_name(command->commands[i]));
}

/* Text within single quotes; fish also takes a backslash before a quote, the others do not. */
static void quoted_print(const char *text, const char *quote, FILE *out)
{
	for (; text && *text; text++) {
		if (*text == '\'')
			fputs(quote, out);
		else
			fputc(*text == '\n' ? ' ' : *text, out);
	}
}

static const char *operand_words(const struct ob_command *command)
{
	return command->operands && command->operands[0].words ? command->operands[0].words : "";
}

/* ---- bash ---- */

static void bash_step(const struct ob_command *command, FILE *out)
{
	if (strchr(command->name, ' '))
		fprintf(out, "\t\t'%s') path=\"$path ${COMP_WORDS[i]}\" ;;\n", command->name);
}

static void bash_values(const struct ob_command *command, FILE *out)
{
	for (const struct ob_option *o = command->options; o && o->name; o++) {
		if (!shown(o) || !o->arg)
			continue;
		fprintf(out, "\t'%s:--%s'", command->name, o->name);
		if (o->letter)
			fprintf(out, "|'%s:-%c'", command->name, o->letter);
		if (o->words) {
			fputs(") COMPREPLY=($(compgen -W '", out);
			words_print(o->words, out);
			fputs("' -- \"$cur\")); return ;;\n", out);
		} else if (o->kind == OB_FILE || o->kind == OB_FOLDER) {
			fprintf(out, ") COMPREPLY=($(compgen -%c -- \"$cur\")); return ;;\n",
				o->kind == OB_FILE ? 'f' : 'd');
		} else {
			fputs(") return ;;\n", out);
		}
	}
}

static void bash_words(const struct ob_command *command, FILE *out)
{
	fprintf(out, "\t'%s') words='", command->name);
	below_print(command, out);
	words_print(operand_words(command), out);
	fputs("' options='", out);
	for (const struct ob_option *o = command->options; o && o->name; o++)
		if (shown(o))
			fprintf(out, "--%s ", o->name);
	fprintf(out, "--help%s' ;;\n", command->version ? " --version" : "");
}

static void bash_print(const struct ob_command *top, FILE *out)
{
	fprintf(out, "# Completion of %s for bash; made by 'outboard completion bash'.\n_",
		top->name);
	name_print(top->name, out);
	fprintf(out,
		"()\n{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} path='%s' words='' options='' i\n"
		"\tCOMPREPLY=()\n"
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		"\t\t[[ ${COMP_WORDS[i]} == -- ]] && return\n"
		"\t\tcase \"$path ${COMP_WORDS[i]}\" in\n",
		top->name);
	each(top, bash_step, out);
	fputs("\t\tesac\n\tdone\n\tcase \"$path:${COMP_WORDS[COMP_CWORD-1]}\" in\n", out);
	each(top, bash_values, out);
	fputs("\tesac\n\tcase \"$path\" in\n", out);
	each(top, bash_words, out);
	fputs("\tesac\n"
	      "\t[[ $cur == -* || -z $words ]] && words=$options\n"
	      "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	      "}\n"
	      "complete -o default -F _",
		out);
	name_print(top->name, out);
	fprintf(out, " %s\n", top->name);
}

/* ---- zsh ---- */

static void zsh_step(const struct ob_command *command, FILE *out)
{
	if (strchr(command->name, ' '))
		fprintf(out, "\t\t('%s') path_=\"$path_ $words[i]\"; (( last = i )) ;;\n",
			command->name);
}

/* Text of an option's specification: brackets and colons have a meaning there. */
static void zsh_text(const char *text, FILE *out)
{
	for (; text && *text; text++) {
		if (strchr("[]:\\", *text))
			fputc('\\', out);
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text == '\n' ? ' ' : *text, out);
	}
}

static void zsh_value(const struct ob_option *o, FILE *out)
{
	fputc(':', out);
	zsh_text(o->arg, out);
	if (o->words) {
		fputs(":(", out);
		words_print(o->words, out);
		fputc(')', out);
	} else {
		fputs(o->kind == OB_FILE               ? ":_files"
				: o->kind == OB_FOLDER ? ":_files -/"
						       : ": ",
			out);
	}
}

static void zsh_option(const struct ob_option *o, const char *name, FILE *out)
{
	fprintf(out, " \\\n\t\t\t'%s[", name);
	zsh_text(o->help, out);
	fputc(']', out);
	if (o->arg)
		zsh_value(o, out);
	fputc('\'', out);
}

static void zsh_words(const struct ob_command *command, FILE *out)
{
	char name[OB_HELP_TEXT];
	bool below = command->commands || *operand_words(command);

	fprintf(out, "\t('%s')\n\t\t_arguments", command->name);
	for (const struct ob_option *o = command->options; o && o->name; o++) {
		if (!shown(o))
			continue;
		snprintf(name, sizeof name, "--%s", o->name);
		zsh_option(o, name, out);
		snprintf(name, sizeof name, "-%c", o->letter);
		if (o->letter)
			zsh_option(o, name, out);
	}
	fputs(" \\\n\t\t\t'--help[print the usage]' \\\n\t\t\t'-h[print the usage]'", out);
	if (command->version)
		fputs(" \\\n\t\t\t'--version[print the version]'", out);
	if (below) {
		fputs(" \\\n\t\t\t'1:verb:(", out);
		below_print(command, out);
		words_print(operand_words(command), out);
		fputs(")'", out);
	}
	fputs(" \\\n\t\t\t'*::argument:_files' ;;\n", out);
}

static void zsh_print(const struct ob_command *top, FILE *out)
{
	fprintf(out,
		"#compdef %s\n"
		"# Completion of %s for zsh; made by 'outboard completion zsh'.\n_",
		top->name, top->name);
	name_print(top->name, out);
	fprintf(out,
		"()\n{\n"
		"\tlocal path_='%s'\n"
		"\tlocal -i i last=1\n"
		"\tfor (( i = 2; i < CURRENT; i++ )); do\n"
		"\t\tcase \"$path_ $words[i]\" in\n",
		top->name);
	each(top, zsh_step, out);
	fputs("\t\tesac\n\tdone\n"
	      "\tshift $(( last - 1 )) words\n"
	      "\t(( CURRENT -= last - 1 ))\n"
	      "\tcase $path_ in\n",
		out);
	each(top, zsh_words, out);
	fputs("\tesac\n}\n_", out);
	name_print(top->name, out);
	fputs(" \"$@\"\n", out);
}

/* ---- fish ---- */

static void fish_step(const struct ob_command *command, FILE *out)
{
	if (strchr(command->name, ' '))
		fprintf(out, "\t\t\tcase '%s'\n\t\t\t\tset path \"$path $word\"\n", command->name);
}

static void fish_begin(const struct ob_command *command, FILE *out)
{
	const char *blank = strchr(command->name, ' ');

	fprintf(out, "complete -c %.*s -n 'test (__",
		(int)(blank ? (size_t)(blank - command->name) : strlen(command->name)),
		command->name);
	for (const char *p = command->name; *p && *p != ' '; p++)
		fputc(isalnum((unsigned char)*p) ? *p : '_', out);
	fprintf(out, "_path) = \"%s\"'", command->name);
}

static void fish_option(const struct ob_option *o, FILE *out)
{
	fprintf(out, " -l %s", o->name);
	if (o->letter)
		fprintf(out, " -s %c", o->letter);
	if (o->arg && o->words) {
		fputs(" -x -a '", out);
		words_print(o->words, out);
		fputc('\'', out);
	} else if (o->arg) {
		fputs(o->kind == OB_FOLDER           ? " -x -a '(__fish_complete_directories)'"
				: o->kind == OB_FILE ? " -r"
						     : " -x",
			out);
	}
	fputs(" -d '", out);
	quoted_print(o->help, "\\'", out);
	fputs("'\n", out);
}

static void fish_words(const struct ob_command *command, FILE *out)
{
	for (size_t i = 0; command->commands && command->commands[i]; i++) {
		fish_begin(command, out);
		fprintf(out, " -f -a %s -d '", ob_command_short_name(command->commands[i]));
		quoted_print(command->commands[i]->summary, "\\'", out);
		fputs("'\n", out);
	}
	if (*operand_words(command)) {
		fish_begin(command, out);
		fputs(" -f -a '", out);
		words_print(operand_words(command), out);
		fputs("'\n", out);
	}
	for (const struct ob_option *o = command->options; o && o->name; o++) {
		if (!shown(o))
			continue;
		fish_begin(command, out);
		fish_option(o, out);
	}
	fish_begin(command, out);
	fputs(" -l help -s h -d 'print the usage'\n", out);
	if (command->version) {
		fish_begin(command, out);
		fputs(" -l version -d 'print the version'\n", out);
	}
}

static void fish_print(const struct ob_command *top, FILE *out)
{
	fprintf(out,
		"# Completion of %s for fish; made by 'outboard completion fish'.\nfunction __",
		top->name);
	name_print(top->name, out);
	fprintf(out,
		"_path\n"
		"\tset -l path '%s'\n"
		"\tfor word in (commandline -opc)[2..-1]\n"
		"\t\tswitch \"$path $word\"\n",
		top->name);
	each(top, fish_step, out);
	fputs("\t\tend\n\tend\n\techo $path\nend\n", out);
	each(top, fish_words, out);
}

bool ob_completions_print(const struct ob_command *top, const char *shell, FILE *out)
{
	static void (*const print[])(
		const struct ob_command *, FILE *) = { bash_print, zsh_print, fish_print };
	int i = ob_words_find(OB_SHELLS, shell);

	if (i >= 0)
		print[i](top, out);
	return i >= 0;
}
