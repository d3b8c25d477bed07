/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/config.h"

#include <stddef.h>

static const char *const sections[] = { "server", "limits", NULL };
static const struct ob_config_format format = { "outboard-server", sections };

int obs_config_read(const char *file,
	enum ob_err (*set)(void *user, const struct ob_option *option, char *value,
		struct ob_cause *ret_cause),
	void *user, const struct ob_option *options)
{
	return ob_config_read(&format, file, set, user, options);
}
