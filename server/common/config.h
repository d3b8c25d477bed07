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

#include <stdbool.h>
#include <stddef.h>

#define OBS_CONFIG_ERRORS_MAX 100 /* reported; then reading stops */

/*
 * Calls set for each key. The callee keeps value (allocated, never freed: options live as long as
 * the process). set returns false, with what the key takes in ret_why. names: all keys,
 * NULL-terminated, for "did you mean". Errors go to stderr. Returns how many there were; -1: the
 * file cannot be read, which was reported too.
 */
int obs_config_read(const char *file,
	bool (*set)(void *user, const char *key, char *value, char *ret_why, size_t size),
	void *user, const char *const *names);

#endif
