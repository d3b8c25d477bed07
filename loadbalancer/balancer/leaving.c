/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/leaving.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "loadbalancer/balancer/moves.h"

enum leaving { STAYS, DRAINED, UNWELL };

struct server {
	const char *name;
	enum leaving leaving;
};

struct servers {
	uint32_t n;
	struct server list[2 * OBL_SERVERS_MAX]; /* by name; one may be in it twice */
};

struct candidate {
	const struct obl_reservation *reservation;
	enum leaving leaving;
};

/* ---- servers ---- */

static void server_add(struct servers *servers, const char *name, enum leaving leaving)
{
	if (leaving && servers->n < ob_count(servers->list))
		servers->list[servers->n++] = (struct server){ name, leaving };
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct server *)a)->name, ((const struct server *)b)->name);
}

static void servers_find(const struct obl_core *core, struct servers *ret)
{
	ret->n = 0;
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_OPERATOR); item;
		item = obl_mirror_next(item))
		server_add(ret, item->name, item->value.operated->draining ? DRAINED : STAYS);
	for (const struct obl_member *m = core->members; m; m = m->next)
		server_add(ret, m->name,
			m->load.draining                                     ? DRAINED
				: core->settings->rebalance_s && !m->healthy ? UNWELL
									     : STAYS);
	qsort(ret->list, ret->n, sizeof ret->list[0], by_name);
}

static enum leaving server_leaving(const struct servers *servers, const char *name)
{
	struct server key = { .name = name };
	const struct server *found = bsearch(&key, servers->list, servers->n, sizeof key, by_name);

	return found ? found->leaving : STAYS;
}

/* ---- reservations ---- */

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

static enum leaving may_leave(const struct obl_core *core, const struct servers *servers,
	const struct obl_reservation *r, uint64_t now_s)
{
	enum leaving leaving;

	if (!r->restartable || r->n_parts != 1 || r->granted != 1)
		return STAYS;
	leaving = server_leaving(servers, r->parts[0].server);
	return leaving && !rests(r, leaving, now_s) && !obl_successor(core, r) &&
			obl_in_use(core, r)
		? leaving
		: STAYS;
}

static void add(struct obl_moves *moves, const struct candidate *c)
{
	struct obl_decided *d = &moves->list[moves->n++];

	*d = (struct obl_decided){ .any_device = true };
	obl_id_print(c->reservation->id, d->id);
	snprintf(d->why, sizeof d->why, "because %s is %s", c->reservation->parts[0].server,
		c->leaving == DRAINED ? "drained" : "not well");
}

void obl_leaving_decide(struct obl_core *core, uint64_t now_s)
{
	struct candidate first[OBL_REBALANCE_MOVES_MAX], turn[OBL_REBALANCE_MOVES_MAX];
	struct obl_moves *moves = &core->moves;
	uint32_t n = 0, n_turn = 0, n_first;
	static struct servers servers;

	servers_find(core, &servers);
	if (!servers.n)
		return;
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION);
		item && n_turn < OBL_REBALANCE_MOVES_MAX; item = obl_mirror_next(item)) {
		struct candidate c = { .reservation = item->value.reservation };

		c.leaving = may_leave(core, &servers, c.reservation, now_s);
		if (!c.leaving)
			continue;
		if (n >= moves->leaving_turn)
			turn[n_turn++] = c;
		else if (n < OBL_REBALANCE_MOVES_MAX)
			first[n] = c;
		n++;
	}
	/* the turn begins again after the last one */
	n_first = ob_min(ob_min(n - n_turn, OBL_REBALANCE_MOVES_MAX), moves->leaving_turn);
	for (uint32_t i = 0; i < n_turn && moves->n < OBL_REBALANCE_MOVES_MAX; i++)
		add(moves, &turn[i]);
	moves->leaving_turn = n_turn == OBL_REBALANCE_MOVES_MAX ? n : 0;
	for (uint32_t i = 0; i < n_first && moves->n < OBL_REBALANCE_MOVES_MAX; i++)
		add(moves, &first[i]);
}
