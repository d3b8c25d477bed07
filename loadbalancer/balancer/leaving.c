/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/leaving.h"

#include <stdio.h>
#include <string.h>

#include "loadbalancer/balancer/moves.h"
#include "loadbalancer/balancer/rounds.h"

enum leaving { STAYS, DRAINED, UNWELL };

static enum leaving member_leaving(const struct obl_core *core, const struct obl_member *member)
{
	if (member->load.draining)
		return DRAINED;
	return core->settings->rebalance_s && !member->healthy ? UNWELL : STAYS;
}

static enum leaving server_leaving(const struct obl_core *core, const char *name)
{
	const struct obl_item *item = obl_mirror_find(&core->mirror, OBL_ITEM_OPERATOR, name);
	const struct obl_member *member = obl_member_find(core, name);

	if (item && item->value.operated->draining)
		return DRAINED;
	return member ? member_leaving(core, member) : STAYS;
}

static bool any(const struct obl_core *core)
{
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_OPERATOR); item;
		item = obl_mirror_next(item))
		if (item->value.operated->draining)
			return true;
	for (const struct obl_member *m = core->members; m; m = m->next)
		if (member_leaving(core, m))
			return true;
	return false;
}

/* An operator's drain does not wait until a program has rested from its last move. */
static bool rests(const struct obl_reservation *r, enum leaving leaving, uint64_t now_s)
{
	static const uint8_t none[OBP_RESERVATION_BYTES];
	uint64_t moved = obl_moved_s(r, now_s), rest = 0;

	if (memcmp(r->successor, none, sizeof none) != 0)
		rest = OBL_LEAVING_REST_S;
	else if (leaving == UNWELL)
		rest = obl_rebalance_rest_ms(r->moves) / 1000;
	return moved && now_s < moved + rest;
}

static enum leaving may_leave(
	const struct obl_core *core, const struct obl_reservation *r, uint64_t now_s)
{
	enum leaving leaving;

	if (!r->restartable || r->n_parts != 1 || r->granted != 1)
		return STAYS;
	leaving = server_leaving(core, r->parts[0].server);
	return leaving && !rests(r, leaving, now_s) && !obl_successor(core, r) &&
			obl_in_use(core, r)
		? leaving
		: STAYS;
}

static void add(
	struct obl_moves *moves, const struct obl_reservation *r, enum leaving leaving)
{
	struct obl_decided *d = &moves->list[moves->n++];

	*d = (struct obl_decided){ .any_device = true };
	obl_id_print(r->id, d->id);
	snprintf(d->why, sizeof d->why, "because %s is %s", r->parts[0].server,
		leaving == DRAINED ? "drained" : "not well");
}

void obl_leaving_decide(struct obl_core *core, uint64_t now_s)
{
	struct obl_moves *moves = &core->moves;
	uint32_t n = 0, skip;

	if (!any(core))
		return;
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item))
		n += may_leave(core, item->value.reservation, now_s) != STAYS;
	skip = n ? moves->leaving_turn % n : 0;
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION);
		item && moves->n < OBL_REBALANCE_MOVES_MAX; item = obl_mirror_next(item)) {
		enum leaving leaving = may_leave(core, item->value.reservation, now_s);

		if (leaving && skip)
			skip--;
		else if (leaving)
			add(moves, item->value.reservation, leaving);
	}
	moves->leaving_turn = n > OBL_REBALANCE_MOVES_MAX
		? moves->leaving_turn % n + OBL_REBALANCE_MOVES_MAX
		: 0;
}
