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
 * base/config_file.h says how it is read. Main thread only.
 */
#ifndef OBS_CONFIG_H
#define OBS_CONFIG_H

#include "base/config_file.h"

/* As ob_config_read. */
int obs_config_read(const char *file,
	enum ob_err (*set)(void *user, const struct ob_option *option, char *value,
		struct ob_cause *ret_cause),
	void *user, const struct ob_option *options);

#endif
