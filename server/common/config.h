/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The configuration file of outboard-server: INI, one key for each long option, in a section of its
 * choice of [server] and [limits].
 *
 *     [server]
 *     listen = tcp://0.0.0.0:14800
 *     [limits]
 *     max-memory = 4GiB
 *
 * Every error is told with file, line and remedy; reading goes on behind it, so that one look shows
 * all of them. libinih enters here. Main thread only.
 */
#ifndef OBS_CONFIG_H
#define OBS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#define OBS_CONFIG_ERRORS_MAX 100 /* told; then reading stops */

/*
 * Calls set for each key; value is the caller's to keep (allocated, never freed: options live as
 * long as the process). set returns false with ret_why saying what the key wants. names: all keys,
 * NULL-terminated, for "did you mean". Errors go to stderr. How many there were; -1: the file
 * cannot be read, which was told too.
 */
int obs_config_read(const char *file,
	bool (*set)(void *user, const char *key, char *value, char *ret_why, size_t size),
	void *user, const char *const *names);

#endif
