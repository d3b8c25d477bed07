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
	uint64_t seen_ns; /* when the reservation was known last, or the registry was not */
	uint64_t read_ns; /* when the registry could be read last */
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
	gone->link->follows = false;
	free(gone);
}

/* How many connections of the address follow; NULL: of all. */
static uint32_t count(const struct obl_core *core, const struct obl_address *address)
{
	uint32_t n = 0;

	for (const struct obl_follow *f = core->follows; f; f = f->next)
		n += !address || f->link->address == address;
	return n;
}

/* Half of the connections is for others, at least one for a follower. */
static bool room_for(const struct obl_core *core, const struct obl_address *address)
{
	const struct obl_gate_options *gate = &core->settings->gate;

	return count(core, NULL) < (gate->connections + 1) / 2 &&
		(address->local || count(core, address) < (gate->address_connections + 1) / 2);
}

/* Another connection of the tenant that follows the reservation: NULL: none. */
static struct obl_follow *same_find(const struct obl_core *core, const char *id, const char *tenant)
{
	struct obl_follow *f = core->follows;

	while (f && (strcmp(f->id, id) != 0 || strcmp(f->tenant, tenant) != 0))
		f = f->next;
	return f;
}

/* The follower is told, and waits for nothing more. */
static void refuse(
	struct obl_core *core, struct obl_link *link, enum obp_pool_refusal code, const char *text)
{
	obl_follows_link_gone(core, link);
	obl_link_refuse(link, code, code == OBP_POOL_LATER ? OBL_FOLLOW_RETRY_MS : 0, text);
	obl_link_rest(link);
}

/* The one of before is a connection that its client has lost, or a second client. */
static void replace(struct obl_core *core, const char *id, const char *tenant)
{
	struct obl_follow *old = same_find(core, id, tenant);

	if (old)
		refuse(core, old->link, OBP_POOL_LATER,
			"another connection follows this reservation now");
}

void obl_follow(struct obl_core *core, struct obl_link *link, struct obp_pool_follow *message)
{
	struct obl_identity identity;
	struct obl_follow *follow;
	char id[OBL_ID_TEXT];
	struct ob_cause cause;
	enum ob_err err = obl_auth_check(
		core->auth, link->address, message->token, OBL_RIGHT_ASK, &identity, &cause);

	explicit_bzero(message->token, sizeof message->token);
	if (err) {
		obl_auth_refuse(link, err, &cause);
		return;
	}
	obl_follows_link_gone(core, link);
	obl_id_print(message->id, id);
	replace(core, id, identity.tenant);
	if (!room_for(core, link->address)) {
		refuse(core, link, OBP_POOL_LATER,
			"as many programs follow their reservations at this balancer as half of "
			"--connections, or of --address-connections, allows; ask another one");
		return;
	}
	follow = calloc(1, sizeof *follow);
	if (!follow) {
		obl_link_refuse(link, OBP_POOL_FAULT, 0, "the balancer has no memory");
		return;
	}
	follow->link = link;
	follow->seen_ns = follow->read_ns = ob_clock_ns();
	follow->fixed = message->fixed;
	snprintf(follow->id, sizeof follow->id, "%s", id);
	snprintf(follow->tenant, sizeof follow->tenant, "%s", identity.tenant);
	follow->next = core->follows;
	core->follows = follow;
	link->patient = link->follows = true;
	core->wake(core);
}

static void told(struct obl_core *core, struct obl_link *link, const struct obl_reservation *r,
	const struct obl_reservation *successor)
{
	static struct obp_pool_message message;
	struct obp_pool_moved *moved = &message.u.moved;
	const struct obl_item *item = obl_mirror_reservation(&core->mirror, successor->id);

	message.type = OBP_POOL_MOVED;
	*moved = (struct obp_pool_moved){ .id = { 0 } };
	memcpy(moved->id, r->id, sizeof moved->id);
	memcpy(moved->successor, successor->id, sizeof moved->successor);
	snprintf(moved->server, sizeof moved->server, "%s", successor->parts[0].server);
	snprintf(moved->text, sizeof moved->text, "the pool moves it from %s to %s",
		r->parts[0].server, successor->parts[0].server);
	if (item)
		moved->left_s = OBP_POOL_TICKET_S -
			(uint32_t)ob_min(obl_offer_age_s(core, item), OBP_POOL_TICKET_S);
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

/* Removes the follower if it is answered. */
static void follow_look(struct obl_core *core, struct obl_follow *follow, uint64_t now)
{
	const struct obl_item *item =
		obl_mirror_find(&core->mirror, OBL_ITEM_RESERVATION, follow->id);
	const struct obl_reservation *r = item ? item->value.reservation : NULL, *successor;
	struct obl_link *link = follow->link;

	follow->read_ns = now;
	if (!r && now < follow->seen_ns + OBL_FOLLOW_UNKNOWN_S * OB_SECOND)
		return;
	if (!r || strcmp(r->tenant, follow->tenant) != 0) {
		refuse(core, link, OBP_POOL_INVALID, "there is no such reservation");
		return;
	}
	if (!r->restartable) {
		refuse(core, link, OBP_POOL_INVALID,
			"it cannot be moved: its program was not run with --restartable, has used "
			"up its --restarts, or is ending");
		return;
	}
	follow->seen_ns = now;
	successor = obl_successor(core, r);
	if (successor && successor->killed) {
		refuse(core, link, OBP_POOL_INVALID, OBL_KILLED_TEXT);
		return;
	}
	if (follow->fixed || !successor)
		return;
	obl_follows_link_gone(core, link);
	told(core, link, r, successor);
	obl_link_rest(link);
}

void obl_follows_sweep(struct obl_core *core, uint64_t now_ns)
{
	bool known = core->usable && core->synced;
	struct obl_follow *next;

	for (struct obl_follow *f = core->follows; f; f = next) {
		next = f->next;
		if (known) {
			follow_look(core, f, now_ns);
			continue;
		}
		f->seen_ns = now_ns;
		if (now_ns >= f->read_ns + OBL_FOLLOW_BLIND_S * OB_SECOND)
			refuse(core, f->link, OBP_POOL_LATER,
				"this balancer has lost the registry and does not hear of moves; "
				"ask another one");
	}
}
