/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The configuration file of outboard-server: INI, with one key for each long option, in either of
 * the sections [server] and [limits].
 *
 *     [server]
 *     listen = tcp://0.0.0.0:14800
 *     [limits]
 *     max-memory = 4GiB
 *
 * Every error is reported with file, line and what to write; reading continues, so that one run
 * reports all of them. Only config.c uses libinih. Main thread only.
 */
#ifndef OBS_CONFIG_H
#define OBS_CONFIG_H

#include "base/options.h"

#define OBS_CONFIG_ERRORS_MAX 100 /* reported; then reading stops */

/*
 * Calls set for each key that is the name of an option which may stand in a file. The callee keeps
 * value (allocated, never freed: options live as long as the process); on an error *ret_cause says
 * what the key takes. Errors go to stderr. Returns how many there were; -1: the file cannot be
 * read, which was reported too.
 */
int obs_config_read(const char *file,
	enum ob_err (*set)(void *user, const struct ob_option *option, char *value,
		struct ob_cause *ret_cause),
	void *user, const struct ob_option *options);

#endif
