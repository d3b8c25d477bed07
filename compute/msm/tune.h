/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What was measured to be the best on this machine: the window for each size, with and without the
 * endomorphism, and the size up to which the endomorphism is faster. There is one profile per
 * process. It is empty at first; products then use the cost model of the plan. Profiles may be
 * loaded, replaced (compute/msm/tune_measure.h) and cleared while products run: a product may use
 * windows of the old and of the new profile, and all of them give correct results.
 *
 * The file is text: a version, the processor and the implementation of additions, the numbers and a
 * checksum. A file for another processor or version is ignored; a damaged file is ignored with a
 * warning. OUTBOARD_OPT=-tune disables all profiles.
 */
#ifndef OBK_TUNE_H
#define OBK_TUNE_H

#include <stdio.h>

#include "compute/msm/profile.h"

#define OBK_TUNE_VERSION 1
#define OBK_TUNE_LOGS    27 /* sizes 2^0 .. 2^26 */
#define OBK_TUNE_HALVES  2

/*
 * $XDG_CACHE_HOME/outboard/msm-<processor and lanes>.profile, or the same in $HOME/.cache. False:
 * neither variable is set, or the path is too long.
 */
bool obk_tune_path(char *ret_path, size_t size);
/*
 * OB_ERR_IO: there is no file; OB_ERR_UNSUPPORTED: it is for another processor or version;
 * OB_ERR_ARGUMENT: it is damaged. After an error the profile is unchanged.
 */
enum ob_err obk_tune_load(const char *path, struct obk_fault *fault);
/*
 * Loads the file at obk_tune_path if there is one for this processor. OB_ERR_ARGUMENT if it is
 * damaged.
 */
enum ob_err obk_tune_load_default(struct obk_fault *fault);
/* Creates missing folders. The file is replaced atomically. OB_ERR_IO. */
enum ob_err obk_tune_store(const char *path, struct obk_fault *fault);
void obk_tune_clear(void);
/*
 * Replaces the profile of this process. windows as obk_tune_window returns them, for one half
 * (whole scalars) and two. limit: as obk_tune_endomorphism, as a power of two.
 */
void obk_tune_set(const uint8_t windows[OBK_TUNE_HALVES][OBK_TUNE_LOGS], unsigned limit);
/* Prints the profile of this process as lines of text, or as one JSON object. */
void obk_tune_print(FILE *out);
void obk_tune_print_json(FILE *out);

/* log2 of the power of two nearest to n, below OBK_TUNE_LOGS. */
unsigned obk_tune_log(size_t n);
/* The measured window for n points, 0 if there is none. */
unsigned obk_tune_window(unsigned halves, size_t n);
/* The largest number of points for which the endomorphism is faster; `otherwise` if unknown. */
size_t obk_tune_endomorphism(size_t otherwise);

#endif
