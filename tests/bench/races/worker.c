/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A balancer that places and releases at random. Each slot has one reservation at most: it reserves
 * it, then releases it, each by one transaction, which is repeated with the present values when
 * another process was faster, and looked up when its outcome is unknown.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "races.h"

struct ledger {
	uint32_t reserved;
	uint64_t revision;
};

struct worker;

struct part {
	uint32_t server, amount;
};

struct slot {
	struct worker *worker;
	bool held;
	bool waits,
		looks; /* the timer goes on, with looking up the reservation or with a transaction */
	char id[64];   /* the key of the reservation */
	uint64_t revision;
	struct part parts[RACES_PARTS_MAX];
	uint32_t n_parts;
	struct ledger seen[RACES_PARTS_MAX]; /* what the transaction compares */
	uint64_t began_ns;                   /* of the placement or release */
};

struct worker {
	const struct races_settings *settings;
	uv_loop_t loop;
	uv_timer_t timer;
	struct obl_registry *registry;
	struct ledger ledgers[RACES_SERVERS_MAX]; /* as the watcher tells */
	struct slot *slots;
	uint64_t seed, *times;
	uint32_t n_times, active, number;
	uint32_t placed, released, conflicts, unknown, full, refused;
	bool begun, synced, usable;
	uint64_t began_ns, ended_ns;
};

static void go_on(struct slot *slot);

/* ---- the watcher ---- */

static uint32_t ledger_number(const char *key)
{
	return strncmp(key, "ledger/", 7) == 0 ? (uint32_t)strtoul(key + 7, NULL, 10)
					       : RACES_SERVERS_MAX;
}

static void take_ledger(struct worker *worker, const struct obl_entry *entry)
{
	uint32_t server = ledger_number(entry->key);
	struct ledger *ledger;

	if (server >= RACES_SERVERS_MAX || !entry->value)
		return;
	ledger = &worker->ledgers[server];
	if (entry->revision <= ledger->revision)
		return;
	ledger->revision = entry->revision;
	ledger->reserved = (uint32_t)strtoul(entry->value, NULL, 10);
}

static void on_reset(void *user)
{
	((struct worker *)user)->synced = false;
}

static void on_changed(void *user, const struct obl_entry *entry, bool deleted)
{
	if (!deleted)
		take_ledger(user, entry);
}

static void begin_if_ready(struct worker *worker)
{
	if (worker->begun || !worker->synced || !worker->usable)
		return;
	worker->begun = true;
	worker->began_ns = ob_clock_ns();
	for (uint32_t i = 0; i < worker->settings->slots; i++)
		go_on(&worker->slots[i]);
}

static void on_synced(void *user, uint64_t revision)
{
	(void)revision;
	((struct worker *)user)->synced = true;
	begin_if_ready(user);
}

static void on_usable(void *user, bool usable, const struct ob_cause *why)
{
	if (why)
		fprintf(stderr, "obl-races: %s\n", why->text);
	((struct worker *)user)->usable = usable;
	begin_if_ready(user);
}

static void on_lease(void *user)
{
	(void)user;
}

/* ---- a transaction ---- */

static void choose(struct slot *slot)
{
	struct worker *worker = slot->worker;

	snprintf(slot->id, sizeof slot->id, "reservations/%d-%u", (int)getpid(), worker->number++);
	slot->n_parts = 1 + races_random(&worker->seed, RACES_PARTS_MAX);
	for (uint32_t i = 0; i < slot->n_parts; i++) {
		bool taken;

		do {
			slot->parts[i].server =
				races_random(&worker->seed, worker->settings->servers);
			taken = false;
			for (uint32_t before = 0; before < i; before++)
				taken |= slot->parts[before].server == slot->parts[i].server;
		} while (taken);
		slot->parts[i].amount = 1 + races_random(&worker->seed, 30);
	}
	slot->began_ns = ob_clock_ns();
}

static bool fits(const struct slot *slot)
{
	for (uint32_t i = 0; i < slot->n_parts; i++)
		if (slot->seen[i].reserved + slot->parts[i].amount > RACES_CAPACITY)
			return false;
	return true;
}

static void on_done(void *user, enum ob_err err, const struct ob_cause *cause, bool succeeded,
	uint64_t revision, const struct obl_entry *current, uint32_t n_current);

/* The transaction that takes or gives back what the slot has chosen. */
static void send_txn(struct slot *slot)
{
	static char values[RACES_PARTS_MAX][RACES_VALUE + 1];
	char keys[RACES_PARTS_MAX][32], list[128] = "";
	struct obl_compare compares[RACES_PARTS_MAX + 1];
	struct obl_change changes[RACES_PARTS_MAX + 1];
	uint32_t n = slot->n_parts;
	struct obl_txn txn = { n + 1, n + 1, compares, changes };
	size_t used = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct part *part = &slot->parts[i];

		snprintf(keys[i], sizeof keys[i], "ledger/%u", part->server);
		races_ledger(values[i],
			slot->held ? slot->seen[i].reserved - part->amount
				   : slot->seen[i].reserved + part->amount);
		compares[i] = (struct obl_compare){ keys[i], slot->seen[i].revision };
		changes[i] = (struct obl_change){ .key = keys[i], .value = values[i] };
		used += (size_t)snprintf(
			list + used, sizeof list - used, "%u:%u ", part->server, part->amount);
	}
	compares[n] = (struct obl_compare){ slot->id, slot->held ? slot->revision : 0 };
	changes[n] = (struct obl_change){ .key = slot->id, .value = slot->held ? NULL : list };
	slot->worker->registry->ops->txn(slot->worker->registry, &txn, on_done, slot);
}

/* Tries with the ledgers that the worker knows. A placement that does not fit is given up. */
static void try_slot(struct slot *slot)
{
	struct worker *worker = slot->worker;

	for (uint32_t i = 0; i < slot->n_parts; i++)
		slot->seen[i] = worker->ledgers[slot->parts[i].server];
	if (!slot->held && !fits(slot)) {
		worker->full++;
		slot->waits = true;
		return;
	}
	send_txn(slot);
}

static void finished(struct slot *slot, uint64_t revision)
{
	struct worker *worker = slot->worker;

	if (worker->n_times < worker->settings->count)
		worker->times[worker->n_times++] = ob_clock_ns() - slot->began_ns;
	*(slot->held ? &worker->released : &worker->placed) += 1;
	slot->held = !slot->held;
	slot->revision = revision;
	slot->began_ns = ob_clock_ns();
	go_on(slot);
}

static void on_looked(void *user, enum ob_err err, const struct ob_cause *cause,
	const struct obl_entry *entries, uint32_t n, uint64_t revision)
{
	struct slot *slot = user;
	bool exists = false;
	uint64_t at = 0;

	(void)cause;
	(void)revision;
	if (err != OB_ERR_NONE) {
		slot->looks = slot->waits = true;
		return;
	}
	slot->looks = false;
	for (uint32_t i = 0; i < n; i++) {
		if (strcmp(entries[i].key, slot->id) == 0) {
			exists = true;
			at = entries[i].revision;
		}
	}
	if (exists != slot->held)
		finished(slot, at);
	else
		try_slot(slot); /* the old one can no longer succeed after the new one has */
}

static void look_up(struct slot *slot)
{
	slot->worker->registry->ops->range(slot->worker->registry, slot->id, on_looked, slot);
}

static void on_done(void *user, enum ob_err err, const struct ob_cause *cause, bool succeeded,
	uint64_t revision, const struct obl_entry *current, uint32_t n_current)
{
	struct slot *slot = user;
	struct worker *worker = slot->worker;

	(void)cause;
	if (obl_txn_unknown(err)) {
		worker->unknown++;
		look_up(slot);
	} else if (err != OB_ERR_NONE) {
		worker->refused++;
		slot->waits = true;
	} else if (succeeded) {
		finished(slot, revision);
	} else {
		worker->conflicts++;
		for (uint32_t i = 0; i + 1 < n_current; i++)
			take_ledger(worker, &current[i]);
		if ((current[n_current - 1].revision != 0) != slot->held)
			finished(slot, current[n_current - 1].revision);
		else
			try_slot(slot);
	}
}

/* ---- the run ---- */

static bool is_over(const struct worker *worker)
{
	return worker->placed + worker->released >= worker->settings->count;
}

static void on_closed(void *user)
{
	struct worker *worker = user;

	uv_close((uv_handle_t *)&worker->timer, NULL);
}

static void go_on(struct slot *slot)
{
	struct worker *worker = slot->worker;

	if (is_over(worker)) {
		if (--worker->active == 0) {
			worker->ended_ns = ob_clock_ns();
			worker->registry->ops->close(worker->registry, on_closed, worker);
		}
		return;
	}
	if (!slot->held)
		choose(slot);
	try_slot(slot);
}

/* Slots whose request did not fit choose another one; those that were refused try again. */
static void on_timer(uv_timer_t *timer)
{
	struct worker *worker = timer->data;

	for (uint32_t i = 0; i < worker->settings->slots; i++) {
		struct slot *slot = &worker->slots[i];

		if (!slot->waits)
			continue;
		slot->waits = false;
		if (slot->looks)
			look_up(slot);
		else if (slot->held)
			try_slot(slot);
		else
			go_on(slot);
	}
}

int races_worker(const struct races_settings *settings)
{
	static struct worker worker;
	struct obl_watcher watcher = { &worker, on_reset, on_changed, on_synced, on_usable,
		on_lease };
	double seconds;

	worker.settings = settings;
	worker.seed = settings->seed;
	worker.active = settings->slots;
	worker.slots = calloc(settings->slots, sizeof *worker.slots);
	worker.times = calloc(settings->count, sizeof *worker.times);
	if (!worker.slots || !worker.times)
		return 1;
	for (uint32_t i = 0; i < settings->slots; i++)
		worker.slots[i].worker = &worker;
	uv_loop_init(&worker.loop);
	uv_timer_init(&worker.loop, &worker.timer);
	worker.timer.data = &worker;
	uv_timer_start(&worker.timer, on_timer, 5, 5);
	worker.registry = races_open(&worker.loop, settings, &watcher);
	uv_run(&worker.loop, UV_RUN_DEFAULT);
	seconds = (double)(worker.ended_ns - worker.began_ns) * 1e-9;
	printf("{\"placed\": %u, \"released\": %u, \"conflicts\": %u, \"unknown\": %u, "
	       "\"refused\": %u, "
	       "\"full\": %u, \"seconds\": %.3f",
		worker.placed, worker.released, worker.conflicts, worker.unknown, worker.refused,
		worker.full, seconds);
	races_quantiles("each", worker.times, worker.n_times);
	printf("}\n");
	free(worker.slots);
	free(worker.times);
	return uv_loop_close(&worker.loop) == 0 ? 0 : 1;
}
