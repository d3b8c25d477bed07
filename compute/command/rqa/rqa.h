/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `outboard rqa VERB`: run, sweep, plot, serve. The mains return the exit code: 0; 1: something could
 * not be computed or written (the rest was); 2: wrong usage; 130: stopped by Ctrl-C.
 */
#ifndef OBX_RQA_RQA_H
#define OBX_RQA_RQA_H

#include "base/command_line.h"
#include "compute/rqa/rqa.h"

#define OBX_EXIT_STOPPED 130

extern const struct ob_command obx_rqa_run_command, obx_rqa_sweep_command, obx_rqa_plot_command,
	obx_rqa_serve_command;
/*
 * Set by SIGINT and SIGTERM after obx_rqa_catch_signals; a second signal ends the program.
 * Exceeding the file size limit then gives an error instead of SIGXFSZ.
 */
extern obk_rqa_flag obx_rqa_stop;
void obx_rqa_catch_signals(void);

#endif
