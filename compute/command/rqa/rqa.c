/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/rqa.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "compute/command/rqa/setup.h"
#include "tools/command.h"

static const struct {
	const char *name, *what;
	int (*main)(int argc, char **argv);
} verbs[] = {
	{ "run", "measures of one series (or of a pair, or in windows)", obx_rqa_run_main },
	{ "sweep",
		"every file of a folder with every combination of a grid; goes on where it was "
		"stopped",
		obx_rqa_sweep_main },
	{ "plot", "a recurrence plot, or a heat map of a sweep, as PNG", obx_rqa_plot_main },
	{ "serve", "sweeps from a page in the browser", obx_rqa_serve_main },
};

obk_rqa_flag obx_rqa_stop;

static void on_signal(int number)
{
	(void)number;
	obx_rqa_stop = 1;
}

void obx_rqa_catch_signals(void)
{
	struct sigaction stop = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

static int usage(FILE *out)
{
	fprintf(out, "usage: outboard rqa VERB ...\n\nRecurrence quantification analysis.\n\n");
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		fprintf(out, "  %-7s %s\n", verbs[i].name, verbs[i].what);
	fprintf(out,
		"\n'outboard rqa VERB --help' says more; 'outboard rqa measures' lists the "
		"measures, 'outboard rqa options' all "
		"options as a table.\n");
	return out == stdout ? 0 : OBX_EXIT_USAGE;
}

int obx_rqa_main(int argc, char **argv)
{
	static const char *const names[] = { "run", "sweep", "plot", "serve", "measures",
		"options" };
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "help") == 0)
		return usage(stdout);
	if (argc > 2 && (strcmp(verb, "measures") == 0 || strcmp(verb, "options") == 0)) {
		if (strcmp(argv[2], "--help") != 0 && strcmp(argv[2], "-h") != 0)
			return obx_usage_error("rqa", "'%s' takes nothing behind it", verb);
		printf("usage: outboard rqa %s\n\n%s\n", verb,
			verb[0] == 'm' ? "Lists the measures."
				       : "Prints all options as a table in Markdown.");
		return 0;
	}
	if (strcmp(verb, "measures") == 0) {
		for (unsigned i = 0; i < OBK_RQA_MEASURE_COUNT; i++)
			printf("%-7s %s\n", obk_rqa_measure_name(i), obk_rqa_measure_what(i));
		return 0;
	}
	if (strcmp(verb, "options") == 0) {
		obx_setup_markdown(stdout);
		return 0;
	}
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		if (strcmp(verb, verbs[i].name) == 0)
			return verbs[i].main(argc - 1, argv + 1);
	return *verb ? obx_word_unknown("rqa", "verb", verb, names, sizeof names / sizeof names[0])
		     : usage(stderr);
}
