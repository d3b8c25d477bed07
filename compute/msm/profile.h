/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Files of what was measured here: small texts, one for each thing that they are of.
 *
 *     outboard msm profile 1
 *     for AMD EPYC 9B14; avx512; adx
 *     ...                                 lines of the kind's own
 *     check 5d1f0c93a7be2204              of all above
 *
 * Plain functions without a state, for any thread; they do what file systems do.
 */
#ifndef OBK_PROFILE_H
#define OBK_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "compute/field/fault.h"

#define OBK_PROFILE_MAX_BYTES 4096
#define OBK_PROFILE_MAX_PATH  4096
#define OBK_PROFILE_MAX_KEY   512

/* What a file is of. */
struct obk_profile_kind {
	const char *title; /* the first line but for the version: "outboard msm profile" */
	unsigned version;
	const char *prefix; /* of the file's name: "msm" */
	const char *remedy; /* the command that makes it again */
};

uint64_t obk_profile_hash(const void *bytes, size_t n);
/*
 * $XDG_CACHE_HOME/outboard/<prefix>-<hash of key>.profile, or below $HOME/.cache. False: neither is
 * set, or it does not fit.
 */
bool obk_profile_path(
	const struct obk_profile_kind *kind, const char *key, char *ret_path, size_t size);
/*
 * The lines after "for" to the check's, with a 0 behind. OB_ERR_IO without a file,
 * OB_ERR_UNSUPPORTED if it is of another version or for another key, OB_ERR_ARGUMENT if it is
 * damaged.
 */
enum ob_err obk_profile_read(const struct obk_profile_kind *kind, const char *key, const char *path,
	char ret_lines[OBK_PROFILE_MAX_BYTES + 1], struct obk_fault *fault);
/*
 * Writes behind the first `at` of a text of OBK_PROFILE_MAX_BYTES; what does not fit is cut off.
 * The new length.
 */
size_t obk_profile_append(char *text, size_t at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Makes the folders it needs; the file appears whole or not at all. lines: each with its end, fewer
 * than OBK_PROFILE_MAX_BYTES in all. OB_ERR_IO.
 */
enum ob_err obk_profile_write(const struct obk_profile_kind *kind, const char *key,
	const char *path, const char *lines, struct obk_fault *fault);
/*
 * A new file for writing, beside `path` and with a name that nobody else has, to be renamed to it;
 * NULL: errno.
 */
FILE *obk_profile_beside(const char *path, char *ret_other, size_t size);
/* For lines that are none of the kind's: OB_ERR_ARGUMENT and what to do. */
enum ob_err obk_profile_damaged(
	const struct obk_profile_kind *kind, const char *path, struct obk_fault *fault);
/* The line after this one; NULL: there is none. text NULL is allowed. */
const char *obk_profile_next(const char *text);

#endif
