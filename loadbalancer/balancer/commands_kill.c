/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Ending sessions: orders to their servers, and the answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadbalancer/balancer/commands_inside.h"
#include "loadbalancer/balancer/events.h"
#include "loadbalancer/balancer/moves.h"

static const uint8_t none[OBP_RESERVATION_BYTES];

static void kill_send(struct obl_command *command, struct obl_member *member,
	const uint8_t id[OBP_RESERVATION_BYTES])
{
	char text[OBP_POOL_TEXT_MAX];

	snprintf(text, sizeof text, "by %s", command->who);
	if (command->n_asked < OBL_KILL_ASKED_MAX &&
		obl_member_order(member, command->kind, id, command->number, text)) {
		struct obl_asked *asked = &command->asked[command->n_asked++];

		asked->incarnation = member->incarnation;
		memcpy(asked->id, id, sizeof asked->id);
	}
}

/* Orders the end of one reservation at its servers. */
static void reservation_end(struct obl_core *core, struct obl_command *command, const uint8_t *id)
{
	const struct obl_item *item = obl_mirror_reservation(&core->mirror, id), *ledger;

	for (uint32_t i = 0; item && i < item->value.reservation->n_parts; i++) {
		const struct obl_holding *part = &item->value.reservation->parts[i];
		struct obl_member *member = obl_member_find(core, part->server);

		ledger = obl_mirror_find(&core->mirror, OBL_ITEM_LEDGER, part->server);
		if (member && member->incarnation == part->incarnation)
			kill_send(command, member, id);
		else if (!member && ledger &&
			ledger->value.ledger->incarnation == part->incarnation)
			snprintf(command->away, sizeof command->away, "%s", part->server);
	}
}

/* The new place first: the program would be started there when it ends. NULL: orders were sent. */
static const char *kill_all(struct obl_core *core, struct obl_command *command)
{
	for (uint32_t i = command->n_chain; i > 0; i--)
		reservation_end(core, command, command->chain[i - 1]);
	return command->n_asked ? NULL
				: "its server is not connected to this balancer; ask another";
}

/*
 * NULL: orders were sent, or will be. The new place is marked also if the old one has ended: its
 * client may not have asked for the second time.
 */
static const char *kill_reservation(struct obl_core *core, struct obl_command *command)
{
	const struct obl_item *item =
		obl_mirror_find(&core->mirror, OBL_ITEM_RESERVATION, command->target);
	const struct obl_reservation *r = item ? item->value.reservation : NULL, *old = r;

	if (!r)
		return "there is no such reservation";
	for (uint32_t n = 0; n < OBL_KILL_CHAIN_MAX / 2 && old; n++) {
		r = old;
		old = obl_predecessor(core, r);
	}
	for (; r && command->n_chain < OBL_KILL_CHAIN_MAX; r = obl_successor(core, r)) {
		memcpy(command->chain[command->n_chain++], r->id, sizeof r->id);
		command->mark = command->n_chain > 1 || (r->from[0] && !obl_in_use(core, r));
	}
	command->kind = OBP_POOL_ORDER_KILL;
	command->number = ++core->kills;
	return command->mark ? NULL : kill_all(core, command);
}

static const char *kill_session(struct obl_core *core, struct obl_command *command)
{
	char *end;
	uint64_t number = strtoull(command->target, &end, 16);

	if (!*command->target || *end)
		return "name a reservation (32 hexadecimal digits) or a session by its number";
	command->kind = OBP_POOL_ORDER_KILL_SESSION;
	command->number = number;
	for (struct obl_member *m = core->members; m; m = m->next)
		for (uint32_t i = 0; i < m->load.n_sessions; i++)
			if (m->load.listed[i].id == number)
				kill_send(command, m, none);
	return command->n_asked ? NULL : "there is no such session on a server of this balancer";
}

bool obl_command_kill(struct obl_core *core, struct obl_command *command, const char **ret_wrong)
{
	const char *wrong = strlen(command->target) == OBL_ID_TEXT - 1
		? kill_reservation(core, command)
		: kill_session(core, command);

	if (wrong)
		*ret_wrong = wrong;
	return !wrong;
}

/* The place of its order in c->asked; -1: it is not an answer to one of this command's. */
static int answer_of(const struct obl_command *c, const struct obl_member *member,
	const struct obp_pool_obeyed *obeyed)
{
	if (c->verb != OBL_VERB_KILL || c->kind != obeyed->kind || c->number != obeyed->number)
		return -1;
	for (uint32_t i = 0; i < c->n_asked; i++)
		if (c->asked[i].incarnation == member->incarnation &&
			memcmp(c->asked[i].id, obeyed->id, sizeof obeyed->id) == 0)
			return (int)i;
	return -1;
}

/* A session is on one server; a reservation must be ended on each of its servers. */
static void kill_finish(const struct obl_member *member, struct obl_command *c)
{
	char text[OBP_POOL_TEXT_MAX];

	if (c->kind == OBP_POOL_ORDER_KILL && c->failed) {
		obl_command_finish(member->core, c, OBP_POOL_LATER,
			"a server has no room to remember the order; try again");
		return;
	}
	if (c->done)
		obl_event_add(member->core, "killed", member->name, "%s, by %s", c->target, c->who);
	if (c->away[0]) {
		snprintf(text, sizeof text,
			"server %s is not connected to this balancer and was not told; ask another",
			c->away);
		obl_command_finish(member->core, c, OBP_POOL_LATER, text);
		return;
	}
	obl_command_finish(member->core, c, c->done ? 0 : OBP_POOL_INVALID,
		c->done ? "ended" : "the server has no such session");
}

void obl_commands_obeyed(struct obl_member *member, const struct obp_pool_obeyed *obeyed)
{
	struct obl_command *next;

	for (struct obl_command *c = member->core->commands; c; c = next) {
		int at = answer_of(c, member, obeyed);

		next = c->next;
		if (at < 0)
			continue;
		c->asked[at] = c->asked[--c->n_asked];
		c->done |= obeyed->result != 0;
		c->failed |= obeyed->result == 0;
		if (!c->n_asked)
			kill_finish(member, c);
	}
}

void obl_command_kill_marked(struct obl_core *core, struct obl_command *command)
{
	const char *wrong = kill_all(core, command);

	command->marked = true;
	if (wrong)
		obl_command_finish(core, command, OBP_POOL_INVALID, wrong);
}
