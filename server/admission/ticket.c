/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/admission/ticket.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "protocol/load.h"

/* From the balancer's clock, as it was when the key was entered; 0: not known. */
static int64_t ahead_of(const struct obs_pool_page *page, const uint8_t *sealed, size_t size)
{
	uint32_t n = atomic_load_explicit(&page->n_keys, memory_order_acquire);
	struct ob_cause cause;
	const uint8_t *text;
	size_t length;

	for (uint32_t i = 0; i < ob_min(n, OBS_POOL_KEYS_MAX); i++)
		if (!obt_sign_open(&page->keys[i], 1, sealed, size, &text, &length, &cause))
			return atomic_load_explicit(&page->ahead_s[i], memory_order_relaxed);
	return 0;
}

static enum ob_err future_refuse(const struct obp_ticket *ticket, uint64_t now_s, int64_t ahead_s,
	struct ob_cause *ret_cause)
{
	unsigned long long by = ticket->issued - now_s;

	if (ahead_s > (int64_t)OBP_TICKET_SKEW_S)
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"the ticket is from %llu s in the future: the balancer's clock is %lld s "
			"ahead of this server's; set both by the network (NTP)",
			by, (long long)ahead_s);
	return ob_cause_set(ret_cause, OB_ERR_DENIED,
		"the ticket is from %llu s in the future: this server's clock is behind the "
		"balancer's; set both by the network (NTP)",
		by);
}

enum ob_err obs_ticket_check(const struct obs_pool_page *page, const uint8_t *sealed, size_t size,
	uint64_t now_s, struct obp_ticket *ret, int64_t *ret_ahead_s,
	enum obs_ticket_refusal *ret_why, struct ob_cause *ret_cause)
{
	uint32_t n = atomic_load_explicit(&page->n_keys, memory_order_acquire);
	struct obp_ticket ticket;
	const uint8_t *text;
	int64_t ahead;
	size_t length;
	enum ob_err err;

	*ret_why = OBS_TICKET_FORM;
	if (!page->on)
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"this server does not belong to a pool and takes no tickets; unset "
			"OUTBOARD_TICKET, or start the server with --pool");
	err = obt_sign_open(
		page->keys, ob_min(n, OBS_POOL_KEYS_MAX), sealed, size, &text, &length, ret_cause);
	if (err == OB_ERR_DENIED)
		*ret_why = OBS_TICKET_SIGNATURE;
	if (err)
		return err;
	if (obp_ticket_decode(text, length, &ticket))
		return ob_cause_set(ret_cause, OB_ERR_PROTOCOL,
			"the ticket cannot be read: balancer and server versions may differ");
	*ret_why = OBS_TICKET_SERVER;
	if (strcmp(ticket.server, page->server) != 0)
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"the ticket is for server %s, and this is %s", ticket.server, page->server);
	*ret_why = OBS_TICKET_INCARNATION;
	if (ticket.incarnation != page->incarnation)
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"the server was restarted since the ticket was made; " OBP_POOL_ASK_AGAIN);
	*ret_why = OBS_TICKET_FUTURE;
	ahead = ahead_of(page, sealed, size);
	if (ticket.issued > now_s && ticket.issued - now_s > OBP_TICKET_SKEW_S)
		return future_refuse(&ticket, now_s, ahead, ret_cause);
	*ret = ticket;
	*ret_ahead_s = ahead;
	return OB_ERR_NONE;
}

static void lower(uint64_t *value, uint64_t ticket)
{
	if (ticket)
		*value = *value ? ob_min(*value, ticket) : ticket;
}

void obs_ticket_identify(const struct obp_ticket *ticket, struct obs_identity *identity)
{
	uint64_t *allow = identity->allow.value;

	snprintf(identity->who, sizeof identity->who, "tenant %s", ticket->tenant);
	identity->proved = true;
	identity->scope = OBT_SCOPE_USE;
	lower(&allow[OBT_ALLOW_MEMORY], ticket->memory);
	lower(&allow[OBT_ALLOW_SHARE], ob_min(ticket->share, OBP_SHARE_ALL));
	lower(&allow[OBT_ALLOW_PRIORITY], ticket->priority);
}
