/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What was measured to be best on this machine: the window for each size, with and without the
 * endomorphism, and up to what size the endomorphism pays. One profile per process, empty at first:
 * products then go by the plan's cost model. Loading, measuring and clearing may happen while
 * products run (each product sees windows of the old or of the new profile, all of which are
 * right); measuring takes some seconds and should have the machine to itself.
 *
 * The file is text: a version, the processor and the implementation of additions it was measured
 * with, the numbers and a checksum. One of another processor or version is ignored; a damaged one
 * is ignored with a warning. OUTBOARD_OPT=-tune forgets all profiles.
 */
#ifndef OBK_TUNE_H
#define OBK_TUNE_H

#include <stdio.h>

#include "compute/msm/msm.h"
#include "compute/msm/profile.h"

#define OBK_TUNE_VERSION 1
#define OBK_TUNE_LOGS    27 /* sizes 2^0 .. 2^26 */
#define OBK_TUNE_LARGEST 16

/*
 * $XDG_CACHE_HOME/outboard/msm-<processor and lanes>.profile, or below $HOME/.cache. False: neither
 * is set, or it does not fit.
 */
bool obk_tune_path(char *ret_path, size_t size);
/*
 * OB_ERR_IO without a file, OB_ERR_UNSUPPORTED for another processor or version, OB_ERR_ARGUMENT
 * for a damaged file: the profile stays as it was.
 */
enum ob_err obk_tune_load(const char *path, struct obk_fault *fault);
/* From obk_tune_path, once there is a file for this processor; OB_ERR_ARGUMENT if it is damaged. */
enum ob_err obk_tune_load_default(struct obk_fault *fault);
/* Makes the folders it needs; the file appears whole or not at all. OB_ERR_IO. */
enum ob_err obk_tune_store(const char *path, struct obk_fault *fault);
void obk_tune_clear(void);
/*
 * Sizes up to 2^largest, at most 2^OBK_TUNE_LARGEST; larger ones follow the largest. progress as in
 * a job. OB_ERR_NO_MEMORY.
 */
enum ob_err obk_tune_measure(struct obk_pool *pool, unsigned largest,
	void (*progress)(void *arg, double done), void *arg, struct obk_fault *fault);
void obk_tune_print(FILE *out, bool json);

/* The logarithm of the power of two that is nearest to n, below OBK_TUNE_LOGS. */
unsigned obk_tune_log(size_t n);
/* For the plan: the window for n points, 0 if none is known. */
unsigned obk_tune_window(unsigned halves, size_t n);
/* The most points that are worth the endomorphism, `otherwise` if not known. */
size_t obk_tune_endomorphism(size_t otherwise);

#endif
