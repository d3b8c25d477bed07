/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The users' command: one function per verb. Each prints its own usage with --help and returns the
 * exit code: 0: success; 1: the operation failed or the check found a fault; 2: wrong usage. `run`
 * ends with the program's own exit code.
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

/* Returns the server's address: `given`, else OUTBOARD_SERVER, else the default. Never NULL. */
const char *obx_server_url(const char *given);
/*
 * Finds a file of this installation. Searches relative to the running program: the installed path
 * (../lib/outboard/NAME), then the build tree (../client-shim/NAME, ../softdevice/NAME,
 * ../server/NAME). On failure prints where it looked and returns false.
 */
bool obx_find_file(const char *name, char *ret_path, size_t size);
/* The same, but prints nothing on failure. */
bool obx_look_for_file(const char *name, char *ret_path, size_t size);
/*
 * Reports wrong usage, such as a missing value: prints "outboard VERB: ..." and returns
 * OBX_EXIT_USAGE.
 */
int obx_usage_error(const char *verb, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Reports an invalid option: prints whether it lacks its value or does not exist, and suggests the
 * nearest existing one. Returns OBX_EXIT_USAGE. verb: such as "token" or "rqa sweep". The known
 * options are those in the output of the verb's --help.
 */
int obx_option_unknown(const char *verb, const char *word);
/*
 * The same for a name from a fixed list, such as the verbs of a verb. what: such as "verb" or
 * "action".
 */
int obx_word_unknown(
	const char *verb, const char *what, const char *word, const char *const *names, size_t n);
/*
 * Prints the error for which getopt_long returned ':' or '?'. Returns OBX_EXIT_USAGE. argv: as
 * given to getopt_long.
 */
int obx_option_wrong(const char *verb, int c, char *const *argv);

#endif
