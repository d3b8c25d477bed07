/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Configuration files of programs: INI, with one key for each long option, in sections.
 *
 *     [server]
 *     listen = tcp://0.0.0.0:14800
 *
 * Every error is reported with file, line and what to write; reading continues, so that one run
 * reports all of them. Only config_file.c uses libinih; it is a library of its own, because the
 * client library uses the rest of base/. Main thread only.
 */
#ifndef OB_CONFIG_FILE_H
#define OB_CONFIG_FILE_H

#include "base/options.h"

#define OB_CONFIG_ERRORS_MAX 100 /* reported; then reading stops */

struct ob_config_format {
	const char *program;         /* "outboard-server" */
	const char *const *sections; /* ends with NULL; the first one is named in errors */
};

/*
 * Calls set for each key that is the name of an option which may stand in a file. The callee keeps
 * value (allocated, never freed: options live as long as the process); on an error *ret_cause says
 * what the key takes. Errors go to stderr. Returns how many there were; -1: the file cannot be
 * read, which was reported too.
 */
int ob_config_read(const struct ob_config_format *format, const char *file,
	enum ob_err (*set)(void *user, const struct ob_option *option, char *value,
		struct ob_cause *ret_cause),
	void *user, const struct ob_option *options);

#endif
