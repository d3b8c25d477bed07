/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/rqa.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "compute/command/rqa/setup.h"
#include "tools/command.h"

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

static const struct ob_command measures_command, options_command;

static int measures_main(int argc, char **argv)
{
	int code = ob_options_parse(&measures_command, NULL, argc, argv);

	for (unsigned i = 0; code == OB_OPTIONS_GO && i < OBK_RQA_MEASURE_COUNT; i++)
		printf("%-7s %s\n", obk_rqa_measure_name(i), obk_rqa_measure_what(i));
	return code == OB_OPTIONS_GO ? 0 : code;
}

static int options_main(int argc, char **argv)
{
	int code = ob_options_parse(&options_command, NULL, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	obx_setup_markdown(stdout);
	return 0;
}

static const struct ob_command measures_command = { .name = "outboard rqa measures",
	.summary = "list the measures",
	.main = measures_main };
static const struct ob_command options_command = { .name = "outboard rqa options",
	.summary = "print all options of an analysis as a table in Markdown",
	.main = options_main };

const struct ob_command obx_rqa_command = {
	.name = "outboard rqa",
	.group = OBX_GROUP_COMPUTE,
	.summary = "recurrence quantification: one series, sweeps over parameters, plots, a page "
		   "in the browser",
	.about = "Recurrence quantification analysis.",
	.commands = (const struct ob_command *const[]){ &obx_rqa_run_command,
		&obx_rqa_sweep_command, &obx_rqa_plot_command, &obx_rqa_serve_command,
		&measures_command, &options_command, NULL },
};
