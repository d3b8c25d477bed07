/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The auditor follows every revision of the registry. After each one, no ledger has more than its
 * capacity, and each is the sum of the reservations of its server. Within a revision the ledgers come
 * first and the reservation last, because the transactions are written so; a deleted key has no
 * revision of its own and belongs to the one before.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadbalancer/registry/table.h"
#include "races.h"

struct audit {
	uv_loop_t loop;
	struct obl_registry *registry;
	struct obl_table reservations;
	uint32_t reserved[RACES_SERVERS_MAX]; /* as the ledgers say */
	uint32_t sums[RACES_SERVERS_MAX];     /* as the reservations say */
	uint64_t revision;
	uint32_t revisions, resets, oversubscribed, unequal, broken, most, reservations_most;
	bool ended;
};

/* Adds the parts of a reservation to the sums, or takes them away. */
static void count_parts(struct audit *audit, const char *text, bool add)
{
	while (*text) {
		char *end;
		unsigned long server = strtoul(text, &end, 10), amount;

		if (*end != ':' || server >= RACES_SERVERS_MAX) {
			audit->broken++;
			return;
		}
		amount = strtoul(end + 1, &end, 10);
		audit->sums[server] += add ? (uint32_t)amount : -(uint32_t)amount;
		text = end + strspn(end, " ");
	}
}

/* The changes of a revision are complete. */
static void check_revision(struct audit *audit)
{
	audit->revisions++;
	for (uint32_t i = 0; i < RACES_SERVERS_MAX; i++) {
		audit->oversubscribed += audit->reserved[i] > RACES_CAPACITY;
		audit->unequal += audit->reserved[i] != audit->sums[i];
		if (audit->reserved[i] > audit->most)
			audit->most = audit->reserved[i];
	}
	if (audit->reservations.n > audit->reservations_most)
		audit->reservations_most = (uint32_t)audit->reservations.n;
}

static void on_reset(void *user)
{
	struct audit *audit = user;

	audit->resets++;
	audit->revision = 0;
	obl_table_fini(&audit->reservations);
	memset(audit->reserved, 0, sizeof audit->reserved);
	memset(audit->sums, 0, sizeof audit->sums);
}

static void on_closed(void *user)
{
	(void)user;
}

static void take_reservation(struct audit *audit, const struct obl_entry *entry)
{
	const struct obl_row *row = obl_table_find(&audit->reservations, entry->key);

	if (row)
		count_parts(audit, row->value, false);
	if (entry->value) {
		count_parts(audit, entry->value, true);
		obl_table_put(
			&audit->reservations, entry->key, entry->value, entry->revision, NULL);
	} else {
		obl_table_remove(&audit->reservations, entry->key);
	}
}

static void on_changed(void *user, const struct obl_entry *entry, bool deleted)
{
	struct audit *audit = user;

	if (!deleted && audit->revision && entry->revision > audit->revision) {
		check_revision(audit);
		audit->revision = entry->revision;
	}
	if (strncmp(entry->key, "ledger/", 7) == 0 && entry->value)
		audit->reserved[strtoul(entry->key + 7, NULL, 10) % RACES_SERVERS_MAX] =
			(uint32_t)strtoul(entry->value, NULL, 10);
	else if (strncmp(entry->key, "reservations/", 13) == 0)
		take_reservation(audit, entry);
	else if (strcmp(entry->key, RACES_END) == 0 && !audit->ended) {
		audit->ended = true;
		audit->registry->ops->close(audit->registry, on_closed, audit);
	}
}

static void on_synced(void *user, uint64_t revision)
{
	struct audit *audit = user;

	audit->revision = revision;
	fprintf(stderr, "following\n");
}

static void on_usable(void *user, bool usable, const struct ob_cause *why)
{
	(void)user;
	(void)usable;
	(void)why;
}

static void on_lease(void *user)
{
	(void)user;
}

int races_audit(const struct races_settings *settings)
{
	static struct audit audit;
	struct obl_watcher watcher = { &audit, on_reset, on_changed, on_synced, on_usable,
		on_lease };

	uv_loop_init(&audit.loop);
	audit.registry = races_open(&audit.loop, settings, &watcher);
	uv_run(&audit.loop, UV_RUN_DEFAULT);
	printf("{\"revisions\": %u, \"resets\": %u, \"oversubscribed\": %u, \"unequal\": %u, "
	       "\"broken\": %u, "
	       "\"most\": %u, \"reservations_most\": %u, \"reservations_left\": %zu}\n",
		audit.revisions, audit.resets, audit.oversubscribed, audit.unequal, audit.broken,
		audit.most, audit.reservations_most, audit.reservations.n);
	obl_table_fini(&audit.reservations);
	return uv_loop_close(&audit.loop) == 0 ? 0 : 1;
}
