/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/advertise.h"

#include <stdio.h>
#include <string.h>

static bool everywhere(const char *url)
{
	return strstr(url, "://0.0.0.0:") || strstr(url, "://[::]:");
}

static bool is_path(const char *url)
{
	return strncmp(url, "unix:", 5) == 0 || strncmp(url, "shm:", 4) == 0;
}

static enum ob_err nothing_to_advertise(const struct obs_super *super, struct ob_cause *ret_cause)
{
	for (size_t i = 0; i < super->n_listeners; i++)
		if (!is_path(super->listeners[i].url))
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"--pool: clients on other machines cannot be sent to %.100s, which "
				"only this machine reaches, and --pool names a balancer by an "
				"address that is not a loopback one; give an address that others "
				"reach with --listen or --advertise",
				super->listeners[i].url);
	return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
		"--pool: the server listens on no tcp:// or tls:// address; add one with --listen, "
		"or name one with --advertise");
}

static bool any_reachable(const struct obs_super *super)
{
	bool any = false;

	for (size_t i = 0; i < super->n_listeners; i++)
		any |= super->listeners[i].reachable;
	return any;
}

enum ob_err obs_advertise_find(struct obs_super *super, struct ob_cause *ret_cause)
{
	char *to = super->membership.advertised;
	size_t size = sizeof super->membership.advertised, n = 0;
	uint32_t count = 0;
	bool loopback = super->membership.balancers_here && !any_reachable(super);

	if (super->options->advertise) {
		snprintf(to, size, "%s", super->options->advertise);
		for (char *c = to; *c; c++)
			*c = *c == ',' ? ' ' : *c;
		return OB_ERR_NONE;
	}
	for (int secure = 1; secure >= 0; secure--)
		for (size_t i = 0; i < super->n_listeners; i++) {
			const struct obs_listener *l = &super->listeners[i];

			if (l->secure != secure || is_path(l->url) || count == OBP_POOL_URLS_MAX ||
				!(l->reachable || loopback))
				continue;
			if (everywhere(l->url))
				return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
					"--pool: clients cannot be sent to %.100s; name the "
					"server's address with --advertise, for example "
					"--advertise %s://%.60s:14800",
					l->url, secure ? "tls" : "tcp",
					super->membership.page->server);
			n += (size_t)snprintf(to + n, size - n, "%s%s", n ? " " : "", l->url);
			count++;
		}
	return count ? OB_ERR_NONE : nothing_to_advertise(super, ret_cause);
}
