/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/follows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "loadbalancer/balancer/moves.h"

struct obl_follow {
	struct obl_follow *next;
	struct obl_link *link;
	char id[OBL_ID_TEXT], tenant[OBP_POOL_NAME_MAX];
	bool fixed;       /* its program cannot be started again */
	uint64_t seen_ns; /* when the reservation was known last */
};

void obl_follows_link_gone(struct obl_core *core, const struct obl_link *link)
{
	struct obl_follow **at = &core->follows, *gone;

	while (*at && (*at)->link != link)
		at = &(*at)->next;
	gone = *at;
	if (!gone)
		return;
	*at = gone->next;
	free(gone);
}

void obl_follow(struct obl_core *core, struct obl_link *link, struct obp_pool_follow *message)
{
	struct obl_identity identity;
	struct obl_follow *follow;
	struct ob_cause cause;
	enum ob_err err = obl_auth_check(
		core->auth, link->address, message->token, OBL_RIGHT_ASK, &identity, &cause);

	explicit_bzero(message->token, sizeof message->token);
	if (err) {
		obl_link_refuse(link, OBP_POOL_DENIED, 0, cause.text);
		return;
	}
	obl_follows_link_gone(core, link);
	follow = calloc(1, sizeof *follow);
	if (!follow) {
		obl_link_refuse(link, OBP_POOL_FAULT, 0, "the balancer has no memory");
		return;
	}
	follow->link = link;
	follow->seen_ns = ob_clock_ns();
	follow->fixed = message->fixed;
	obl_id_print(message->id, follow->id);
	snprintf(follow->tenant, sizeof follow->tenant, "%s", identity.tenant);
	follow->next = core->follows;
	core->follows = follow;
	link->patient = true;
	core->wake(core);
}

static void told(struct obl_link *link, const struct obl_reservation *r,
	const struct obl_reservation *successor)
{
	static struct obp_pool_message message;
	struct obp_pool_moved *moved = &message.u.moved;
	uint64_t now_s = obl_time_ms() / 1000;

	message.type = OBP_POOL_MOVED;
	*moved = (struct obp_pool_moved){ .id = { 0 } };
	memcpy(moved->id, r->id, sizeof moved->id);
	memcpy(moved->successor, successor->id, sizeof moved->successor);
	snprintf(moved->server, sizeof moved->server, "%s", successor->parts[0].server);
	snprintf(moved->text, sizeof moved->text, "the pool moves it from %s to %s",
		r->parts[0].server, successor->parts[0].server);
	moved->left_s = successor->expires > now_s
		? (uint32_t)ob_min(successor->expires - now_s, OBP_POOL_TICKET_S)
		: 0;
	obl_link_send(link, &message);
}

const struct obl_item *obl_follows_fixed(const struct obl_core *core)
{
	for (const struct obl_follow *f = core->follows; f; f = f->next) {
		const struct obl_item *item = f->fixed
			? obl_mirror_find(&core->mirror, OBL_ITEM_RESERVATION, f->id)
			: NULL;

		if (item && item->value.reservation->restartable &&
			strcmp(item->value.reservation->tenant, f->tenant) == 0)
			return item;
	}
	return NULL;
}

/* True: the follower was answered. */
static bool answer(struct obl_core *core, struct obl_follow *follow, uint64_t now)
{
	const struct obl_item *item =
		obl_mirror_find(&core->mirror, OBL_ITEM_RESERVATION, follow->id);
	const struct obl_reservation *r = item ? item->value.reservation : NULL, *successor;

	if (!r && now < follow->seen_ns + OBL_FOLLOW_UNKNOWN_S * OB_SECOND)
		return false;
	if (!r || strcmp(r->tenant, follow->tenant) != 0) {
		obl_link_refuse(follow->link, OBP_POOL_INVALID, 0, "there is no such reservation");
		return true;
	}
	follow->seen_ns = now;
	successor = obl_successor(core, r);
	if (!r->restartable || (successor && successor->killed)) {
		obl_link_refuse(follow->link, OBP_POOL_INVALID, 0,
			r->restartable ? OBL_KILLED_TEXT : "it cannot be moved");
		return true;
	}
	if (follow->fixed || !successor)
		return false;
	told(follow->link, r, successor);
	return true;
}

void obl_follows_sweep(struct obl_core *core)
{
	bool known = core->usable && core->synced;
	uint64_t now = ob_clock_ns();
	struct obl_follow *next;

	for (struct obl_follow *f = core->follows; f; f = next) {
		next = f->next;
		if (!known) {
			f->seen_ns = now;
		} else if (answer(core, f, now)) {
			struct obl_link *link = f->link;

			obl_follows_link_gone(core, link);
			obl_link_rest(link);
		}
	}
}
