/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Opens a registry by its URL (registry.h). */
#include <string.h>

#include "loadbalancer/registry/etcd.h"
#include "loadbalancer/registry/file.h"
#include "loadbalancer/registry/memory.h"
#include "loadbalancer/registry/registry.h"

/* True: the URL is of this kind; *ret_rest is what follows the colon, "" without one. */
static bool is_kind(const char *url, const char *kind, const char **ret_rest)
{
	size_t n = strlen(kind);

	if (strncmp(url, kind, n) != 0 || (url[n] && url[n] != ':'))
		return false;
	*ret_rest = url[n] ? url + n + 1 : "";
	return true;
}

enum ob_err obl_registry_open(uv_loop_t *loop, const struct obl_registry_options *options,
	const struct obl_watcher *watcher, struct obl_registry **ret, struct ob_cause *ret_cause)
{
	const char *url = options->url ? options->url : "", *rest;

	if (is_kind(url, "memory", &rest))
		return obl_memory_open(loop, rest, watcher, ret, ret_cause);
	if (is_kind(url, "etcd", &rest))
		return obl_etcd_open(loop, rest, options, watcher, ret, ret_cause);
	if (is_kind(url, "static", &rest))
		return obl_file_open(loop, rest, watcher, ret, ret_cause);
	return ob_cause_set(ret_cause, OB_ERR_URL,
		"\"%s\" names no registry: use memory, static:/path/of/file, or "
		"etcd:http://host:2379",
		url);
}
