/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/members.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "loadbalancer/balancer/events.h"

#define RETRY_MS (uint64_t) OBP_POOL_SILENT_MS

static bool recent(const struct obl_member *member, uint64_t now)
{
	uint64_t last = member->beat_ns ? member->beat_ns : member->joined_ns;

	return now < last + OBP_POOL_SILENT_MS * OB_MS;
}

struct obl_member *obl_member_find(const struct obl_core *core, const char *name)
{
	uint64_t hash = ob_hash(OB_HASH_START, name, strlen(name));
	struct obl_member *m = core->member_buckets[hash % OBL_MEMBER_BUCKETS];

	while (m && strcmp(m->name, name) != 0)
		m = m->bucket;
	return m;
}

void obl_member_enter(struct obl_member *member)
{
	struct obl_core *core = member->core;
	struct obl_member **bucket;

	member->name_hash = ob_hash(OB_HASH_START, member->name, strlen(member->name));
	bucket = &core->member_buckets[member->name_hash % OBL_MEMBER_BUCKETS];
	member->bucket = *bucket;
	*bucket = member;
	member->next = core->members;
	if (core->members)
		core->members->previous = member;
	core->members = member;
	core->n_members++;
}

static void leave(struct obl_member *member)
{
	struct obl_core *core = member->core;
	struct obl_member **bucket = &core->member_buckets[member->name_hash % OBL_MEMBER_BUCKETS];

	while (*bucket != member)
		bucket = &(*bucket)->bucket;
	*bucket = member->bucket;
	*(member->previous ? &member->previous->next : &core->members) = member->next;
	if (member->next)
		member->next->previous = member->previous;
	core->n_members--;
}

bool obl_member_anywhere(const struct obl_core *core, const char *name)
{
	size_t n = strlen(name);

	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_ALIVE); item;
		item = obl_mirror_next(item))
		if (strncmp(item->name, name, n) == 0 && item->name[n] == '/')
			return true;
	return obl_member_find(core, name) != NULL;
}

bool obl_member_elsewhere(const struct obl_core *core, const char *name)
{
	size_t n = strlen(name);

	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_ALIVE); item;
		item = obl_mirror_next(item))
		if (strncmp(item->name, name, n) == 0 && item->name[n] == '/' &&
			strcmp(item->name + n + 1, core->name) != 0)
			return true;
	return false;
}

bool obl_member_alive(const struct obl_member *member, uint64_t now_ns)
{
	const struct obl_item *ledger =
		obl_mirror_find(&member->core->mirror, OBL_ITEM_LEDGER, member->name);

	return member->beat_ns && recent(member, now_ns) && ledger &&
		ledger->value.ledger->incarnation == member->incarnation;
}

/* ---- orders ---- */

bool obl_member_order(struct obl_member *member, enum obp_pool_order_kind kind, const uint8_t *id,
	uint64_t number, const char *text)
{
	static struct obp_pool_message message;

	message.type = OBP_POOL_ORDER;
	message.u.order = (struct obp_pool_order){ .kind = kind, .number = number };
	if (id)
		memcpy(message.u.order.id, id, OBP_RESERVATION_BYTES);
	snprintf(message.u.order.text, sizeof message.u.order.text, "%s", text ? text : "");
	return obl_link_send(member->link, &message);
}

void obl_member_void(struct obl_member *member, const uint8_t id[OBP_RESERVATION_BYTES])
{
	uint64_t now = ob_clock_ns();
	struct obl_void_order *order = NULL;

	for (unsigned i = 0; i < OBL_MEMBER_VOIDS_MAX && !order; i++)
		if (member->voids[i].sent_ns &&
			memcmp(member->voids[i].id, id, OBP_RESERVATION_BYTES) == 0)
			order = &member->voids[i];
	if (order && now < order->sent_ns + OBL_VOID_AGAIN_MS * OB_MS)
		return;
	if (!order)
		order = &member->voids[member->at_void++ % OBL_MEMBER_VOIDS_MAX];
	memcpy(order->id, id, OBP_RESERVATION_BYTES);
	order->sent_ns = now;
	obl_member_order(member, OBP_POOL_ORDER_VOID, id, 0, NULL);
}

/* ---- what operators want of it ---- */

/*
 * A drain's time begins when its order came into this mirror: the balancer that took the order may
 * have another time of day.
 */
static struct obl_wish wish_of(const struct obl_member *member, uint64_t now)
{
	const struct obl_mirror *mirror = &member->core->mirror;
	const struct obl_item *item = obl_mirror_find(mirror, OBL_ITEM_OPERATOR, member->name);
	const struct obl_operator *state = item ? item->value.operated : NULL;
	struct obl_wish wish = { .closed = OBL_WISH_OPEN };
	char key[OBL_KEY_MAX];
	uint64_t past;

	if (!state || !state->cordoned) {
		obl_key_print(OBL_ITEM_OPERATOR, member->name, key);
		wish.as_of = obl_mirror_as_of(mirror, key);
		return wish;
	}
	past = (now - item->came_ns) / OB_MS;
	wish.as_of = item->revision;
	wish.closed = state->draining ? OBL_WISH_DRAIN : OBL_WISH_CORDON;
	wish.left_ms = state->grace_ms - ob_min(past, state->grace_ms);
	return wish;
}

/* Open is open, whatever the revision. */
static bool same_wish(const struct obl_wish *a, const struct obl_wish *b)
{
	return a->closed == b->closed && (a->closed == OBL_WISH_OPEN || a->as_of == b->as_of);
}

static void wish_order(struct obl_member *member, const struct obl_wish *wish, bool force)
{
	static struct obp_pool_message message;
	struct obp_pool_order *order = &message.u.order;

	message.type = OBP_POOL_ORDER;
	*order = (struct obp_pool_order){ .kind = OBP_POOL_ORDER_CORDON,
		.number = wish->closed == OBL_WISH_CORDON,
		.as_of = wish->as_of,
		.force = force };
	if (wish->closed == OBL_WISH_DRAIN) {
		order->kind = OBP_POOL_ORDER_DRAIN;
		order->number = wish->left_ms;
		snprintf(order->text, sizeof order->text, "drained by an operator");
	}
	obl_link_send(member->link, &message);
}

void obl_member_tell(struct obl_member *member)
{
	uint64_t now = ob_clock_ns();
	struct obl_wish wish = wish_of(member, now);
	bool news = !same_wish(&wish, &member->wanted), force;

	if (!member->core->synced || !member->beat_ns)
		return;
	member->wanted = wish;
	if (same_wish(&wish, &member->is) || !member->core->usable) {
		member->differs_ns = 0;
		if (same_wish(&wish, &member->is) || wish.closed < member->is.closed)
			return;
	} else if (!member->differs_ns) {
		member->differs_ns = now;
	}
	/* seen once is enough: the new registry's revision may overtake the old one's meanwhile */
	member->ahead |= member->core->usable && member->core->mirror.newest < member->is.as_of;
	force = member->differs_ns && member->ahead &&
		now >= member->differs_ns + OBL_FORCE_AFTER_MS * OB_MS;
	if (wish.as_of < member->is.as_of && !force)
		return; /* the mirror may be behind what the server was told */
	if (!news && now < member->told_ns + OBL_TELL_AGAIN_MS * OB_MS)
		return;
	member->told_ns = now;
	wish_order(member, &wish, force);
}

/* ---- registering ---- */

static bool pin_good(const char *pin)
{
	size_t n = strlen(pin);

	for (size_t i = 0; i < n; i++)
		if (!isxdigit((unsigned char)pin[i]))
			return false;
	return n == 0 || n == 64;
}

static bool urls_good(const char *urls, struct ob_cause *ret_cause)
{
	char copy[OBL_URLS_TEXT], *rest = copy, *word;
	struct obt_url url;
	unsigned n = 0;

	snprintf(copy, sizeof copy, "%s", urls);
	while ((word = strsep(&rest, " ")))
		if (*word && (n++ == OBP_POOL_URLS_MAX || obt_url_parse(word, &url, ret_cause)))
			return false;
	if (n == 0)
		ob_cause_set(ret_cause, OB_ERR_URL, "it names no address for clients");
	return n > 0;
}

static bool here_only(const char *address)
{
	struct obt_url url;
	struct ob_cause cause;

	return obt_url_parse(address, &url, &cause) == OB_ERR_NONE && obt_url_loopback(&url);
}

/* Clients of other machines that this balancer serves would look for the server on their own. */
static void unreachable_warn(const struct obl_core *core, const struct obp_pool_register *join)
{
	char copy[OBL_URLS_TEXT], *rest = copy, *word;
	bool others = false;

	for (size_t i = 0; i < core->gate.n_listeners; i++)
		others |= !here_only(core->gate.listeners[i].url);
	snprintf(copy, sizeof copy, "%s", join->urls);
	while (others && (word = strsep(&rest, " ")))
		others = !*word || here_only(word);
	if (others)
		ob_warn("server %s has loopback addresses only (%.200s), which clients of other "
			"machines cannot use: start it with --advertise, or with an address that "
			"others reach",
			join->name, join->urls);
}

/* Why a registration is wrong; NULL: it is good. */
static const char *join_wrong(const struct obp_pool_register *join, struct ob_cause *cause)
{
	struct obl_labels labels;

	if (!obl_name_valid(join->name))
		return "a server's name has 1 to 63 letters, digits, '.', '_' and '-' "
		       "(--pool-name)";
	if (!join->incarnation)
		return "the registration has no incarnation";
	if (!pin_good(join->pin))
		return "the certificate's pin is not a SHA-256 in hexadecimal";
	*cause = (struct ob_cause){ .text = "too many addresses" };
	if (!urls_good(join->urls, cause) || obl_labels_parse(join->labels, &labels, cause))
		return cause->text;
	return NULL;
}

/* Another incarnation of the name that is alive at another balancer; NULL: there is none. */
static const char *alive_elsewhere(
	const struct obl_core *core, const char *name, uint64_t incarnation)
{
	size_t n = strlen(name);

	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_ALIVE); item;
		item = obl_mirror_next(item))
		if (strncmp(item->name, name, n) == 0 && item->name[n] == '/' &&
			*item->value.alive != incarnation &&
			strcmp(item->name + n + 1, core->name) != 0)
			return item->name + n + 1;
	return NULL;
}

static void refuse_twin(
	struct obl_core *core, struct obl_link *link, const char *name, const char *balancer)
{
	char text[OBP_POOL_TEXT_MAX];

	snprintf(text, sizeof text,
		"another server with the name '%s' is connected to balancer '%s'. If this server "
		"was restarted, that ends within %u s; if they are two servers, give one another "
		"name (--pool-name)",
		name, balancer, OBP_POOL_SILENT_MS / 1000);
	obl_event_add(
		core, "twin", name, "another server of this name is connected to %s", balancer);
	obl_link_refuse(link, OBP_POOL_LATER, RETRY_MS, text);
	obl_link_end(link);
}

/* False: the registration was refused. */
static bool may_join(
	struct obl_core *core, struct obl_link *link, const struct obp_pool_register *join)
{
	struct obl_identity identity;
	struct ob_cause cause;
	struct obl_member *old;
	const char *why, *elsewhere;
	enum ob_err err = obl_auth_check(
		core->auth, link->address, join->token, OBL_RIGHT_SERVE, &identity, &cause);

	if (err) {
		obl_auth_refuse(link, err, &cause);
		obl_link_end(link);
		return false;
	}
	why = join_wrong(join, &cause);
	if (!why && core->n_members >= OBL_SERVERS_MAX)
		why = "the pool has as many servers as a balancer can have";
	if (why) {
		obl_link_refuse(link, OBP_POOL_INVALID, 0, why);
		obl_link_end(link);
		return false;
	}
	old = obl_member_find(core, join->name);
	if (old && old->incarnation != join->incarnation && recent(old, ob_clock_ns())) {
		refuse_twin(core, link, join->name, core->name);
		return false;
	}
	elsewhere = alive_elsewhere(core, join->name, join->incarnation);
	if (elsewhere) {
		refuse_twin(core, link, join->name, elsewhere);
		return false;
	}
	if (old)
		obl_link_end(old->link); /* it has connected again */
	return true;
}

static void registered_send(struct obl_member *member)
{
	static struct obp_pool_message message;
	struct obl_core *core = member->core;
	const struct obl_item *item =
		obl_mirror_find(&core->mirror, OBL_ITEM_OPERATOR, member->name);
	struct obp_pool_registered *registered = &message.u.registered;

	message.type = OBP_POOL_REGISTERED;
	snprintf(registered->balancer, sizeof registered->balancer, "%s", core->name);
	memcpy(registered->key, core->public_key, sizeof registered->key);
	registered->time_s = obl_time_ms() / 1000;
	registered->cordoned = item && item->value.operated->cordoned;
	obl_link_send(member->link, &message);
}

void obl_member_register(
	struct obl_core *core, struct obl_link *link, const struct obp_pool_register *join)
{
	struct obl_member *member;

	if (!may_join(core, link, join))
		return;
	member = calloc(1, sizeof *member);
	if (!member) {
		obl_link_refuse(link, OBP_POOL_FAULT, RETRY_MS, "the balancer has no memory");
		obl_link_end(link);
		return;
	}
	member->core = core;
	member->link = link;
	snprintf(member->name, sizeof member->name, "%s", join->name);
	snprintf(member->version, sizeof member->version, "%s", join->version);
	snprintf(member->urls, sizeof member->urls, "%s", join->urls);
	snprintf(member->pin, sizeof member->pin, "%s", join->pin);
	snprintf(member->labels_text, sizeof member->labels_text, "%s", join->labels);
	member->incarnation = join->incarnation;
	member->joined_ns = ob_clock_ns();
	member->healthy = true;
	obl_member_enter(member);
	unreachable_warn(core, join);
	link->user = member;
	obl_link_trust(link);
	registered_send(member);
}

void obl_member_gone(struct obl_member *member)
{
	struct obl_core *core = member->core;

	if (member->joined && !core->stopping)
		obl_event_add(core, "lost", member->name, "its connection to balancer %s has ended",
			core->name);
	leave(member);
	obp_load_fini(&member->load);
	free(member->held);
	free(member);
	core->check_alive = core->asks_changed = true;
	core->wake(core);
}

/* ---- heartbeats ---- */

static int by_id(const void *a, const void *b)
{
	return memcmp(((const struct obp_pool_held *)a)->id, ((const struct obp_pool_held *)b)->id,
		OBP_RESERVATION_BYTES);
}

const struct obp_pool_held *obl_member_held(
	const struct obl_member *member, const uint8_t id[OBP_RESERVATION_BYTES])
{
	struct obp_pool_held key;

	memcpy(key.id, id, sizeof key.id);
	return member->n_held ? bsearch(&key, member->held, member->n_held, sizeof key, by_id)
			      : NULL;
}

void obl_member_beat(struct obl_member *member, struct obp_pool_beat *beat)
{
	struct obl_core *core = member->core;
	bool healthy = beat->healthy;

	obp_load_fini(&member->load);
	member->load = beat->load;
	beat->load.listed = NULL;
	beat->load.n_sessions = 0;
	free(member->held);
	member->held = beat->held;
	member->n_held = beat->n_held;
	beat->held = NULL;
	beat->n_held = 0;
	member->n_ended = 0;
	for (uint32_t i = 0; i < member->n_held; i++)
		member->n_ended += member->held[i].state != OBP_POOL_CLAIMED;
	member->check = true;
	if (member->n_held)
		qsort(member->held, member->n_held, sizeof *member->held, by_id);
	if (healthy != member->healthy)
		obl_event_add(core, healthy ? "well" : "unwell", member->name, "%s", beat->health);
	/* Loads alone are looked at once a second (balancer.c). */
	core->asks_changed |= !member->beat_ns || member->silent || healthy != member->healthy;
	member->healthy = healthy;
	member->is.closed = beat->drained ? OBL_WISH_DRAIN
		: beat->cordoned          ? OBL_WISH_CORDON
					  : OBL_WISH_OPEN;
	member->ahead &= member->is.as_of == beat->as_of;
	member->is.as_of = beat->as_of;
	snprintf(member->health, sizeof member->health, "%s", beat->health);
	member->beat_ns = ob_clock_ns();
	if (member->silent)
		obl_event_add(core, "back", member->name, "it sends heartbeats again");
	member->silent = false;
	core->wake(core);
}

void obl_members_sweep(struct obl_core *core)
{
	uint64_t now = ob_clock_ns();

	for (struct obl_member *m = core->members; m; m = m->next) {
		obl_member_tell(m);
		if (m->silent || recent(m, now))
			continue;
		m->silent = core->check_alive = true;
		obl_event_add(core, "silent", m->name, "no heartbeat for %u s",
			OBP_POOL_SILENT_MS / 1000);
	}
}
