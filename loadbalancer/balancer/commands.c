/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "loadbalancer/balancer/events.h"
#include "loadbalancer/balancer/ledger.h"
#include "loadbalancer/balancer/moves.h"
#include "loadbalancer/balancer/tenants.h"
#include "loadbalancer/balancer/work.h"

enum verb { CORDON, UNCORDON, DRAIN, KILL, QUOTA, FORGET, MOVE, VERBS };

static const char *const verbs[VERBS] = { "cordon", "uncordon", "drain", "kill", "quota", "forget",
	"move" };

/* An order that is not answered yet. */
struct asked {
	uint64_t incarnation; /* of its server */
	uint8_t id[OBP_RESERVATION_BYTES];
};

/*
 * A program that is being moved has a reservation at its new place, and one at the old place. If the
 * old one's server is away when it is moved again, there are more.
 */
#define CHAIN_MAX 8u
#define ASKED_MAX (OBP_POOL_PARTS_MAX + CHAIN_MAX)

struct obl_command {
	struct obl_command *next;
	struct obl_link *link; /* NULL: the operator has gone, or `told` is called */
	void (*told)(void *user, uint32_t code, const char *text);
	void *told_user;
	enum verb verb;
	char target[OBP_POOL_NAME_MAX], who[OBL_WHO_MAX];
	struct obl_quota quota; /* QUOTA */
	bool no_quota;          /* QUOTA: it is removed */
	uint64_t grace_ms;      /* DRAIN */
	/* MOVE: the server that was named, "": none; the one that was chosen */
	char wanted[OBP_POOL_NAME_MAX], to[OBP_POOL_NAME_MAX];
	uint64_t deadline;
	bool making; /* its transaction is under way */
	/* KILL: the order; who has not answered; what the others have said */
	enum obp_pool_order_kind kind;
	uint8_t chain[CHAIN_MAX][OBP_RESERVATION_BYTES]; /* the reservations, the newest last */
	uint32_t n_chain;
	bool mark, marked;            /* the newest is to be marked first; it is */
	char away[OBP_POOL_NAME_MAX]; /* a server of theirs that is not connected here; "": none */
	uint64_t number;
	struct asked asked[ASKED_MAX];
	uint32_t n_asked;
	bool done, failed;
};

/* ---- answers ---- */

static void answer(struct obl_link *link, enum obp_pool_refusal code, const char *text)
{
	static struct obp_pool_message message;

	message.type = OBP_POOL_DONE;
	message.u.refused = (struct obp_pool_refused){ .code = code };
	snprintf(message.u.refused.text, sizeof message.u.refused.text, "%s", text);
	obl_link_send(link, &message);
}

static void finish(
	struct obl_core *core, struct obl_command *command, uint32_t code, const char *text)
{
	struct obl_command **at = &core->commands;

	if (command->told)
		command->told(command->told_user, code, text);
	else if (command->link)
		answer(command->link, code, text);
	while (*at != command)
		at = &(*at)->next;
	*at = command->next;
	free(command);
}

void obl_commands_free(struct obl_core *core)
{
	while (core->commands)
		finish(core, core->commands, OBP_POOL_LATER, "this balancer stops");
}

void obl_commands_link_gone(struct obl_core *core, const struct obl_link *link)
{
	for (struct obl_command *c = core->commands; c; c = c->next)
		if (c->link == link)
			c->link = NULL;
}

/* ---- ending sessions ---- */

static const uint8_t none[OBP_RESERVATION_BYTES];

static void kill_send(struct obl_command *command, struct obl_member *member,
	const uint8_t id[OBP_RESERVATION_BYTES])
{
	char text[OBP_POOL_TEXT_MAX];

	snprintf(text, sizeof text, "by %s", command->who);
	if (command->n_asked < ASKED_MAX &&
		obl_member_order(member, command->kind, id, command->number, text)) {
		struct asked *asked = &command->asked[command->n_asked++];

		asked->incarnation = member->incarnation;
		memcpy(asked->id, id, sizeof asked->id);
	}
}

/* Orders the end of one reservation at its servers. */
static void reservation_end(struct obl_core *core, struct obl_command *command, const uint8_t *id)
{
	const struct obl_item *item, *ledger;
	char name[OBL_ID_TEXT];

	obl_id_print(id, name);
	item = obl_mirror_find(&core->mirror, OBL_ITEM_RESERVATION, name);
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
	for (uint32_t n = 0; n < CHAIN_MAX / 2 && old; n++) {
		r = old;
		old = obl_predecessor(core, r);
	}
	for (; r && command->n_chain < CHAIN_MAX; r = obl_successor(core, r)) {
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

/* The place of its order in c->asked; -1: it is not an answer to one of this command's. */
static int answer_of(const struct obl_command *c, const struct obl_member *member,
	const struct obp_pool_obeyed *obeyed)
{
	if (c->verb != KILL || c->kind != obeyed->kind || c->number != obeyed->number)
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
		finish(member->core, c, OBP_POOL_LATER,
			"a server has no room to remember the order; try again");
		return;
	}
	if (c->done)
		obl_event_add(member->core, "killed", member->name, "%s, by %s", c->target, c->who);
	if (c->away[0]) {
		snprintf(text, sizeof text,
			"server %s is not connected to this balancer and was not told; ask another",
			c->away);
		finish(member->core, c, OBP_POOL_LATER, text);
		return;
	}
	finish(member->core, c, c->done ? 0 : OBP_POOL_INVALID,
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

/* ---- transactions ---- */

static void operator_plan(
	struct obl_core *core, const struct obl_command *command, struct obl_plan *plan, char *key)
{
	struct obl_operator state = { .cordoned = true,
		.draining = command->verb == DRAIN,
		.since = obl_time_ms() / 1000,
		.grace_ms = command->grace_ms };

	obl_key_print(OBL_ITEM_OPERATOR, command->target, key);
	snprintf(state.by, sizeof state.by, "%s", command->who);
	if (command->verb == UNCORDON)
		obl_plan_delete(plan, &core->mirror, key);
	else
		obl_plan_put(plan, &core->mirror, key, obl_operator_text(&state), false);
}

/* The usage is counted from now on: without a quota it may not have been. */
static void quota_plan(
	struct obl_core *core, const struct obl_command *command, struct obl_plan *plan, char *key)
{
	struct obl_usage usage = obl_tenant_usage(core, command->target);

	obl_key_print(OBL_ITEM_TENANT, command->target, key);
	if (!command->no_quota && !obl_mirror_get(&core->mirror, key))
		obl_plan_put(plan, &core->mirror, key, obl_usage_text(&usage), false);
	obl_key_print(OBL_ITEM_QUOTA, command->target, key);
	if (command->no_quota)
		obl_plan_delete(plan, &core->mirror, key);
	else
		obl_plan_put(plan, &core->mirror, key, obl_limits_text(&command->quota), false);
}

/*
 * The server's ledger becomes one without an incarnation, so that all parts on it are credited as
 * those of a server that was restarted; the next start of the server begins with it.
 */
static void forget_plan(
	struct obl_core *core, const struct obl_command *command, struct obl_plan *plan, char *key)
{
	const struct obl_item *ledger =
		obl_mirror_find(&core->mirror, OBL_ITEM_LEDGER, command->target);
	struct obl_ledger book;

	if (ledger) {
		book = *ledger->value.ledger;
		book.incarnation = 0;
		book.fence++;
		for (uint32_t i = 0; i < book.n_devices; i++) {
			struct obl_ledger_device *d = &book.devices[i];

			d->reserved = d->share = d->sharers = 0;
			d->exclusive = false;
		}
		obl_key_print(OBL_ITEM_LEDGER, command->target, key);
		obl_plan_put(plan, &core->mirror, key, obl_ledger_text(&book), false);
	}
	obl_key_print(OBL_ITEM_OPERATOR, command->target, key);
	obl_plan_delete_plainly(plan, key);
	obl_key_print(OBL_ITEM_SERVER, command->target, key);
	obl_plan_delete(plan, &core->mirror, key);
}

static void move_made(struct obl_core *core, struct obl_command *command)
{
	char text[2 * OBP_POOL_NAME_MAX], who[OBL_WHO_MAX + 4];

	snprintf(who, sizeof who, "by %s", command->who);
	obl_move_note(core, command->target, command->to, who);
	snprintf(text, sizeof text, "it is offered a place on %s", command->to);
	core->asks_changed = true;
	finish(core, command, 0, text);
}

/* Its client knows now that the program is not to be started at its new place. */
static void kill_marked(struct obl_core *core, struct obl_command *command)
{
	const char *wrong = kill_all(core, command);

	command->marked = true;
	if (wrong)
		finish(core, command, OBP_POOL_INVALID, wrong);
}

static void made(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause)
{
	static const char *const kinds[VERBS] = { "cordoned", "uncordoned", "drained", "killed",
		"quota", "forgotten", "moving" };
	struct obl_command *command = user;
	char text[OBP_POOL_TEXT_MAX];

	command->making = false;
	if (outcome == OBL_STALE)
		return; /* the next turn tries again, with fresh values */
	if (outcome == OBL_FAILED) {
		snprintf(text, sizeof text,
			"it is not known whether it was done, look before you try again: %.900s",
			cause->text);
		finish(core, command, OBP_POOL_LATER, text);
		return;
	}
	if (command->verb == MOVE) {
		move_made(core, command);
		return;
	}
	if (command->verb == KILL) {
		kill_marked(core, command);
		return;
	}
	obl_event_add(core, kinds[command->verb], command->target, "by %s", command->who);
	core->asks_changed = true;
	core->orphans |= command->verb == FORGET;
	for (struct obl_member *m = core->members; m; m = m->next)
		obl_member_tell(m);
	finish(core, command, 0, kinds[command->verb]);
}

/* Puts the transaction together. The errors are obl_move_plan's. */
static enum ob_err plan_of(struct obl_core *core, struct obl_command *command,
	char ret_key[OBL_KEY_MAX], struct ob_cause *ret_cause)
{
	struct obl_plan *plan;

	if (command->verb == MOVE)
		return obl_move_plan(core, command->target, command->wanted, NULL, 0, ret_key,
			command->to, ret_cause);
	plan = obl_work_plan(core);
	if (command->verb == QUOTA)
		quota_plan(core, command, plan, ret_key);
	else if (command->verb == FORGET)
		forget_plan(core, command, plan, ret_key);
	else
		operator_plan(core, command, plan, ret_key);
	return OB_ERR_NONE;
}

static bool needs_transaction(const struct obl_command *c)
{
	return c->verb != KILL || (c->mark && !c->marked);
}

bool obl_commands_start(struct obl_core *core)
{
	struct obl_command *c = core->commands;
	char key[OBL_KEY_MAX];
	struct ob_cause cause;
	enum ob_err err;

	while (c && (!needs_transaction(c) || c->making))
		c = c->next;
	if (!c)
		return false;
	if (c->verb == KILL && !obl_move_kill_plan(core, c->chain[c->n_chain - 1], key)) {
		kill_marked(core, c); /* the new place has ended meanwhile */
		return obl_commands_start(core);
	}
	err = c->verb == KILL ? OB_ERR_NONE : plan_of(core, c, key, &cause);
	if (err) {
		finish(core, c, err == OB_ERR_REFUSED ? OBP_POOL_LATER : OBP_POOL_INVALID,
			cause.text);
		return obl_commands_start(core);
	}
	c->making = obl_work_make(core, key, made, c);
	if (!c->making)
		finish(core, c, OBP_POOL_FAULT, "the balancer has no memory");
	return core->work.busy;
}

void obl_commands_sweep(struct obl_core *core)
{
	uint64_t now = ob_clock_ns();
	struct obl_command *next;

	for (struct obl_command *c = core->commands; c; c = next) {
		next = c->next;
		if (c->making || now < c->deadline)
			continue;
		finish(core, c, OBP_POOL_LATER,
			c->verb == KILL ? "the server has not answered in time"
					: "the pool's registry does not answer");
	}
}

/* ---- the beginning ---- */

static const char *move_read(struct obl_core *core, struct obl_command *command, const char *server)
{
	if (!obl_mirror_find(&core->mirror, OBL_ITEM_RESERVATION, command->target))
		return "there is no such reservation";
	if (*server && !obl_mirror_find(&core->mirror, OBL_ITEM_SERVER, server))
		return "there is no server of this name in the pool";
	snprintf(command->wanted, sizeof command->wanted, "%.63s", server);
	return NULL;
}

/* NULL: the command is good. */
static const char *arguments_read(struct obl_core *core, struct obl_command *command,
	const struct obp_pool_command *message, struct ob_cause *cause)
{
	uint64_t seconds = OBL_DRAIN_DEFAULT_S;
	bool known;

	snprintf(command->target, sizeof command->target, "%s", message->target);
	if (command->verb == KILL)
		return NULL;
	if (command->verb == MOVE)
		return move_read(core, command, message->argument);
	if (!obl_name_valid(message->target))
		return "name a server or a tenant";
	if (command->verb == QUOTA) {
		command->no_quota = !message->argument[0];
		return obl_quota_parse(message->argument, &command->quota, cause) ? cause->text
										  : NULL;
	}
	known = obl_mirror_find(&core->mirror, OBL_ITEM_SERVER, message->target) ||
		obl_mirror_find(&core->mirror, OBL_ITEM_OPERATOR, message->target);
	if (!known)
		return "there is no server of this name in the pool";
	if (command->verb == FORGET && obl_member_anywhere(core, message->target))
		return "the server is connected: stop it first";
	if (command->verb == DRAIN && message->argument[0] &&
		!ob_text_parse_number(message->argument, 0, OBP_POOL_LINGER_MAX_S, &seconds))
		return "the grace time is a number of seconds, at most a day";
	command->grace_ms = seconds * 1000;
	return NULL;
}

/* Operators may do everything; a tenant may end its own reservations. */
static enum ob_err may_command(struct obl_core *core, struct obl_link *link,
	const struct obp_pool_command *message, struct obl_identity *ret,
	struct ob_cause *ret_cause)
{
	enum ob_err err = obl_auth_check(
		core->auth, link->address, message->token, OBL_RIGHT_ADMIN, ret, ret_cause);
	const struct obl_item *item;
	struct ob_cause ignored;

	if (!err || strcmp(message->verb, verbs[KILL]) != 0 || !message->token[0])
		return err;
	item = obl_mirror_find(&core->mirror, OBL_ITEM_RESERVATION, message->target);
	if (item &&
		!obl_auth_check(
			core->auth, link->address, message->token, OBL_RIGHT_ASK, ret, &ignored) &&
		strcmp(ret->tenant, item->value.reservation->tenant) == 0)
		return OB_ERR_NONE;
	return err;
}

static uint32_t count(const struct obl_core *core)
{
	uint32_t n = 0;

	for (const struct obl_command *c = core->commands; c; c = c->next)
		n++;
	return n;
}

/* NULL: no memory, or too many. */
static struct obl_command *command_new(
	struct obl_core *core, enum verb verb, const char *who, struct obl_link *link)
{
	struct obl_command *command =
		count(core) < OBL_COMMANDS_MAX ? calloc(1, sizeof *command) : NULL;
	struct obl_command **last;

	if (!command)
		return NULL;
	command->link = link;
	command->verb = verb;
	command->deadline = ob_clock_ns() + OBL_COMMAND_WAIT_MS * OB_MS;
	snprintf(command->who, sizeof command->who, "%s", who);
	for (last = &core->commands; *last; last = &(*last)->next)
		;
	*last = command;
	return command;
}

static void begin(
	struct obl_core *core, struct obl_command *command, const struct obp_pool_command *message)
{
	struct ob_cause cause;
	const char *wrong = arguments_read(core, command, message, &cause);

	if (!wrong && command->verb == KILL)
		wrong = strlen(command->target) == OBL_ID_TEXT - 1 ? kill_reservation(core, command)
								   : kill_session(core, command);
	if (wrong)
		finish(core, command, OBP_POOL_INVALID, wrong);
	else
		core->wake(core);
}

static enum verb verb_find(const char *name)
{
	unsigned verb = 0;

	while (verb < VERBS && strcmp(name, verbs[verb]) != 0)
		verb++;
	return (enum verb)verb;
}

static const char too_many[] = "too many commands at once; try again";
static const char unknown[] = "this balancer does not know the command; it knows cordon, uncordon, "
			      "drain, kill, quota, forget and move";

void obl_command_run(struct obl_core *core, const struct obp_pool_command *message, const char *who,
	void (*told)(void *user, uint32_t code, const char *text), void *user)
{
	enum verb verb = verb_find(message->verb);
	struct obl_command *command = verb == VERBS ? NULL : command_new(core, verb, who, NULL);

	if (!command) {
		told(user, verb == VERBS ? OBP_POOL_INVALID : OBP_POOL_LATER,
			verb == VERBS ? unknown : too_many);
		return;
	}
	command->told = told;
	command->told_user = user;
	begin(core, command, message);
}

void obl_command(struct obl_core *core, struct obl_link *link, struct obp_pool_command *message)
{
	enum verb verb = verb_find(message->verb);
	struct obl_identity identity;
	struct obl_command *command;
	struct ob_cause cause;
	enum ob_err err = may_command(core, link, message, &identity, &cause);

	explicit_bzero(message->token, sizeof message->token);
	if (err) {
		answer(link, obl_auth_refusal(err), cause.text);
	} else if (verb == VERBS) {
		answer(link, OBP_POOL_INVALID, unknown);
	} else {
		command = command_new(core, verb, identity.who, link);
		if (command)
			begin(core, command, message);
		else
			answer(link, OBP_POOL_LATER, too_many);
	}
}
