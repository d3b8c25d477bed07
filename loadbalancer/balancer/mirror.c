/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/mirror.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"

#define BUCKETS_FIRST 1024u

static const char *const words[OBL_ITEM_KINDS] = {
	[OBL_ITEM_SERVER] = "servers/",
	[OBL_ITEM_LEDGER] = "ledger/",
	[OBL_ITEM_ALIVE] = "alive/",
	[OBL_ITEM_RESERVATION] = "reservations/",
	[OBL_ITEM_QUEUE] = "queue/",
	[OBL_ITEM_TENANT] = "tenants/",
	[OBL_ITEM_QUOTA] = "quotas/",
	[OBL_ITEM_OPERATOR] = "operator/",
	[OBL_ITEM_EVENT] = "events/",
	[OBL_ITEM_BALANCER] = "balancers/",
};

bool obl_key_print(enum obl_item_kind kind, const char *name, char ret_key[OBL_KEY_MAX])
{
	return (size_t)snprintf(ret_key, OBL_KEY_MAX, "%s%s", words[kind], name) < OBL_KEY_MAX;
}

static enum obl_item_kind kind_of(const char *key)
{
	for (unsigned i = 0; i < OBL_ITEM_KINDS; i++)
		if (strncmp(key, words[i], strlen(words[i])) == 0)
			return (enum obl_item_kind)i;
	return OBL_ITEM_KINDS;
}

/* Parses a value of a kind into memory of its own. NULL: it cannot be read, or no memory. */
static void *value_new(enum obl_item_kind kind, const char *text)
{
#define READ(type, function)                            \
	do {                                            \
		type *value = calloc(1, sizeof *value); \
		if (value && function(text, value))     \
			return value;                   \
		free(value);                            \
		return NULL;                            \
	} while (0)
	switch (kind) {
	case OBL_ITEM_SERVER:
		READ(struct obl_known_server, obl_known_server_read);
	case OBL_ITEM_LEDGER:
		READ(struct obl_ledger, obl_ledger_read);
	case OBL_ITEM_ALIVE:
	case OBL_ITEM_BALANCER:
		READ(uint64_t, obl_alive_read);
	case OBL_ITEM_RESERVATION:
		READ(struct obl_reservation, obl_reservation_read);
	case OBL_ITEM_QUEUE:
		READ(struct obl_queued, obl_queued_read);
	case OBL_ITEM_TENANT:
		READ(struct obl_usage, obl_usage_read);
	case OBL_ITEM_QUOTA:
		READ(struct obl_quota, obl_limits_read);
	case OBL_ITEM_OPERATOR:
		READ(struct obl_operator, obl_operator_read);
	case OBL_ITEM_EVENT:
		READ(struct obl_event, obl_event_read);
	case OBL_ITEM_KINDS:
		break;
	}
#undef READ
	return NULL;
}

/* ---- the table ---- */

static struct obl_item **bucket_of(const struct obl_mirror *mirror, const char *key)
{
	return &mirror->buckets[ob_hash(OB_HASH_START, key, strlen(key)) % mirror->n_buckets];
}

static struct obl_item *look(const struct obl_mirror *mirror, const char *key)
{
	struct obl_item *item = *bucket_of(mirror, key);

	while (item && strcmp(item->key, key) != 0)
		item = item->bucket;
	return item;
}

/* Without memory the chains become longer. */
static void grow(struct obl_mirror *mirror)
{
	struct obl_item **old = mirror->buckets, *item, *next;
	size_t n_old = mirror->n_buckets;
	struct obl_item **larger = calloc(2 * n_old, sizeof *larger);

	if (!larger)
		return;
	mirror->buckets = larger;
	mirror->n_buckets = 2 * n_old;
	for (size_t i = 0; i < n_old; i++)
		for (item = old[i]; item; item = next) {
			struct obl_item **bucket = bucket_of(mirror, item->key);

			next = item->bucket;
			item->bucket = *bucket;
			*bucket = item;
		}
	free(old);
}

static struct obl_item *item_new(
	struct obl_mirror *mirror, const char *key, enum obl_item_kind kind)
{
	struct obl_item *item = calloc(1, sizeof *item + strlen(key) + 1), **bucket;

	if (!item)
		return NULL;
	if (mirror->n >= 2 * mirror->n_buckets)
		grow(mirror);
	strcpy(item->key, key); /* NOLINT: has just been measured */
	item->name = item->key + strlen(words[kind]);
	item->kind = kind;
	bucket = bucket_of(mirror, key);
	item->bucket = *bucket;
	*bucket = item;
	item->previous = mirror->last[kind];
	*(item->previous ? &item->previous->next : &mirror->first[kind]) = item;
	mirror->last[kind] = item;
	mirror->n++;
	return item;
}

static void item_free(struct obl_mirror *mirror, struct obl_item *item)
{
	struct obl_item **bucket = bucket_of(mirror, item->key);

	while (*bucket != item)
		bucket = &(*bucket)->bucket;
	*bucket = item->bucket;
	*(item->previous ? &item->previous->next : &mirror->first[item->kind]) = item->next;
	*(item->next ? &item->next->previous : &mirror->last[item->kind]) = item->previous;
	mirror->n--;
	free(item->value.any);
	free(item);
}

bool obl_mirror_init(struct obl_mirror *mirror)
{
	*mirror = (struct obl_mirror){ .n_buckets = BUCKETS_FIRST };
	mirror->buckets = calloc(mirror->n_buckets, sizeof *mirror->buckets);
	return mirror->buckets != NULL;
}

void obl_mirror_reset(struct obl_mirror *mirror)
{
	for (unsigned i = 0; i < OBL_ITEM_KINDS; i++)
		while (mirror->first[i])
			item_free(mirror, mirror->first[i]);
	mirror->seen = mirror->newest = 0;
}

void obl_mirror_fini(struct obl_mirror *mirror)
{
	if (mirror->buckets)
		obl_mirror_reset(mirror);
	free(mirror->buckets);
	mirror->buckets = NULL;
}

/* ---- changes ---- */

static void item_delete(struct obl_mirror *mirror, struct obl_item *item, uint64_t revision)
{
	bool announce = !item->gone && item->value.any;

	item->gone = true;
	item->revision = revision;
	if (announce && mirror->changed)
		mirror->changed(mirror->user, item);
	free(item->value.any);
	item->value.any = NULL;
}

void obl_mirror_prune(struct obl_mirror *mirror)
{
	struct obl_item *next;

	for (unsigned i = 0; i < OBL_ITEM_KINDS; i++)
		for (struct obl_item *item = mirror->first[i]; item; item = next) {
			next = item->next;
			if (item->gone && item->revision <= mirror->seen)
				item_free(mirror, item);
		}
}

void obl_mirror_apply(struct obl_mirror *mirror, const char *key, const char *value,
	uint64_t revision, bool watched)
{
	enum obl_item_kind kind = kind_of(key);
	struct obl_item *item;

	if (kind == OBL_ITEM_KINDS || strlen(key) >= OBL_KEY_MAX)
		return;
	mirror->newest = ob_max(mirror->newest, revision);
	if (watched && value && revision > mirror->seen)
		mirror->seen = revision;
	item = look(mirror, key);
	if (item && watched && !value) {
		/* If the watch has not reported the item's own change yet, this is an older one. */
		if (item->revision > mirror->seen || item->gone)
			return;
		revision = mirror->seen;
	} else if (item && revision <= item->revision) {
		return;
	}
	if (!value) {
		/* A key that is not known needs no mark: the watch has deleted it already. */
		if (item)
			item_delete(mirror, item, revision);
		return;
	}
	if (!item && !(item = item_new(mirror, key, kind))) {
		ob_error("balancer: no memory for the registry's key %s", key);
		return;
	}
	free(item->value.any);
	item->value.any = value_new(kind, value);
	item->revision = revision;
	item->came_ns = ob_clock_ns();
	item->gone = false;
	item->wrong = !item->value.any;
	if (item->wrong)
		ob_warn("balancer: the value of %s in the registry cannot be read; it is treated "
			"as missing",
			key);
	else if (mirror->changed)
		mirror->changed(mirror->user, item);
}

/* ---- reading ---- */

const struct obl_item *obl_mirror_get(const struct obl_mirror *mirror, const char *key)
{
	const struct obl_item *item = look(mirror, key);

	return item && item->value.any ? item : NULL;
}

const struct obl_item *obl_mirror_find(
	const struct obl_mirror *mirror, enum obl_item_kind kind, const char *name)
{
	char key[OBL_KEY_MAX];

	return obl_key_print(kind, name, key) ? obl_mirror_get(mirror, key) : NULL;
}

const struct obl_item *obl_mirror_reservation(
	const struct obl_mirror *mirror, const uint8_t id[OBP_RESERVATION_BYTES])
{
	char name[OBL_ID_TEXT];

	obl_id_print(id, name);
	return obl_mirror_find(mirror, OBL_ITEM_RESERVATION, name);
}

uint64_t obl_mirror_revision(const struct obl_mirror *mirror, const char *key)
{
	const struct obl_item *item = look(mirror, key);

	return item && !item->gone ? item->revision : 0;
}

uint64_t obl_mirror_as_of(const struct obl_mirror *mirror, const char *key)
{
	const struct obl_item *item = look(mirror, key);

	return item && item->revision > mirror->seen ? item->revision : mirror->seen;
}

static const struct obl_item *skip(const struct obl_item *item)
{
	while (item && !item->value.any)
		item = item->next;
	return item;
}

const struct obl_item *obl_mirror_first(const struct obl_mirror *mirror, enum obl_item_kind kind)
{
	return skip(mirror->first[kind]);
}

const struct obl_item *obl_mirror_next(const struct obl_item *item)
{
	return skip(item->next);
}

bool obl_mirror_has_wrong(const struct obl_mirror *mirror, enum obl_item_kind kind)
{
	for (const struct obl_item *item = mirror->first[kind]; item; item = item->next)
		if (item->wrong && !item->gone)
			return true;
	return false;
}
