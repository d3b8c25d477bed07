/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/state_folder.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_NAME "registry"

/* An absolute path of the environment; a relative one is as good as none (XDG specification). */
static const char *path_of(const char *name)
{
	const char *path = getenv(name);

	return path && path[0] == '/' ? path : NULL;
}

/* With every folder above it. Errors are those of the last one. */
static bool folders_make(char *path)
{
	for (char *c = strchr(path + 1, '/'); c; c = strchr(c + 1, '/')) {
		*c = '\0';
		mkdir(path, 0700);
		*c = '/';
	}
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

enum ob_err obl_state_registry(char *ret_url, size_t size, struct ob_cause *ret_cause)
{
	const char *unit = path_of("STATE_DIRECTORY"), *xdg = path_of("XDG_STATE_HOME");
	const char *home = path_of("HOME");
	char folder[PATH_MAX];
	int n;

	/* A unit may have several, with colons. */
	if (unit)
		n = snprintf(folder, sizeof folder, "%.*s", (int)strcspn(unit, ":"), unit);
	else if (xdg || home)
		n = snprintf(folder, sizeof folder, "%s%s/outboard-balancer", xdg ? xdg : home,
			xdg ? "" : "/.local/state");
	else
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"say where the reservations are stored (--registry static:FILE, etcd:URLS "
			"or "
			"memory): the environment names no folder for it (STATE_DIRECTORY, "
			"XDG_STATE_HOME or HOME)");
	if (n >= (int)sizeof folder || (size_t)n + sizeof "static:/" FILE_NAME > size)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"the folder for the reservations has too long a name: use --registry");
	if (!unit && !folders_make(folder))
		return ob_cause_set_system(ret_cause, OB_ERR_IO, errno,
			"the folder for the reservations, %.180s, cannot be made; name another "
			"place with --registry",
			folder);
	snprintf(ret_url, size, "static:%s/" FILE_NAME, folder);
	return OB_ERR_NONE;
}
