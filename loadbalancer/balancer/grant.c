/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/grant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(OBP_TICKET_MAX >= OBP_TICKET_BODY_MAX + OBT_SIGN_OVERHEAD, "a ticket has room");

static void ticket_fill(
	const struct obl_reservation *r, const struct obl_holding *part, struct obp_ticket *ret)
{
	*ret = (struct obp_ticket){ .incarnation = part->incarnation,
		.fence = part->fence,
		.issued = r->issued,
		.expires = r->expires,
		.linger_s = r->linger_s,
		.memory = r->exclusive ? 0 : part->memory,
		.share = r->share ? r->share : OBP_SHARE_ALL,
		.priority = r->priority,
		.exclusive = r->exclusive,
		.n_devices = part->n_devices };
	memcpy(ret->reservation, r->id, sizeof ret->reservation);
	snprintf(ret->server, sizeof ret->server, "%s", part->server);
	snprintf(ret->tenant, sizeof ret->tenant, "%s", r->tenant);
	memcpy(ret->devices, part->devices, part->n_devices * sizeof part->devices[0]);
}

static bool part_fill(struct obl_core *core, const struct obl_reservation *r,
	const struct obl_holding *part, struct obp_pool_part *ret)
{
	const struct obl_item *item = obl_mirror_find(&core->mirror, OBL_ITEM_SERVER, part->server);
	const struct obl_known_server *server = item ? item->value.server : NULL;
	struct obp_ticket ticket;
	struct ob_buf body;
	bool good;

	if (!server || server->incarnation != part->incarnation)
		return false;
	snprintf(ret->server, sizeof ret->server, "%s", part->server);
	snprintf(ret->urls, sizeof ret->urls, "%s", server->urls);
	snprintf(ret->pin, sizeof ret->pin, "%s", server->pin);
	ticket_fill(r, part, &ticket);
	ob_buf_init(&body, OBP_TICKET_BODY_MAX);
	good = obp_ticket_encode(&ticket, &body) &&
		obt_sign_seal(core->key, body.data, body.size, ret->ticket);
	ret->ticket_size = (uint32_t)(body.size + OBT_SIGN_OVERHEAD);
	ob_buf_fini(&body);
	return good;
}

bool obl_grant_send(struct obl_core *core, struct obl_link *link,
	const struct obl_reservation *reservation, struct ob_cause *ret_cause)
{
	static struct obp_pool_message message;
	struct obp_pool_grant *grant = &message.u.grant;
	bool good = reservation->n_parts == reservation->granted;

	message.type = OBP_POOL_GRANT;
	*grant = (struct obp_pool_grant){ .n_parts = reservation->n_parts };
	memcpy(grant->id, reservation->id, sizeof grant->id);
	snprintf(grant->tenant, sizeof grant->tenant, "%s", reservation->tenant);
	grant->parts = calloc(reservation->n_parts, sizeof *grant->parts);
	for (uint32_t i = 0; good && grant->parts && i < reservation->n_parts; i++)
		good = part_fill(core, reservation, &reservation->parts[i], &grant->parts[i]);
	if (!grant->parts)
		ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "the balancer has no memory");
	else if (!good)
		ob_cause_set(ret_cause, OB_ERR_NOT_FOUND,
			"the reservation has ended, or its server was restarted: ask again with a "
			"new id");
	good = good && grant->parts;
	if (good) {
		obl_link_send(link, &message);
		link->granted = true;
		memcpy(link->id, reservation->id, sizeof link->id);
	}
	obp_pool_fini(&message);
	return good;
}
