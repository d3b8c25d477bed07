/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The users' command: one function per verb. Each prints its own usage with --help and returns the
 * exit code: 0; 1 the thing asked about is not well; 2 wrong usage; `run` ends with the program's
 * own.
 */
#ifndef OBX_COMMAND_H
#define OBX_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBX_EXIT_UNWELL 1
#define OBX_EXIT_USAGE  2

int obx_run_main(int argc, char **argv);
int obx_check_main(int argc, char **argv);
int obx_info_main(int argc, char **argv);
int obx_bench_main(int argc, char **argv);
int obx_top_main(int argc, char **argv);
int obx_config_main(int argc, char **argv);
int obx_token_main(int argc, char **argv);
int obx_cert_main(int argc, char **argv);
int obx_kzg_main(int argc, char **argv);
int obx_msm_main(int argc, char **argv);
int obx_ntt_main(int argc, char **argv);
int obx_rqa_main(int argc, char **argv);

/* The server meant: `given`, else OUTBOARD_SERVER, else the default address. Never NULL. */
const char *obx_server_url(const char *given);
/*
 * A file of this installation: looked for beside the running program, installed
 * (../lib/outboard/NAME) and in the build tree (../client-shim/NAME, ../softdevice/NAME,
 * ../server/NAME). False: prints where it looked.
 */
bool obx_find_file(const char *name, char *ret_path, size_t size);
/* The same, but false: prints nothing. */
bool obx_look_for_file(const char *name, char *ret_path, size_t size);
/* "option needs a value" and its kin: prints "outboard VERB: ...", returns OBX_EXIT_USAGE. */
int obx_usage_error(const char *verb, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * An option that could not be taken: says whether it lacks its value or does not exist, with the
 * one that was probably meant; returns OBX_EXIT_USAGE. verb: "token", "rqa sweep". The options are
 * those that the verb's own --help names.
 */
int obx_option_unknown(const char *verb, const char *word);
/* The same for a name among others, as a verb below a verb. what: "verb", "action". */
int obx_word_unknown(
	const char *verb, const char *what, const char *word, const char *const *names, size_t n);
/*
 * What getopt_long's ':' and '?' stand for, printed; returns OBX_EXIT_USAGE. argv as it was given
 * to getopt_long.
 */
int obx_option_wrong(const char *verb, int c, char *const *argv);

#endif
