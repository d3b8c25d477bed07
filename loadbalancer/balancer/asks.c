/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/asks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "loadbalancer/balancer/credits.h"
#include "loadbalancer/balancer/events.h"
#include "loadbalancer/balancer/grant.h"
#include "loadbalancer/balancer/line.h"
#include "loadbalancer/balancer/tenants.h"
#include "loadbalancer/balancer/work.h"

#define TELL_EVERY_MS 1000u /* QUEUED, if anything has changed */
#define LOOK_MS       10000u
#define TELLS_MAX     16u /* in one sweep: each one asks placement for the reason */

/* ---- the end of requests ---- */

void obl_asker_gone(struct obl_asker *asker)
{
	asker->link = NULL;
	if (!asker->placing)
		obl_asker_free(asker);
}

void obl_asks_refuse_all(struct obl_core *core, const char *text)
{
	struct obl_asker *next;

	for (struct obl_asker *a = core->askers; a; a = next) {
		next = a->next;
		if (!a->placing)
			obl_asker_refuse(a, OBP_POOL_LATER, text);
		else if (
			a->link) /* the transaction may still be made: the next balancer finds it */
			obl_link_refuse(a->link, OBP_POOL_LATER, OBL_RETRY_MS, text);
	}
}

/* ---- the beginning ---- */

/* Why a request is wrong; NULL: it is good. */
static const char *ask_wrong(
	const struct obp_pool_ask *ask, struct obl_where *where, struct ob_cause *cause)
{
	if (ask->gpus == 0 || ask->gpus > OBP_POOL_GPUS_MAX)
		return "a request is for 1 to 64 GPUs (--gpus)";
	if (ask->memory > OBL_MEMORY_MAX)
		return "no device has so much memory (--vram)";
	if (ask->share > OBP_SHARE_ALL || ask->priority > OBL_HIGH ||
		ask->policy > OBL_POLICY_COUNT || ask->exclusive > 1 || ask->one_server > 1 ||
		ask->restartable > 1 || ask->offered > 1 || ask->cuda > 1000000 ||
		ask->pid > INT64_MAX)
		return "a value of the request is out of range";
	if (ask->wait_s > OBP_POOL_LINGER_MAX_S || ask->linger_s > OBP_POOL_LINGER_MAX_S)
		return "a request can wait, and be held, for a day at most (--wait-for, --hold)";
	if (ask->offered && ask->wait_s)
		return "a place that was offered needs no waiting";
	if (obl_where_parse(ask->where, where, cause))
		return cause->text;
	return NULL;
}

/* Lowers the request to what the token allows. NULL: it may be made. */
static const char *token_denies(
	const struct obl_core *core, struct obp_pool_ask *ask, const struct obt_allow *allow)
{
	const uint64_t *value = allow->value;
	uint32_t most = value[OBT_ALLOW_PRIORITY] ? (uint32_t)value[OBT_ALLOW_PRIORITY] : OBL_HIGH;

	if (value[OBT_ALLOW_MEMORY] && ask->memory > value[OBT_ALLOW_MEMORY])
		return "the token allows less memory on each device than the request wants";
	if (value[OBT_ALLOW_MEMORY] && obl_ask_exclusive(core, ask))
		return "the token allows a part of a device's memory, and an exclusive request "
		       "takes all of it";
	if (ask->priority > most)
		return "the token does not allow this priority";
	if (!ask->priority)
		ask->priority = ob_min(most, OBL_NORMAL);
	if (value[OBT_ALLOW_SHARE] && (!ask->share || ask->share > value[OBT_ALLOW_SHARE]))
		ask->share = (uint32_t)value[OBT_ALLOW_SHARE];
	return NULL;
}

static void enqueue(struct obl_core *core, struct obl_link *link, const struct obp_pool_ask *ask,
	const struct obl_identity *identity, const struct obl_where *where)
{
	struct obl_asker *asker = calloc(1, sizeof *asker);
	uint64_t now_ms = obl_time_ms();
	char name[64];

	if (!asker) {
		obl_link_refuse(link, OBP_POOL_FAULT, OBL_RETRY_MS, "the balancer has no memory");
		return;
	}
	asker->core = core;
	asker->link = link;
	asker->where = *where;
	asker->entry.ask = *ask;
	asker->begun_ns = ob_clock_ns();
	asker->entry.since = now_ms;
	asker->entry.until = now_ms + ask->wait_s * UINT64_C(1000);
	asker->most_memory = identity->allow.value[OBT_ALLOW_MEMORY];
	asker->until_ns = ob_clock_ns() + ask->wait_s * OB_SECOND;
	snprintf(asker->entry.tenant, sizeof asker->entry.tenant, "%s", identity->tenant);
	snprintf(asker->entry.balancer, sizeof asker->entry.balancer, "%s", core->name);
	snprintf(name, sizeof name, "%015" PRIu64 "-%08x-%" PRIu64, now_ms,
		(uint32_t)core->instance, ++core->numbers);
	obl_key_print(OBL_ITEM_QUEUE, name, asker->key);
	asker->number = core->numbers;
	asker->previous = core->last_asker;
	*(asker->previous ? &asker->previous->next : &core->askers) = asker;
	core->last_asker = asker;
	core->n_askers++;
	link->user = asker;
	link->patient = true;
	core->asks_changed = true;
	core->wake(core);
}

/* One tenant leaves room for the requests of others. */
static bool may_wait(const struct obl_core *core, const char *tenant)
{
	uint32_t n = 0;

	for (const struct obl_asker *a = core->askers; a; a = a->next)
		n += strcmp(a->entry.tenant, tenant) == 0;
	return n < ob_max(core->settings->max_waiting / 2, 1u);
}

/* Refuses at once what can be seen without the pool. False: it was refused. */
static bool ask_check(struct obl_core *core, struct obl_link *link, struct obp_pool_ask *ask,
	struct obl_identity *ret_identity, struct obl_where *ret_where)
{
	enum obp_pool_refusal code = OBP_POOL_INVALID;
	struct ob_cause cause;
	const char *why = ask_wrong(ask, ret_where, &cause);
	enum ob_err err;

	if (!why && link->user)
		why = "this connection already has a request that waits";
	if (!why &&
		(err = obl_auth_check(core->auth, link->address, ask->token, OBL_RIGHT_ASK,
			 ret_identity, &cause))) {
		code = obl_auth_refusal(err);
		why = cause.text;
	}
	if (!why && (why = token_denies(core, ask, &ret_identity->allow)))
		code = OBP_POOL_DENIED;
	if (!why && !may_wait(core, ret_identity->tenant)) {
		code = OBP_POOL_LATER;
		why = "half of all requests that may wait here are this tenant's; try again";
	}
	if (!why && (core->stopping || core->n_askers >= core->settings->max_waiting)) {
		code = OBP_POOL_LATER;
		why = core->stopping ? "this balancer stops; ask another one"
				     : "too many requests wait at this balancer; try again";
	}
	if (!why)
		return true;
	core->refused++;
	obl_count_refused(&core->counts, code, true);
	obl_link_refuse(link, code, code == OBP_POOL_LATER ? OBL_RETRY_MS : 0, why);
	return false;
}

void obl_ask(struct obl_core *core, struct obl_link *link, struct obp_pool_ask *ask)
{
	struct obl_identity identity;
	struct obl_where where;
	bool good = ask_check(core, link, ask, &identity, &where);

	explicit_bzero(ask->token, sizeof ask->token);
	if (good)
		enqueue(core, link, ask, &identity, &where);
}

/* A place that was offered exists, whether or not its request was answered. */
static void offer_cancel(const struct obl_asker *asker)
{
	const struct obl_item *item =
		obl_mirror_reservation(&asker->core->mirror, asker->entry.ask.id);

	if (item && strcmp(item->value.reservation->tenant, asker->entry.tenant) == 0)
		obl_credits_cancel(asker->core, asker->entry.ask.id);
}

static void reservation_leave(struct obl_core *core, const struct obp_pool_cancel *cancel)
{
	if (cancel->over)
		obl_credits_end(core, cancel->id);
	else
		obl_credits_cancel(core, cancel->id);
}

/* A reservation that was granted on another connection. The errors of obl_auth_check. */
static enum ob_err give_back(struct obl_core *core, struct obl_link *link,
	const struct obp_pool_cancel *cancel, struct ob_cause *ret_cause)
{
	struct obl_identity identity;
	const struct obl_item *item;
	enum ob_err err = obl_auth_check(
		core->auth, link->address, cancel->token, OBL_RIGHT_ASK, &identity, ret_cause);

	if (err)
		return err;
	item = obl_mirror_reservation(&core->mirror, cancel->id);
	if (!item)
		return OB_ERR_NONE; /* it has ended */
	if (strcmp(item->value.reservation->tenant, identity.tenant) != 0)
		return ob_cause_set(
			ret_cause, OB_ERR_DENIED, "the reservation is another tenant's");
	reservation_leave(core, cancel);
	return OB_ERR_NONE;
}

static void cancel_answer(struct obl_link *link, enum obp_pool_refusal code, const char *text)
{
	static struct obp_pool_message message;

	message.type = OBP_POOL_DONE;
	message.u.refused = (struct obp_pool_refused){ .code = code };
	snprintf(message.u.refused.text, sizeof message.u.refused.text, "%s", text);
	obl_link_send(link, &message);
}

void obl_ask_cancel(
	struct obl_core *core, struct obl_link *link, const struct obp_pool_cancel *cancel)
{
	struct obl_asker *asker = link->member ? NULL : link->user;
	struct ob_cause cause = { .text = "" };
	enum ob_err err = OB_ERR_NONE;

	if (asker && memcmp(asker->entry.ask.id, cancel->id, sizeof cancel->id) == 0) {
		asker->cancelled = true;
		if (asker->entry.ask.offered)
			offer_cancel(asker);
		if (!asker->placing)
			obl_asker_free(asker);
	} else if (link->granted && memcmp(link->id, cancel->id, sizeof cancel->id) == 0) {
		link->granted = false;
		reservation_leave(core, cancel);
	} else {
		err = give_back(core, link, cancel, &cause);
	}
	cancel_answer(link, err ? obl_auth_refusal(err) : 0, cause.text);
}

/* ---- waiting ---- */

/* What a request is told when the time that it may wait has passed. */
static void time_out(struct obl_asker *asker)
{
	char text[OBP_POOL_TEXT_MAX];

	if (!asker->core->usable || !asker->core->synced)
		snprintf(text, sizeof text, "the pool's registry cannot be used: %.900s",
			asker->core->unusable);
	else if (!asker->looked)
		snprintf(text, sizeof text, "the pool's registry does not answer in time");
	else
		snprintf(text, sizeof text, "it waited for %u s (--wait-for): %.900s",
			asker->entry.ask.wait_s,
			asker->reason[0] ? asker->reason : "what it needs is in use");
	obl_asker_refuse(asker, OBP_POOL_LATER, text);
}

static bool differs(uint64_t a, uint64_t b)
{
	return a > b + b / 10 + 1000 || b > a + a / 10 + 1000;
}

static void tell(struct obl_line *line, uint32_t place)
{
	static struct obp_pool_message message;
	struct obl_asker *asker = line->own[line->order[place]];
	struct obl_core *core = asker->core;
	struct obp_pool_queued *queued = &message.u.queued;

	message.type = OBP_POOL_QUEUED;
	*queued = (struct obp_pool_queued){ .position = place + 1, .length = line->n };
	queued->estimate_ms = obl_queue_estimate(
		line->waiting, line->order, place, &core->releases, obl_time_ms());
	obl_queue_explain(line->waiting, line->order, place, line->fleet->servers, line->fleet->n,
		&core->hold, queued->reason, sizeof queued->reason);
	if (asker->told_ns && queued->position == asker->position &&
		queued->length == asker->length &&
		!differs(queued->estimate_ms, asker->estimate_ms) &&
		strcmp(queued->reason, asker->reason) == 0)
		return;
	core->counts.placed[OBL_PLACED_QUEUED][OBL_BECAUSE_BUSY] += !asker->told_ns;
	asker->position = queued->position;
	asker->length = queued->length;
	asker->estimate_ms = queued->estimate_ms;
	snprintf(asker->reason, sizeof asker->reason, "%s", queued->reason);
	obl_link_send(asker->link, &message);
}

static void tell_all(struct obl_core *core)
{
	struct obl_line *line = core->line;
	uint64_t now = ob_clock_ns();
	unsigned told = 0;

	obl_line_fill(core, line);
	for (uint32_t place = 0; place < line->n && told < TELLS_MAX; place++) {
		struct obl_asker *asker = line->own[line->order[place]];

		if (!asker || !asker->looked || !asker->entry.ask.wait_s ||
			now < asker->told_ns + TELL_EVERY_MS * OB_MS)
			continue;
		tell(line, place);
		asker->told_ns = now;
		told++;
	}
}

/* While the registry cannot be used the reason is another one. */
static void tell_unusable(struct obl_core *core)
{
	static struct obp_pool_message message;
	uint64_t now = ob_clock_ns();

	for (struct obl_asker *a = core->askers; a; a = a->next) {
		if (!a->link || !a->entry.ask.wait_s || now < a->told_ns + TELL_EVERY_MS * OB_MS)
			continue;
		a->told_ns = now;
		message.type = OBP_POOL_QUEUED;
		message.u.queued = (struct obp_pool_queued){ .length = core->n_askers };
		snprintf(message.u.queued.reason, sizeof message.u.queued.reason,
			"the pool's registry cannot be used: %.900s", core->unusable);
		obl_link_send(a->link, &message);
	}
}

void obl_asks_sweep(struct obl_core *core)
{
	bool ready = core->usable && core->synced;
	uint64_t now = ob_clock_ns();
	/* Even requests that do not wait do until they were looked at, in a crowd for example. */
	uint64_t grace = (ready ? LOOK_MS : OBL_RETRY_MS) * OB_MS;
	struct obl_asker *next;

	for (struct obl_asker *a = core->askers; a; a = next) {
		next = a->next;
		if (!a->placing && now >= a->until_ns + (a->looked ? 0 : grace))
			time_out(a);
	}
	if (!core->askers)
		return;
	if (ready)
		tell_all(core);
	else
		tell_unusable(core);
}
