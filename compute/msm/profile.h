/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Files of measurements made on this machine: small texts, one file for each measured object.
 *
 *     outboard msm profile 1
 *     for AMD EPYC 9B14; avx512; adx
 *     ...                                 lines that depend on the kind
 *     check 5d1f0c93a7be2204              checksum of everything above
 *
 * Plain functions without state, for any thread. They read and write files and may block.
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

/* A kind of profile file. */
struct obk_profile_kind {
	const char *title; /* the first line without the version: "outboard msm profile" */
	unsigned version;
	const char *prefix; /* of the file's name: "msm" */
	const char *remedy; /* the command that makes the file again */
};

/*
 * $XDG_CACHE_HOME/outboard/<prefix>-<hash of key>.profile, or the same in $HOME/.cache. False:
 * neither variable is set, or the path is too long.
 */
bool obk_profile_path(
	const struct obk_profile_kind *kind, const char *key, char *ret_path, size_t size);
/*
 * Returns the lines between "for" and "check", terminated by a zero byte. OB_ERR_IO: there is no
 * file; OB_ERR_UNSUPPORTED: it has another version or key; OB_ERR_ARGUMENT: it is damaged.
 */
enum ob_err obk_profile_read(const struct obk_profile_kind *kind, const char *key, const char *path,
	char ret_lines[OBK_PROFILE_MAX_BYTES + 1], struct obk_fault *fault);
/*
 * Appends to the first `at` bytes of a text of OBK_PROFILE_MAX_BYTES; text that does not fit is cut
 * off. Returns the new length.
 */
size_t obk_profile_append(char *text, size_t at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Creates missing folders. The file is replaced atomically. lines: each with its newline, fewer
 * than OBK_PROFILE_MAX_BYTES in all. OB_ERR_IO.
 */
enum ob_err obk_profile_write(const struct obk_profile_kind *kind, const char *key,
	const char *path, const char *lines, struct obk_fault *fault);
/*
 * Opens a new file for writing in the folder of `path`, with a unique name, to be renamed to
 * `path`. NULL: errno has the reason.
 */
FILE *obk_profile_beside(const char *path, char *ret_other, size_t size);
/*
 * For lines that are invalid for this kind: returns OB_ERR_ARGUMENT and a text that says what to
 * do.
 */
enum ob_err obk_profile_damaged(
	const struct obk_profile_kind *kind, const char *path, struct obk_fault *fault);
/* The line after this one; NULL: there is none. text NULL is allowed. */
const char *obk_profile_next(const char *text);

#endif
