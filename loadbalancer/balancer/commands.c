/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "loadbalancer/balancer/commands_inside.h"
#include "loadbalancer/balancer/events.h"
#include "loadbalancer/balancer/ledger.h"
#include "loadbalancer/balancer/moves.h"
#include "loadbalancer/balancer/tenants.h"
#include "loadbalancer/balancer/work.h"

static const char *const verbs[OBL_VERBS] = { "cordon", "uncordon", "drain", "kill", "quota",
	"forget", "move" };

/* ---- answers ---- */

static void answer(struct obl_link *link, enum obp_pool_refusal code, const char *text)
{
	static struct obp_pool_message message;

	message.type = OBP_POOL_DONE;
	message.u.refused = (struct obp_pool_refused){ .code = code };
	snprintf(message.u.refused.text, sizeof message.u.refused.text, "%s", text);
	obl_link_send(link, &message);
}

void obl_command_finish(
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
		obl_command_finish(core, core->commands, OBP_POOL_LATER, "this balancer stops");
}

void obl_commands_link_gone(struct obl_core *core, const struct obl_link *link)
{
	for (struct obl_command *c = core->commands; c; c = c->next)
		if (c->link == link)
			c->link = NULL;
}

/* ---- transactions ---- */

static void operator_plan(
	struct obl_core *core, const struct obl_command *command, struct obl_plan *plan, char *key)
{
	struct obl_operator state = { .cordoned = true,
		.draining = command->verb == OBL_VERB_DRAIN,
		.since = obl_time_ms() / 1000,
		.grace_ms = command->grace_ms };

	obl_key_print(OBL_ITEM_OPERATOR, command->target, key);
	snprintf(state.by, sizeof state.by, "%s", command->who);
	if (command->verb == OBL_VERB_UNCORDON)
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
	obl_command_finish(core, command, 0, text);
}

static void made(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause)
{
	static const char *const kinds[OBL_VERBS] = { "cordoned", "uncordoned", "drained", "killed",
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
		obl_command_finish(core, command, OBP_POOL_LATER, text);
		return;
	}
	if (command->verb == OBL_VERB_MOVE) {
		move_made(core, command);
		return;
	}
	if (command->verb == OBL_VERB_KILL) {
		obl_command_kill_marked(core, command);
		return;
	}
	obl_event_add(core, kinds[command->verb], command->target, "by %s", command->who);
	core->asks_changed = true;
	core->orphans |= command->verb == OBL_VERB_FORGET;
	for (struct obl_member *m = core->members; m; m = m->next)
		obl_member_tell(m);
	obl_command_finish(core, command, 0, kinds[command->verb]);
}

/* Puts the transaction together. The errors are obl_move_plan's. */
static enum ob_err plan_of(struct obl_core *core, struct obl_command *command,
	char ret_key[OBL_KEY_MAX], struct ob_cause *ret_cause)
{
	struct obl_plan *plan;

	if (command->verb == OBL_VERB_MOVE)
		return obl_move_plan(core, command->target, command->wanted, NULL, 0, ret_key,
			command->to, ret_cause);
	plan = obl_work_plan(core);
	if (command->verb == OBL_VERB_QUOTA)
		quota_plan(core, command, plan, ret_key);
	else if (command->verb == OBL_VERB_FORGET)
		forget_plan(core, command, plan, ret_key);
	else
		operator_plan(core, command, plan, ret_key);
	return OB_ERR_NONE;
}

static bool needs_transaction(const struct obl_command *c)
{
	return c->verb != OBL_VERB_KILL || (c->mark && !c->marked);
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
	if (c->verb == OBL_VERB_KILL && !obl_move_kill_plan(core, c->chain[c->n_chain - 1], key)) {
		obl_command_kill_marked(core, c); /* the new place has ended meanwhile */
		return obl_commands_start(core);
	}
	err = c->verb == OBL_VERB_KILL ? OB_ERR_NONE : plan_of(core, c, key, &cause);
	if (err) {
		obl_command_finish(core, c,
			err == OB_ERR_REFUSED ? OBP_POOL_LATER : OBP_POOL_INVALID, cause.text);
		return obl_commands_start(core);
	}
	c->making = obl_work_make(core, key, made, c);
	if (!c->making)
		obl_command_finish(core, c, OBP_POOL_FAULT, "the balancer has no memory");
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
		obl_command_finish(core, c, OBP_POOL_LATER,
			c->verb == OBL_VERB_KILL ? "the server has not answered in time"
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
	if (command->verb == OBL_VERB_KILL)
		return NULL;
	if (command->verb == OBL_VERB_MOVE)
		return move_read(core, command, message->argument);
	if (!obl_name_valid(message->target))
		return "name a server or a tenant";
	if (command->verb == OBL_VERB_QUOTA) {
		command->no_quota = !message->argument[0];
		return obl_quota_parse(message->argument, &command->quota, cause) ? cause->text
										  : NULL;
	}
	known = obl_mirror_find(&core->mirror, OBL_ITEM_SERVER, message->target) ||
		obl_mirror_find(&core->mirror, OBL_ITEM_OPERATOR, message->target);
	if (!known)
		return "there is no server of this name in the pool";
	if (command->verb == OBL_VERB_FORGET && obl_member_anywhere(core, message->target))
		return "the server is connected: stop it first";
	if (command->verb == OBL_VERB_DRAIN && message->argument[0] &&
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

	if (!err || strcmp(message->verb, verbs[OBL_VERB_KILL]) != 0 || !message->token[0])
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
	struct obl_core *core, enum obl_verb verb, const char *who, struct obl_link *link)
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

	if (!wrong && command->verb == OBL_VERB_KILL)
		obl_command_kill(core, command, &wrong);
	if (wrong)
		obl_command_finish(core, command, OBP_POOL_INVALID, wrong);
	else
		core->wake(core);
}

static enum obl_verb verb_find(const char *name)
{
	unsigned verb = 0;

	while (verb < OBL_VERBS && strcmp(name, verbs[verb]) != 0)
		verb++;
	return (enum obl_verb)verb;
}

static const char too_many[] = "too many commands at once; try again";
static const char unknown[] = "this balancer does not know the command; it knows cordon, uncordon, "
			      "drain, kill, quota, forget and move";

void obl_command_run(struct obl_core *core, const struct obp_pool_command *message, const char *who,
	void (*told)(void *user, uint32_t code, const char *text), void *user)
{
	enum obl_verb verb = verb_find(message->verb);
	struct obl_command *command = verb == OBL_VERBS ? NULL : command_new(core, verb, who, NULL);

	if (!command) {
		told(user, verb == OBL_VERBS ? OBP_POOL_INVALID : OBP_POOL_LATER,
			verb == OBL_VERBS ? unknown : too_many);
		return;
	}
	command->told = told;
	command->told_user = user;
	begin(core, command, message);
}

void obl_command(struct obl_core *core, struct obl_link *link, struct obp_pool_command *message)
{
	enum obl_verb verb = verb_find(message->verb);
	struct obl_identity identity;
	struct obl_command *command;
	struct ob_cause cause;
	enum ob_err err = may_command(core, link, message, &identity, &cause);

	explicit_bzero(message->token, sizeof message->token);
	if (err) {
		answer(link, obl_auth_refusal(err), cause.text);
	} else if (verb == OBL_VERBS) {
		answer(link, OBP_POOL_INVALID, unknown);
	} else {
		command = command_new(core, verb, identity.who, link);
		if (command)
			begin(core, command, message);
		else
			answer(link, OBP_POOL_LATER, too_many);
	}
}
